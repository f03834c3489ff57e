// A receiver of webhook notices on a port of its own.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <httplib.h>

#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weft::cli_test {

class Webhook {
 public:
  struct Notice {
    std::string signature, body;
  };
  // Takes `delay` to answer each notice.
  explicit Webhook(std::chrono::milliseconds delay = {}) {
    server_.Post("/hook", [this, delay](const httplib::Request& request, httplib::Response&) {
      std::this_thread::sleep_for(delay);
      const std::lock_guard guard(mutex_);
      notices_.push_back({request.get_header_value("X-Weft-Signature"), request.body});
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    REQUIRE(port_ > 0);
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~Webhook() {
    server_.stop();
    thread_.join();
  }
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  std::string url() const { return fmt::format("http://127.0.0.1:{}/hook", port_); }
  std::vector<Notice> notices() const {
    const std::lock_guard guard(mutex_);
    return notices_;
  }

 private:
  httplib::Server server_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<Notice> notices_;
  std::thread thread_;  // the last: it uses all of the above
};

}  // namespace weft::cli_test
