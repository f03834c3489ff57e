// What stands between a request and its route: who asks, whether she may, and whether the request
// is one at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "os/log.hpp"
#include "serve/api.hpp"
#include "serve/auth.hpp"
#include "serve/http.hpp"
#include "serve/meters.hpp"
#include "serve/openapi.hpp"

namespace weft::serve {

// Who is at the other end of a connection, as far as that shows before a request.
struct Peer {
  std::string sender;                      // address, "" over a socket file
  std::optional<std::uint32_t> user;       // over a socket file
  std::optional<std::string> certificate;  // common name, verified
  std::optional<std::string> svid;         // SPIFFE ID of an X.509-SVID, verified
};

class Front {
 public:
  // Whose requests are let in without a token or certificate.
  enum class Access : std::uint8_t {
    guarded,    // nobody's
    open_host,  // all of this machine, by a name of this machine: a page from elsewhere that has
                // its own name point here is not served
    open_file,  // all who can open the socket file
  };
  // All must outlive the front.
  Front(Access access, const ApiLimits& limits, std::span<const Route> routes, Meters& meters)
      : access_(access), limits_(limits), routes_(routes), meters_(meters) {}

  // Gets a line for each request that was refused for who asked (401, 403), at most ten a second;
  // the next line says how many were left out. From any thread. Before the first request.
  void set_log(LogSink log) { log_ = std::move(log); }
  // None: certificates alone let in, and to everything.
  void set_tokens(std::shared_ptr<const Tokens> tokens);

 private:
  friend class Visit;

  std::expected<Principal, Problem> principal(const Head& head, const Peer& peer) const;
  void log_refusal(std::string_view text);

  const Access access_;
  const ApiLimits& limits_;
  std::span<const Route> routes_;
  Meters& meters_;
  LogSink log_;
  mutable std::mutex mutex_;
  std::chrono::steady_clock::time_point second_;  // in which `said_` lines were logged
  std::size_t said_ = 0, unsaid_ = 0;
  // Shared: requests under way keep what they began with when the file is read again.
  std::shared_ptr<const Tokens> tokens_;
};

// One request on its way.
class Visit {
 public:
  // All must outlive it.
  Visit(Front& front, const Head& head, const Peer& peer, std::string id);
  // Of a head that could not be read.
  Visit(Front& front, const Problem& problem, const Head& head, const Peer& peer, std::string id);

  // An answer that needs no body, such as a refusal; none where answer() is to be asked.
  std::optional<Reply> before_body();
  Reply answer(std::string body);
  // Counts it.
  void finish(int status) const;

 private:
  std::expected<void, Problem> admit();
  std::expected<void, Problem> check_origin() const;
  std::expected<void, Problem> check_rights(const Route& route);
  std::expected<void, Problem> check_body(const Route& route);
  std::expected<void, Problem> unpack(std::string& body);
  Reply ask(std::string body);
  Reply finished(Reply reply) const;

  Front& front_;
  const Head& head_;
  const Peer& peer_;
  std::string id_;
  std::optional<Problem> problem_;
  std::string refused_;  // why, for the log
  const Route* route_ = nullptr;
  std::string allow_;  // methods, where that is the question
  Call call_;
  Share body_share_;
  bool is_stream_ = false;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace weft::serve
