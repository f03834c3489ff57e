// Requests and answers as the API sees them. Pure: no sockets here.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace weft::serve {

inline constexpr std::size_t target_bytes_max = 2048;
inline constexpr std::size_t field_count_max = 100;

// Why a request is refused, as RFC 9457 has it.
struct Problem {
  int status = 400;
  std::string type;    // short word of the kind of problem: "busy", "unknown-parameter"
  std::string detail;  // for people: what, and what to do
};
inline std::unexpected<Problem> refuse(int status, std::string type, std::string detail) {
  return std::unexpected(Problem{status, std::move(type), std::move(detail)});
}
// parse, value: 400; unknown: 404; infeasible: 409; unsupported: 501; io: 503.
Problem problem_of(const Error& error);
// "Not Found".
std::string_view phrase_of(int status);

// Bytes that are made while they are sent.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // The next bytes, "" for none just now (within about a second); nothing at the end.
  virtual std::optional<std::string> next() = 0;
};

struct Reply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::unique_ptr<ByteStream> stream;  // instead of the body
  // Instead of all else: an answer that is not there yet, and keeps no thread busy until it is.
  // Called once, with whom to give it to: exactly once, from any thread, while the server runs.
  std::function<void(std::function<void(Reply)>)> later;
};
// application/problem+json, with the headers that its status asks for.
Reply reply_of(const Problem& problem);

// What stands before the body of a request.
struct Head {
  std::string method, target;
  std::map<std::string, std::string, std::less<>> fields;  // names in lower case
  std::uint64_t content_length = 0;
  bool is_last = false;           // the connection ends after it
  bool expects_continue = false;  // the client waits for leave to send the body

  std::string_view field(std::string_view name) const;  // "" where there is none
};
// As the server reads it: the head with its lines' ends and the blank line behind it. Strict:
// whatever two readers could understand in two ways is refused. Bodies need a Content-Length.
std::expected<Head, Problem> parse_head(std::string_view text);

struct Target {
  std::vector<std::string> path;                           // "/v1/cases" has two pieces, "/" none
  std::vector<std::pair<std::string, std::string>> query;  // each name once
};
// Takes a target apart and its %XX with it. Fails: Errc::parse, also for what is no UTF-8 text.
Result<Target> parse_target(std::string_view target);

// What lines a body has, without their ends ("\n" or "\r\n"); blank ones too, so that numbers of
// lines are the sender's. Nothing where there are more than `count_max`.
std::optional<std::vector<std::string>> lines_of(std::string_view body, std::size_t count_max);

}  // namespace weft::serve
