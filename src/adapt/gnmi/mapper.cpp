#include "adapt/gnmi/mapper.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "adapt/gnmi/read_value.hpp"

namespace weft::adapt::gnmi {
namespace {

constexpr std::string_view sonic_counters = "COUNTERS";

// "" where the leaf has no such key.
std::string_view key_value(const Leaf& leaf, std::string_view name) {
  for (const PathKey& key : leaf.keys)
    if (key.name == name) return key.value;
  return {};
}

}  // namespace

Mapper::PartType Mapper::part_type(std::string_view type) {
  using enum PartType;
  constexpr std::array<std::pair<std::string_view, PartType>, 7> types{{{"FAN", fan},
                                                                        {"FAN_TRAY", fan},
                                                                        {"POWER_SUPPLY", supply},
                                                                        {"LINECARD", card},
                                                                        {"FABRIC", card},
                                                                        {"CONTROLLER_CARD", card},
                                                                        {"TRANSCEIVER", optic}}};
  for (const auto& [name, known] : types)
    if (name == type) return known;
  return other;
}

template <class Map>
typename Map::mapped_type* Mapper::entry(Map& map, const typename Map::key_type& key,
                                         std::string_view path) {
  const auto at = map.find(key);
  if (at != map.end()) return &at->second;
  if (map.size() < entries_max) return &map[key];
  misread_.add(path, Misread::too_many);
  return nullptr;
}

void Mapper::take(const Leaf& leaf, Timestamp t, std::vector<port::Sample>& out) {
  if (!leaf.elements.empty() && leaf.elements.front() == sonic_counters)
    return take_sai(leaf, t, out);
  const Row* const row = find_row(leaf.path);
  if (row == nullptr) return misread_.add(leaf.path, Misread::unmapped);
  if (!row->component_key.empty() && key_value(leaf, row->component_key).empty())
    return misread_.add(leaf.path, Misread::no_key);
  switch (row->reading) {
    case Reading::part_type:
      return take_type(*row, leaf, out);
    case Reading::optic_name:
      return take_optic(*row, leaf);
    case Reading::part_status:
    case Reading::part_celsius:
      return take_part(*row, leaf, t, out);
    case Reading::share_used:
    case Reading::share_whole:
      return take_share(*row, leaf, t, out);
    default:
      return take_row(*row, leaf, t, out);
  }
}

// COUNTERS/Ethernet0/SAI_PORT_STAT_...: the port is an element; before it may stand a wildcard.
void Mapper::take_sai(const Leaf& leaf, Timestamp t, std::vector<port::Sample>& out) {
  const SaiField field = sai_field(leaf.elements.back());
  if (!field.is_known || leaf.elements.size() < 3)
    return misread_.add(leaf.elements.back(), Misread::unmapped);
  const auto value = read_value(Reading::count, leaf.value, t);
  if (!value) return misread_.add(leaf.elements.back(), value.error());
  const std::string_view port = leaf.elements[leaf.elements.size() - 2];
  out.push_back({t, device_, std::string(port), field.metric, field.index, *value});
}

std::expected<std::uint32_t, Misread> Mapper::index_of(const Row& row, const Leaf& leaf,
                                                       const std::string& component) {
  if (row.index_key.empty() || row.reading == Reading::percent_of_all) return 0;
  // A list entry within a list entry: its key is the last of that name.
  std::string_view text;
  for (const PathKey& key : leaf.keys)
    if (key.name == row.index_key) text = key.value;
  const auto index = trailing_number(text);
  if (!index) return std::unexpected(Misread::no_key);
  if (row.index_key != "name") return *index;
  // Queues UC3 and MC3 must not pass for one: the first that comes is the one.
  std::string* const name =
      entry(queue_names_, {component, port::Metric::queue_bytes, *index}, leaf.path);
  if (name == nullptr) return std::unexpected(Misread::too_many);
  if (name->empty()) *name = text;
  if (*name != text) return std::unexpected(Misread::no_key);
  return *index;
}

void Mapper::take_row(const Row& row, const Leaf& leaf, Timestamp t,
                      std::vector<port::Sample>& out) {
  if (row.reading == Reading::percent_of_all && key_value(leaf, row.index_key) != "ALL") return;
  const auto value = read_value(row.reading, leaf.value, t);
  if (!value) return misread_.add(leaf.path, value.error());
  const std::string_view name =
      row.component_key.empty() ? std::string_view{} : key_value(leaf, row.component_key);
  const bool is_optic = leaf.path.starts_with("components/component/transceiver/");
  port::Sample sample{t,          device_, is_optic ? optic_component(name) : std::string(name),
                      row.metric, 0,       *value};
  const auto index = index_of(row, leaf, sample.component);
  if (!index) return misread_.add(leaf.path, index.error());
  sample.index = *index;
  if (row.is_ranked) return take_ranked(row, std::move(sample), out);
  out.push_back(std::move(sample));
}

void Mapper::take_ranked(const Row& row, port::Sample sample, std::vector<port::Sample>& out) {
  const SeriesKey key{sample.component, sample.metric, sample.index};
  const bool is_new = !series_.contains(key);
  Series* const series = entry(series_, key, row.path);
  if (series == nullptr) return;
  const bool is_chosen = !is_new && !series->held;
  if (is_chosen) {
    if (series->rank == row.rank) out.push_back(std::move(sample));
  } else if (row.rank == 0 || is_synced_) {
    *series = {row.rank, std::nullopt};
    out.push_back(std::move(sample));
  } else if (is_new || row.rank <= series->rank) {
    *series = {row.rank, Held{sample.t, sample.value}};
  }
}

void Mapper::take_optic(const Row& row, const Leaf& leaf) {
  const auto name = to_name(leaf.value);
  if (!name) return misread_.add(leaf.path, Misread::bad_value);
  const std::string interface(key_value(leaf, row.component_key));
  const auto before = optic_of_.find(interface);
  if (before != optic_of_.end()) {
    if (before->second == *name) return;
    forget_optic_of(interface);
  }
  if (name->empty()) return;
  const std::string optic(*name);
  std::string* const owner = entry(interface_of_, optic, leaf.path);
  std::string* const mine = entry(optic_of_, interface, leaf.path);
  if (owner == nullptr || mine == nullptr) return;
  *mine = optic;
  // Interfaces that share an optic: it goes by the name of the first.
  if (owner->empty() || interface < *owner) *owner = interface;
}

void Mapper::take_type(const Row& row, const Leaf& leaf, std::vector<port::Sample>& out) {
  const auto type = to_name(leaf.value);
  if (!type) return misread_.add(leaf.path, Misread::bad_value);
  const std::string name(key_value(leaf, row.component_key));
  Part* const part = entry(parts_, name, leaf.path);
  if (part != nullptr) set_type(name, *part, part_type(*type), out);
}

void Mapper::set_type(const std::string& name, Part& part, PartType type,
                      std::vector<port::Sample>& out) const {
  part.type = type;
  if (part.status) emit_status(name, type, *std::exchange(part.status, std::nullopt), out);
  if (part.celsius) emit_celsius(name, type, *std::exchange(part.celsius, std::nullopt), out);
}

// What it means depends on what the component is, which may be told later.
void Mapper::take_part(const Row& row, const Leaf& leaf, Timestamp t,
                       std::vector<port::Sample>& out) {
  const auto value = read_value(row.reading, leaf.value, t);
  if (!value) return misread_.add(leaf.path, value.error());
  const std::string name(key_value(leaf, row.component_key));
  Part* const part = entry(parts_, name, leaf.path);
  if (part == nullptr) return;
  const Held held{t, *value};
  const bool is_known = part->type != PartType::unknown;
  if (row.reading == Reading::part_celsius) {
    if (is_known || is_synced_) return emit_celsius(name, part->type, held, out);
    part->celsius = held;
    return;
  }
  if (is_known) return emit_status(name, part->type, held, out);
  // Held also later: the type may come with the component's next update.
  part->status = held;
  if (is_synced_) misread_.add(leaf.path, Misread::unknown_part);
}

void Mapper::emit_status(const std::string& name, PartType type, Held held,
                         std::vector<port::Sample>& out) const {
  const auto emit = [&](port::Metric metric) {
    out.push_back({held.t, device_, name, metric, 0, held.value});
  };
  if (type == PartType::fan) emit(port::Metric::fan_ok);
  if (type == PartType::supply) emit(port::Metric::psu_ok);
  if (type == PartType::card) emit(port::Metric::card_ok);
}

void Mapper::emit_celsius(const std::string& name, PartType type, Held held,
                          std::vector<port::Sample>& out) const {
  const bool is_optic = type == PartType::optic;
  out.push_back({held.t, device_, is_optic ? optic_component(name) : name,
                 is_optic ? port::Metric::optic_celsius : port::Metric::celsius, 0, held.value});
}

void Mapper::take_share(const Row& row, const Leaf& leaf, Timestamp t,
                        std::vector<port::Sample>& out) {
  const auto value = read_value(row.reading, leaf.value, t);
  if (!value) return misread_.add(leaf.path, value.error());
  const std::string name(row.component_key.empty() ? std::string_view{}
                                                   : key_value(leaf, row.component_key));
  Share* const share = entry(shares_, {name, row.metric, 0}, leaf.path);
  if (share == nullptr) return;
  (row.reading == Reading::share_used ? share->used : share->whole) = *value;
  // One sample for each value in use, whichever of the two comes first.
  if (!share->used || !share->whole) return;
  const double used = *std::exchange(share->used, std::nullopt);
  if (*share->whole <= 0 || used > *share->whole)
    return misread_.add(leaf.path, Misread::bad_value);
  out.push_back({t, device_, name, row.metric, 0, used / *share->whole});
}

std::string Mapper::optic_component(std::string_view name) const {
  const auto at = interface_of_.find(name);
  return at == interface_of_.end() ? std::string(name) : at->second;
}

void Mapper::forget_optic_of(const std::string& interface) {
  const auto mine = optic_of_.find(interface);
  if (mine == optic_of_.end()) return;
  const auto owner = interface_of_.find(mine->second);
  if (owner != interface_of_.end() && owner->second == interface) interface_of_.erase(owner);
  optic_of_.erase(mine);
}

void Mapper::forget_component(const std::string& name) {
  const auto forget = [&](auto& map) {
    const SeriesKey first{name, port::Metric{}, 0};
    auto last = map.lower_bound(first);
    while (last != map.end() && last->first.component == name) ++last;
    map.erase(map.lower_bound(first), last);
  };
  forget(shares_);
  forget(series_);
  forget(queue_names_);
  parts_.erase(name);
  interface_of_.erase(name);
}

void Mapper::forget(std::span<const std::string_view> elements, std::span<const PathKey> keys) {
  if (elements.empty() || keys.empty()) return;
  const std::string name(keys.front().value);
  if (elements.front() == "interfaces" &&
      (elements.size() == 2 || elements.back() == "transceiver"))
    forget_optic_of(name);
  const std::size_t entry_depth = elements.front() == "qos" ? 3 : 2;
  if (elements.size() == entry_depth) forget_component(name);
}

void Mapper::synced(std::vector<port::Sample>& out) {
  is_synced_ = true;
  for (auto& [key, series] : series_) {
    if (!series.held) continue;
    const Held held = *std::exchange(series.held, std::nullopt);
    out.push_back({held.t, device_, key.component, key.metric, key.index, held.value});
  }
  for (auto& [name, part] : parts_) {
    if (part.type != PartType::unknown) continue;
    if (part.celsius)
      emit_celsius(name, part.type, *std::exchange(part.celsius, std::nullopt), out);
    if (part.status) misread_.add("components/component/state/oper-status", Misread::unknown_part);
  }
}

void Mapper::reset() {
  is_synced_ = false;
  parts_.clear();
  interface_of_.clear();
  optic_of_.clear();
  shares_.clear();
  series_.clear();
  queue_names_.clear();
}

}  // namespace weft::adapt::gnmi
