// The service's face: HTTP with JSON, server-sent events, metrics and a status page.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "os/log.hpp"
#include "port/store.hpp"
#include "serve/bus.hpp"
#include "serve/openapi.hpp"
#include "serve/service.hpp"

namespace weft::serve {

struct ApiLimits {
  std::size_t connections = 256;
  std::size_t event_clients = 32;  // of the connections; the others stay for everything else
  std::size_t workers = 32;        // requests answered at a time, beside event clients
  std::size_t head_bytes = 16 << 10;
  std::size_t body_bytes = 16 << 20;
  std::size_t bodies_bytes = 128 << 20;         // of all requests together
  std::size_t lines = 200'000;                  // of a body
  std::size_t requests = 10'000;                // of a connection
  std::chrono::milliseconds idle{30'000};       // between requests
  std::chrono::milliseconds head{10'000};       // handshake; and a head from its first byte on
  std::chrono::milliseconds heartbeat{15'000};  // of events
  std::chrono::milliseconds farewell{5'000};    // for requests under way when it stops
  struct Patience {
    std::chrono::milliseconds body{60'000};   // for all of it
    std::chrono::milliseconds write{10'000};  // for some bytes to be taken
  };
  Patience patience;
};

struct ApiOptions {
  std::string listen = "127.0.0.1:0";  // or "[::1]:0", "unix:/path"
  // Paths; "": none. Beyond this machine it takes a token and TLS, or certificates of clients.
  std::string certificate, key, client_ca, tokens;
  // Keys (JWKS, a path) of JWT-SVIDs that are let in for this audience, with what `tokens` says.
  std::string jwt_keys, audience;
  ApiLimits limits;
  // A body of Alertmanager's webhook as lines of records. None: 501.
  std::function<Result<std::vector<std::string>>(std::string_view body)> alertmanager;
  // JSON: the running jobs; what taking the cause of a case (its document) out of service costs
  // each of them. None: nothing is known of jobs. Any thread.
  std::function<Result<std::string>()> jobs;
  std::function<Result<std::string>(std::string_view document)> jobs_of_case;
  // Traces of jobs. `keep`: one of a process on a host, packed; `job` "": the one that runs there.
  // `list`, `of_job`, `picture` (colltrace::make_picture): JSON. None: nothing keeps traces. Any
  // thread.
  struct Traces {
    std::function<Status(std::string_view host, std::string_view name, std::string_view job,
                         std::string_view packed)>
        keep;
    std::function<std::string()> list;
    std::function<Result<std::string>(std::string_view job)> of_job, picture;
  };
  Traces traces;
  // Traffic engineering. `report`: what the agent on a switch says, a te::SwitchReport, answered
  // once, at once or within `wait_ns`; `state`: JSON. None: 501. Any thread.
  struct TrafficEngineering {
    std::function<void(std::string_view name, std::string_view report, std::int64_t wait_ns,
                       std::function<void(Result<std::string>)> answer)>
        report;
    std::function<std::string()> state;
  };
  TrafficEngineering te;
  // A table of path health as bytes. None: nobody writes one. Any thread.
  std::function<Result<std::string>()> path_health;
  // Redacted copies of snapshots for whoever has a link: whether it is one of ours and not expired;
  // the copy of a snapshot (its document). None: 501. Any thread.
  struct VendorCopies {
    std::function<bool(std::string_view id, std::int64_t expires_s, std::string_view signature)>
        is_ours;
    std::function<Result<std::string>(std::string_view document)> copy;
  };
  VendorCopies vendor;
  std::function<std::string()> metrics;  // more of them, Prometheus text; any thread
  LogSink log;                           // from any thread
};

class Api {
 public:
  // Listens when it returns. `service`, `store` and `bus` must outlive the API.
  // Fails: Errc::io; Errc::value with what is wrong about the options, files of secrets among them;
  // Errc::infeasible for what would let strangers in.
  static Result<std::unique_ptr<Api>> listen(ApiOptions options, Service& service,
                                             port::Store& store, Bus& bus);
  struct Impl;
  explicit Api(std::unique_ptr<Impl> impl);  // for listen(): nobody else can make one
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;
  ~Api();  // stops

  std::uint16_t port() const;   // 0 of a socket file
  std::string address() const;  // as `listen`, with the port
  // Reads the tokens and certificates again. Fails: as listen; what was read before stays.
  Status reload();
  // Requests under way get their answers, event streams their end. Waits for the service where it
  // is asked something just then.
  void stop();

  // What it serves.
  const std::vector<Route>& routes() const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::serve
