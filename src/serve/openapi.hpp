// The table of routes: requests are matched and checked by it, and the OpenAPI document is made of
// it, so that what is documented is what is served.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "serve/auth.hpp"
#include "serve/http.hpp"

namespace weft::serve {

// A query parameter, or a field of a JSON body.
struct Param {
  enum class Type : std::uint8_t { text, count, time };
  enum class Need : std::uint8_t { optional, needed };

  std::string_view name, meaning;
  Type type = Type::text;
  Need need = Need::optional;
  std::int64_t least = 0, most = INT64_MAX;  // of counts; of texts: bytes
  std::vector<std::string_view> choices{};   // of texts; none: any
};

// Parameters that were given, checked.
class Values {
 public:
  bool has(std::string_view name) const { return values_.contains(name); }
  std::string text(std::string_view name) const;  // "" where it was not given
  std::int64_t count(std::string_view name, std::int64_t fallback) const;
  Timestamp time(std::string_view name, Timestamp fallback) const;

  // Fails: Errc::value, Errc::parse.
  Status set(const Param& param, std::string_view text);

 private:
  struct Value {
    std::string text;
    std::int64_t count = 0;
    Timestamp time;
  };
  std::map<std::string, Value, std::less<>> values_;
};

// A request that was let in.
struct Call {
  std::vector<std::string> pieces;  // of the path, where the route has {…}
  Values query, fields;
  std::string body;
  std::string who;     // who asks
  std::string tenant;  // of who asks; "": of nobody
  std::string sender;  // address, "" over a socket file
  std::string accept, last_event_id;
};

struct Route {
  enum class Body : std::uint8_t { none, lines, fields, json, packed };  // packed: gzip

  std::string_view method, path;  // "/v1/cases/{id}"
  std::string_view id, summary;   // operationId
  std::optional<Role> role;       // none: for everybody
  // Which {…} of the path names the tenant that it is about. None: closed to who is of a tenant,
  // unless it is for everybody.
  std::optional<std::size_t> tenant_piece{};
  std::vector<Param> query{};
  Body body = Body::none;
  std::vector<Param> fields{};  // of a body of fields; all optional: it may be left out
  std::string_view reply_type = "application/json";
  std::string_view reply_schema{};  // of components; "": text
  std::vector<int> problems{};      // statuses beyond those that follow from the rest
  std::function<Result<Reply>(const Call&)> handler;
};

struct Matched {
  const Route* route = nullptr;
  std::vector<std::string> pieces;
};
// The route of a method and path; HEAD is GET. Fails: 404; 405, where `allow` becomes the methods.
std::expected<Matched, Problem> match(std::span<const Route> routes, std::string_view method,
                                      const std::vector<std::string>& path, std::string& allow);

// Fails: Errc::parse and Errc::value; unknown names too, with the nearest known one.
Result<Values> read_query(const Route& route, const Target& target);
Result<Values> read_fields(const Route& route, std::string_view body);

// The statuses that a route can answer with, besides 200.
std::vector<int> problems_of(const Route& route);
// OpenAPI 3.1, as JSON. Deterministic.
std::string openapi_document(std::span<const Route> routes);

}  // namespace weft::serve
