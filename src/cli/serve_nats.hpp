// The service's lines from NATS: what becomes of those that are rejected, and its metrics.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/live/nats_feed.hpp"
#include "base/result.hpp"
#include "serve/service.hpp"

namespace weft::cli {

class ServedNats {
 public:
  using Say = std::function<void(std::string_view)>;

  // Lines go to `service`, which must outlive this.
  ServedNats(adapt::live::NatsFeedSettings settings, serve::Service& service, Say say);

  // Prometheus text format.
  std::string metrics() const;

 private:
  Status take(std::string_view feed, const std::vector<std::string>& lines);

  serve::Service& service_;
  Say say_;
  std::atomic<std::uint64_t> rejected_ = 0;
  adapt::live::NatsFeed feed_;  // last: it uses the others
};

}  // namespace weft::cli
