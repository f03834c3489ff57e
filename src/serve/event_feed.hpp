// Server-sent events: what the bus announces and the audit log keeps, without a gap.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "port/store.hpp"
#include "serve/bus.hpp"
#include "serve/http.hpp"
#include "serve/meters.hpp"

namespace weft::serve {

// Audit entries come from the store, numbered, so that a client which gives the last number it saw
// gets all that follow. Cases and repairs come from the bus; a client that comes back first gets
// those that changed meanwhile. Needs of the service: it announces what it committed before it
// commits again, and documents carry the time of their commit.
class EventFeed final : public ByteStream {
 public:
  struct Needs {
    port::Store& store;
    Bus& bus;
    const std::atomic<bool>& is_stopping;
    Meters& meters;
    std::chrono::milliseconds heartbeat;
  };
  // After the entry number `after`, or from now on.
  EventFeed(const Needs& needs, std::optional<std::uint64_t> after, Share seat);

  std::optional<std::string> next() override;

 private:
  // Of the stream's life, one after the other.
  enum class Phase : std::uint8_t { hello, catching_up, live, over };

  Result<std::string> hello();
  Result<std::string> changed_documents();
  Result<std::string> deliver(std::chrono::milliseconds patience);
  std::string last_words(std::string_view event, std::string_view reason);

  Needs needs_;
  std::optional<std::uint64_t> after_;
  Share seat_;
  Bus::Listener listener_;
  Phase phase_ = Phase::hello;
  std::uint64_t seq_ = 0;  // the last entry that was sent
  std::chrono::steady_clock::time_point heard_;
};

// One event; "" for `id` gives none.
std::string event_text(std::string_view event, std::string_view id, std::string_view data);

}  // namespace weft::serve
