// Shares that exporters give as parts: memory that is free and all of it, seconds of a processor by
// what it did. Internal to the room.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/timestamp.hpp"
#include "port/sample.hpp"

namespace weft::observe::telemetry {

enum class SharePart : std::uint8_t { none, left, used, total };
// What a part is: an amount as it is now, or a counter that grows from page to page.
enum class ShareOf : std::uint8_t { amount, growth };

// Adds the parts of one page up and says what share is in use: used / (used + left), or of the
// total where there is one. Of counters it is the share of their growth since the page before;
// there is none where series came or went in between, or the whole did not grow: they began anew.
class ShareAccumulator {
 public:
  struct Key {
    std::string device, component;
    port::Metric metric = port::Metric::cpu_share;
    std::uint32_t index = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Counts {
    std::uint64_t incomplete = 0;  // a part without its others
    std::uint64_t unsteady = 0;    // counters without a page before that they can be compared with
    std::uint64_t refused = 0;     // beyond 200,000 that are remembered
  };

  void add(const Key& key, SharePart part, ShareOf of, double value, Timestamp t);
  // Of all that was added since the last call, in the order of their keys.
  void end_page(std::vector<port::Sample>& out);
  const Counts& counts() const { return counts_; }

 private:
  struct Amount {
    double value = 0;
    std::uint32_t series = 0;
  };
  struct Sum {
    Amount left, used, total;
    Timestamp t;
    ShareOf of = ShareOf::amount;
    Amount& of_part(SharePart part);
  };
  static double whole_of(const Sum& sum);
  bool to_growth(const Key& key, Sum& sum);

  std::map<Key, Sum> page_, before_;
  Counts counts_;
};

}  // namespace weft::observe::telemetry
