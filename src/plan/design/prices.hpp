// The price table that a user owns: what can be bought, what it costs and draws, how long cables
// are. docs/prices.md describes the file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"

namespace weft::plan {

// Where the ends of a cable stand to each other.
enum class Span : std::uint8_t { in_rack, row, hall };
inline constexpr std::size_t span_count = 3;
inline constexpr std::int64_t bundle_max = 64;
std::string_view to_text(Span span);

struct Prices {
  struct Switch {
    std::int64_t ports = 0;
    Rate rate;                  // of a port
    std::int64_t breakout = 1;  // most cables on one port, each with its share of the rate
    double price = 0, watts = 0;
    std::string text() const;  // "64 x 800 Gbps"
    // Whether so many cables of each rate fit its ports.
    bool fits(const std::vector<std::pair<Rate, std::int64_t>>& cables) const;
  };
  // A cable with both of its ends, or two transceivers and the fibre between them.
  struct Medium {
    std::string type;  // "DAC", "DR4"
    Rate rate;
    double reach_m = 0;
    double price = 0, watts = 0;   // of the whole cable, or of one transceiver
    bool is_optics = false;        // two transceivers and fibre
    double fibre_price_per_m = 0;  // optics only
    double link_price(double metres) const;
    double link_watts() const { return is_optics ? 2 * watts : watts; }
  };
  struct Nic {
    Rate rate;
    double price = 0, watts = 0;
  };

  std::string file, currency;
  std::array<double, span_count> metres{};
  // Hosts that stand in one rack, and in one row: see span().
  std::int64_t rack_hosts = 0, row_hosts = 0;
  std::vector<Switch> switches;
  std::vector<Medium> media;
  std::vector<Nic> nics;

  // Of a cable whose ends have `hosts` hosts under the smallest scope that holds both; 0: unknown,
  // which counts as the longest.
  Span span(std::int64_t hosts) const;
  // The cables that a link of that rate and length is made of: one, but for a link faster than all
  // in `media` that reach so far the fewest of those that carry it, up to bundle_max, with equal
  // shares of its rate (rounded up).
  struct Bundle {
    std::int64_t cables = 1;
    Rate each;
  };
  Bundle bundle(Rate link, double metres) const;
  double metres_of(Span span) const { return metres[static_cast<std::size_t>(span)]; }
  // The cheapest that does; of equals the one with fewer watts, then the first. A rate that the
  // table does not list takes the next higher one. nullptr: the table has none.
  const Switch* find_switch(const std::vector<std::pair<Rate, std::int64_t>>& cables) const;
  const Medium* find_medium(Rate rate, double metres) const;
  const Nic* find_nic(Rate rate) const;
};

// Fails with all that is wrong, each with its position.
Result<Prices> read_prices(const Config& config);
Result<Prices> load_prices(const std::string& path);

}  // namespace weft::plan
