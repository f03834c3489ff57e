// A backbone: sites, directed links, and demands between sites. Rates are in Gbit/s.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace weft::plan::backbone {

inline constexpr std::size_t site_count_max = 20'000, cable_count_max = 200'000;
inline constexpr std::size_t class_count = 4, series_cells_max = 20'000'000;

// As JSON has them: bits per second, bytes.
inline double bps(double gbps) { return 1e9 * gbps; }
inline double bytes_of(double gbit) { return 1e9 / 8 * gbit; }

struct Cable {
  std::uint32_t a = 0, b = 0;
  double gbps = 0;                            // each way
  std::string group;                          // cables of one name fail together; "": alone
  std::optional<double> unavailability = {};  // share of the time in which it is down
};

// In degrees; on a plane, whatever unit the file has.
struct Place {
  double lon = 0, lat = 0;
};

// Cable c is the links 2c (from a to b) and 2c + 1 (from b to a).
struct Wan {
  std::vector<std::string> sites;
  std::vector<std::optional<Place>> places;  // of each site that has one, or empty
  std::vector<Cable> cables;

  std::size_t link_count() const { return 2 * cables.size(); }
  std::uint32_t from(std::size_t link) const {
    const Cable& c = cables[link / 2];
    return link % 2 == 0 ? c.a : c.b;
  }
  std::uint32_t to(std::size_t link) const { return from(link ^ 1); }
  double gbps(std::size_t link) const { return cables[link / 2].gbps; }
};

// What the traffic is for: stages in the life of a model, and the rest.
enum class Cause : std::uint8_t { ingest, replication, freshness, checkpoints, inference, other };
inline constexpr auto cause_names = std::to_array<std::string_view>(
    {"ingest", "replication", "freshness", "checkpoints", "inference", "other"});
constexpr std::span<const std::string_view> names_of(Cause) { return cause_names; }
constexpr std::string_view to_text(Cause cause) { return name_of(cause); }
inline constexpr std::size_t cause_count = cause_names.size();

struct Demand {
  std::uint32_t from = 0, to = 0;
  double gbps = 0;
  std::uint8_t priority = 0;  // 0 goes first; below class_count
  Cause cause = Cause::other;
};

struct WanFile {
  Wan wan;
  std::vector<Demand> demands;  // of SNDlib's files
};

struct WanOptions {
  // For cables whose file states no capacity. Several: drawn for each by `seed`.
  std::vector<Rate> capacity;
  std::uint64_t seed = 1;
};

// GraphML (Topology Zoo: LinkSpeedRaw; `rate` or `capacity` with a unit), SNDlib XML (Mbit/s unless
// <unit> says otherwise; preInstalledModule, else the largest additionalModule), or CSV: src, dst
// and one of capacity ("100 Gbps"), capacity_mbps, none, and perhaps group and unavailability
// ("0.1 %"); or kind,a,b,c,d with rows "node,index,label,lon,lat" and "link,index,index". Cables
// are bidirectional. Fails with every error: unknown ends, loops, capacities that are missing or
// not positive.
Result<WanFile> read_wan(std::string_view text, const std::string& file,
                         const WanOptions& options = {});
Result<WanFile> load_wan(const std::string& path, const WanOptions& options = {});

// CSV: id, lon, lat. Places of sites, instead of what the topology states. Fails with every error.
Status read_places(std::string_view text, const std::string& file, Wan& wan);
// A list of {name, lon, lat}, for maps; without a place, both are null.
std::string sites_json(const Wan& wan);

// A share of the time, "99.9 %" or "0.999", from 0 to 1.
Result<double> parse_share(const Token& token);

// Sites by name, for readers.
class SiteNames {
 public:
  explicit SiteNames(const Wan& wan);
  Result<std::uint32_t> find(std::string_view name, const Where& where) const;

 private:
  std::map<std::string, std::uint32_t, std::less<>> by_name_;
  const Wan& wan_;
};

// Measured matrices: one row per interval, one column per pair, in Mbit/s.
struct Series {  // at most series_cells_max where it is read from demands
  struct Pair {
    std::uint32_t from = 0, to = 0;
  };
  std::vector<Pair> pairs;
  std::vector<std::string> times;
  std::vector<float> mbps;  // row by row

  const float* row(std::size_t i) const { return &mbps[i * pairs.size()]; }
};

// CSV with the columns time and SRC>DST; or demands with the column time, whose classes and causes
// are added up.
Result<Series> read_series(std::string_view text, const std::string& file, const Wan& wan);
bool is_series(std::string_view text);
// One interval; "": that with the largest sum. Fails: Errc::unknown on a time that is not there.
Result<std::vector<Demand>> demands_at(const Series& series, const std::string& time);

// CSV: src, dst, rate ("1.5 Gbps"), perhaps class (1 to 4; 1 goes first, 4 where it is empty),
// cause (other where it is empty) and time. `time`: the interval to take; "": that with the largest
// sum. Fails with every error: unknown sites, classes and causes, demands to their own site; a
// `time` that is not there.
Result<std::vector<Demand>> read_demands(std::string_view text, const std::string& file,
                                         const Wan& wan, const std::string& time = "");
// Demands with the column time, in the order in which times and pairs first come.
Result<Series> read_demand_series(std::string_view text, const std::string& file, const Wan& wan);
// With the column cause where one is not `other`.
std::string write_demands(const Wan& wan, const std::vector<Demand>& demands);
// The bytes of a file, unpacked where it is gzip.
Result<std::string> read_text(const std::string& path);

struct Gravity {
  double load = 0.5;      // demands on shortest paths, over the sum of all capacities
  double fraction = 1;    // of the ordered pairs
  bool by_class = false;  // 10, 20, 30 and 40 % of each demand in classes 1 to 4
  std::uint64_t seed = 1;
};
// Between every two connected sites, in proportion to the product of masses drawn from a log-normal
// distribution with sigma 1.
std::vector<Demand> gravity_demands(const Wan& wan, const Gravity& options);

}  // namespace weft::plan::backbone
