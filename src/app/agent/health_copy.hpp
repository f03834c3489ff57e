// The service's table of path health, copied to files of this machine.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "adapt/live/http_client.hpp"
#include "base/result.hpp"
#include "operate/health/table.hpp"

namespace weft::app {

struct HealthCopySettings {
  adapt::live::ServiceUrl service;
  std::string token;  // with the role read; "": none
  adapt::live::TlsFiles tls;
  std::vector<std::string> files;
  std::int64_t interval_ns = ns_per_s;
};

// A thread that asks for it again and again. While the service does not answer the files stay as
// they are, and grow old; that is said once on standard error.
class HealthCopy {
 public:
  // Fails: as Publisher::open.
  static Result<std::unique_ptr<HealthCopy>> open(HealthCopySettings settings);
  HealthCopy(HealthCopySettings settings, std::vector<operate::health::Publisher> files);

 private:
  void run(const std::stop_token& stop);
  Status copy();

  HealthCopySettings settings_;
  std::vector<operate::health::Publisher> files_;
  std::optional<adapt::live::HttpClient> client_;
  bool is_told_ = false;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace weft::app
