#include "plan/spares/outages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/fabric/zones.hpp"

namespace weft::plan::spares {
namespace {

using model::NodeId;
using model::ScopeId;
using model::ScopeKind;

constexpr double per_year_max = 1e4;
constexpr std::uint32_t crews_max = 1'000'000;

// Consecutive hosts that lie in one scope of that kind.
std::vector<Zone> runs_of(const model::Fabric& fabric, std::span<const NodeId> hosts,
                          ScopeKind kind) {
  std::vector<Zone> runs;
  ScopeId last;
  for (const NodeId host : hosts) {
    const ScopeId scope = fabric.enclosing(host, kind);
    if (runs.empty() || scope != last) {
      const auto at = runs.empty() ? 0 : runs.back().first + runs.back().count;
      runs.push_back({scope.valid() ? fabric.name(scope) : std::string("fabric"), at, 0});
    }
    ++runs.back().count;
    last = scope;
  }
  return runs;
}

std::vector<Zone> zones_of(const model::Fabric& fabric, std::span<const NodeId> hosts) {
  if (const auto kind = model::zone_kind(fabric)) return runs_of(fabric, hosts, *kind);
  return {{"fabric", 0, static_cast<std::uint32_t>(hosts.size())}};
}

// Hosts so that those of a zone, and inside it those of a rack, follow one another.
std::vector<NodeId> sorted_hosts(const model::Fabric& fabric) {
  std::vector<NodeId> hosts(fabric.hosts().begin(), fabric.hosts().end());
  std::ranges::stable_sort(hosts, {}, [&](NodeId host) {
    return std::array{fabric.enclosing(host, ScopeKind::region).value,
                      fabric.enclosing(host, ScopeKind::building).value,
                      fabric.enclosing(host, ScopeKind::zone).value,
                      fabric.enclosing(host, ScopeKind::pod).value,
                      fabric.enclosing(host, ScopeKind::rack).value};
  });
  return hosts;
}

class OutagesReader {
 public:
  OutagesReader(const model::Fabric& fabric, Errors& errors)
      : errors_(errors), hosts_(sorted_hosts(fabric)) {
    out_.zones = zones_of(fabric, hosts_);
    racks_ = runs_of(fabric, hosts_, ScopeKind::rack);
  }

  Outages read(const Config& section) {
    Reader reader(section, "spares", errors_);
    out_.target = reader.number("target", 0.999, 0.5, 1 - 1e-9);
    out_.crews = static_cast<std::uint32_t>(reader.count("crews", 0, 0, crews_max));
    if (const Config* lemons = reader.child("lemons")) read_lemons(*lemons);
    const Config* events = reader.child("events");
    if (events == nullptr || events->items.empty())
      reader.error(Errc::parse, reader.where("events"), "\"spares\" has no list of events",
                   "add e.g. events: [{name: host, unit: host, per_year: 1.07, repair: 24 h}]");
    else
      for (const Config& event : events->items) read_event(event);
    reader.finish();
    return std::move(out_);
  }

 private:
  void read_lemons(const Config& section) {
    Reader reader(section, "spares.lemons", errors_);
    out_.lemon_share = reader.number("share", std::nullopt, 0, 0.5);
    out_.lemon_times = reader.number("times", std::nullopt, 1, 1000);
    reader.finish();
  }

  void read_event(const Config& section) {
    Reader reader(section, fmt::format("spares.events[{}]", out_.kinds.size()), errors_);
    Outage event;
    event.name = reader.text("name", std::nullopt);
    if (!names_.insert(event.name).second)
      reader.error(Errc::value, reader.where("name"),
                   fmt::format("there are two events named \"{}\"", event.name),
                   "give each a name of its own");
    event.per_year = reader.number("per_year", std::nullopt, 0, per_year_max);
    event.repair_h = reader.duration("repair", std::nullopt).seconds() / 3600;
    static const std::vector<std::string> shapes{"constant", "exponential", "lognormal"};
    event.shape = static_cast<Outage::Shape>(reader.choice("shape", shapes, 2));
    if (reader.has("hosts") == reader.has("unit"))
      reader.error(Errc::parse, reader.where(), "an event strikes a unit or a number of hosts",
                   "give either \"unit: host | rack | zone\" or \"hosts: 48\"");
    else if (reader.has("hosts"))
      event.units = blocks(static_cast<std::uint32_t>(
          reader.count("hosts", std::nullopt, 1, static_cast<std::int64_t>(hosts_.size()))));
    else
      event.units = units(reader);
    reader.finish();
    out_.kinds.push_back(std::move(event));
  }

  std::vector<Outage::Unit> units(Reader& reader) const {
    static const std::vector<std::string> names{"host", "rack", "zone"};
    switch (reader.choice("unit", names, std::nullopt)) {
      case 0:
        return blocks(1);
      case 1:
        return from(racks_);
      default:
        return from(out_.zones);
    }
  }
  std::vector<Outage::Unit> from(const std::vector<Zone>& runs) const {
    std::vector<Outage::Unit> units;
    std::uint32_t zone = 0;
    for (const Zone& run : runs) {
      while (run.first >= out_.zones[zone].first + out_.zones[zone].count) ++zone;
      units.push_back({zone, run.first, run.count});
    }
    return units;
  }
  // Each zone in blocks of so many neighbouring hosts; its last block may be smaller.
  std::vector<Outage::Unit> blocks(std::uint32_t size) const {
    std::vector<Outage::Unit> units;
    if (size == 0) return units;  // an error was found
    for (std::uint32_t z = 0; z < out_.zones.size(); ++z)
      for (std::uint32_t at = 0; at < out_.zones[z].count; at += size)
        units.push_back({z, out_.zones[z].first + at, std::min(size, out_.zones[z].count - at)});
    return units;
  }

  Errors& errors_;
  std::vector<NodeId> hosts_;
  std::vector<Zone> racks_;
  std::set<std::string> names_;
  Outages out_;
};

}  // namespace

Outages read_outages(const model::Fabric& fabric, const Config& section, Errors& errors) {
  return OutagesReader(fabric, errors).read(section);
}

}  // namespace weft::plan::spares
