// Takes the answers of one target apart: prefixes, typed values, JSON subtrees, deletes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/gnmi/leaf.hpp"
#include "adapt/gnmi/misread.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "port/sample.hpp"

namespace gnmi {
class SubscribeResponse;
}

namespace weft::adapt::gnmi {

struct DecodeCounts {
  std::uint64_t notifications = 0, updates = 0, leaves = 0, deletes = 0, samples = 0;
  std::uint64_t duplicates = 0;   // values that the target left out because of newer ones
  std::uint64_t wrong_times = 0;  // notifications that were given the time of their arrival
};

// Is given each leaf that a device sends.
using LeafSink = std::function<void(std::string_view device, const Leaf&)>;

class Decoder {
 public:
  enum class Said : std::uint8_t { update, sync, error, nothing };

  static constexpr std::size_t json_depth_max = 48, elements_max = 64;
  // A target's clock may be so far from ours; values of a time beyond that get our time. So do old
  // values that are still true when a subscription starts.
  static constexpr std::int64_t clock_error_ns_max = 5 * ns_per_minute;

  // `misread` must outlive this. `device` is what samples are said to be of. With a sink, leaves go
  // there and no samples are made.
  Decoder(std::string device, MisreadTable& misread, LeafSink sink = {});
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;
  ~Decoder();

  // Appends what the answer means to `out`, in its order; deletes go first. `now` is its arrival.
  // Cost: a microsecond or so a value.
  Said take(const ::gnmi::SubscribeResponse& response, Timestamp now,
            std::vector<port::Sample>& out);
  // The same, of the message's bytes. Fails: Errc::parse.
  Result<Said> take_bytes(std::string_view bytes, Timestamp now, std::vector<port::Sample>& out);
  // A new session with the target.
  void reset();

  const DecodeCounts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::adapt::gnmi
