// The HTTP/1.1 server, by Boost.Beast: connections, their limits and deadlines.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "serve/api.hpp"
#include "serve/front.hpp"
#include "serve/listener.hpp"
#include "serve/meters.hpp"
#include "serve/tls.hpp"

namespace weft::serve {

class HttpServer {
 public:
  // All must outlive the server.
  struct Needs {
    const ApiOptions& options;
    Front& front;
    Meters& meters;
    const std::atomic<bool>& is_stopping;  // set before stop()
  };
  // One thread does all input and output; at most `limits.workers` threads, and one for each event
  // client, wait for routes. Fails: Errc::io where there are no descriptors or threads for that.
  static Result<std::unique_ptr<HttpServer>> start(const Needs& needs, Listener listener);
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);  // for start()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();  // stops

  // Of connections from now on; null: plain HTTP.
  void set_tls(std::shared_ptr<const TlsContext> tls);
  // Closes idle connections, answers requests under way for at most `limits.farewell` and waits for
  // the routes that they are in.
  void stop();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::serve
