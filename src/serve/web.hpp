// A guarded HTTP server for any table of routes: address, tokens, certificates, start and stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "serve/api.hpp"
#include "serve/meters.hpp"
#include "serve/openapi.hpp"

namespace weft::serve {

class Web {
 public:
  using MakeRoutes = std::function<std::vector<Route>(const ApiOptions& options, Meters& meters,
                                                      const std::atomic<bool>& is_stopping)>;
  // Listens when it returns. What `make_routes` is given lives as long as the server.
  // Fails: Errc::io; Errc::value with what is wrong about the options, files of secrets among them;
  // Errc::infeasible for what would let strangers in.
  static Result<std::unique_ptr<Web>> listen(ApiOptions options, const MakeRoutes& make_routes);
  struct Impl;
  explicit Web(std::unique_ptr<Impl> impl);  // for listen(): nobody else can make one
  Web(const Web&) = delete;
  Web& operator=(const Web&) = delete;
  ~Web();  // stops

  std::uint16_t port() const;   // 0 of a socket file
  std::string address() const;  // as `listen`, with the port
  // Reads the tokens and certificates again. Fails: as listen; what was read before stays.
  Status reload();
  // Routes see `is_stopping`; stop() then waits for the requests under way.
  void begin_stop();
  void stop();
  const std::vector<Route>& routes() const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::serve
