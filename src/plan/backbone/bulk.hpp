// Bulk transfers over a backbone: which rate on which path in which slot, so that links need least
// capacity beside the traffic that is there anyway.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.hpp"
#include "plan/backbone/paths.hpp"
#include "plan/backbone/wan.hpp"

namespace weft::plan::backbone {

struct Slots {
  std::uint32_t count = 96;
  double seconds = 900;  // of each
};

struct Transfer {
  std::string id;
  std::uint32_t from = 0;
  std::vector<std::uint32_t> to;  // several: one copy on each link of a tree
  double gbit = 0;
  std::uint32_t release = 0, deadline = 0;  // the slots from release to before deadline
  double gbps_max = std::numeric_limits<double>::infinity();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pauses;  // from slot to before slot

  bool may_send(std::uint32_t slot) const;
};

// CSV: id, src, dst ("a;b": to both), size ("2 TB"), release and deadline ("90 min" from the begin
// of the day; rounded to whole slots inside), perhaps rate_max and pause ("2 h-3 h;5 h-6 h"). Fails
// with every error, also where size, rate_max and pauses leave no way to meet the deadline.
Result<std::vector<Transfer>> read_transfers(std::string_view text, const std::string& file,
                                             const Wan& wan, const Slots& slots);

// Loads in Gbit/s, by link and slot: row l * slots + s.
using Loads = std::vector<double>;
// Every pair on its path of fewest links, the mean of the intervals of each slot. `day`: the
// intervals whose time begins with it; "": all. Fails where their number is no multiple of the
// slots'.
Result<Loads> background(const Series& series, const std::string& day, const Wan& wan,
                         const Slots& slots);
// The days of the series that come before `day` and have all their intervals, in order.
std::vector<std::string> days_before(const Series& series, const std::string& day,
                                     const Slots& slots);

enum class BulkObjective : std::uint8_t { peaks, mlu };
inline constexpr auto bulk_objective_names = std::to_array<std::string_view>({"peaks", "mlu"});
constexpr std::span<const std::string_view> names_of(BulkObjective) { return bulk_objective_names; }
constexpr std::string_view to_text(BulkObjective o) { return name_of(o); }

enum class Known : std::uint8_t { day_ahead, release };  // when transfers become known
inline constexpr auto known_names = std::to_array<std::string_view>({"day_ahead", "release"});
constexpr std::span<const std::string_view> names_of(Known) { return known_names; }
constexpr std::string_view to_text(Known k) { return name_of(k); }

struct BulkOptions {
  BulkObjective objective = BulkObjective::peaks;
  std::uint32_t paths = 3;
  double gap = 0.005;
  // Sites between may hold data for later slots. Then transfers to one receiver take any way
  // through the network and time, and the bound holds for all of them.
  bool store = false;
  Slots slots;
};

struct BulkAnswer {
  // Gbit/s for the sum of the links' peaks, use of the worst link and slot for mlu.
  double background = 0,
         uniform = 0;  // without transfers; each at a constant rate on its first path
  // No plan whose excess is not above this one's has a value below `bound`. gap: value / bound - 1.
  double value = 0, bound = 0, gap = 0;
  // Sums over links of what their peaks are above capacity, Gbit/s.
  double excess = 0, uniform_excess = 0;
  double excess_price = 0;  // what a Gbit/s of it cost in Gbit/s of peaks; 0: nothing was short
  std::uint32_t iterations = 0, replans = 0;
  double seconds = 0;
  std::size_t columns = 0;
  Loads load, uniform_load;   // with the background
  std::vector<double> price;  // of each row of Loads, per Gbit/s
  std::vector<double> sent;   // Gbit of each transfer
  double waited = 0;          // share of all Gbit sent that waited on the way
  double over_gbps = 0;       // the most by which a link's peak is above its capacity

  struct Send {
    std::uint32_t transfer, slot;
    double gbps;
    std::vector<std::uint32_t> links;
    std::uint32_t stage = 0;  // how often it has waited on its way
  };
  std::vector<Send> sends;
};

// With the background known.
BulkAnswer plan_bulk(const Wan& wan, const std::vector<Transfer>& transfers,
                     const Loads& background, const BulkOptions& options);

// As the day goes: planned again in every slot, on a forecast of the background that the slots so
// far and `history` (earlier days) give. Value is what comes about with the true background; the
// bound is that of knowing it.
BulkAnswer replay_bulk(const Wan& wan, const std::vector<Transfer>& transfers,
                       const Loads& background, const std::vector<Loads>& history, Known known,
                       const BulkOptions& options);

// The background of the slots from `now` on, by what came before.
Loads forecast(const Loads& seen, const std::vector<Loads>& history, std::uint32_t now,
               const Slots& slots);

std::string to_table(const Wan& wan, const std::vector<Transfer>& transfers,
                     const BulkAnswer& answer, const BulkOptions& options, std::size_t rows);
std::string to_json(const Wan& wan, const std::vector<Transfer>& transfers,
                    const BulkAnswer& answer, const BulkOptions& options);
// What a drawing shows besides: seconds of a slot; of each transfer the slots from release to
// before deadline and its rate by slot; of each link the loads by slot before the plan and if
// uniform.
std::string plan_json(const Wan& wan, const std::vector<Transfer>& transfers,
                      const BulkAnswer& answer, const BulkOptions& options);
// CSV: id, slot, gbps, links ("a>b;b>c"), stage (as in Send).
std::string write_plan(const Wan& wan, const std::vector<Transfer>& transfers,
                       const BulkAnswer& answer);

}  // namespace weft::plan::backbone
