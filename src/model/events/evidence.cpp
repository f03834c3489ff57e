#include "model/events/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <ranges>

#include "base/json_line.hpp"

namespace weft::model {
namespace {

constexpr std::size_t scanned_rows = 4096;
constexpr std::size_t evidence_bytes = 384;  // of most lines that are written
constexpr std::size_t path_links_max = 64;
constexpr std::size_t class_count_max = 256;
constexpr std::int64_t rtt_us_max = 3'600'000'000;
constexpr std::array<std::string_view, 3> leg_names{"round_trip", "forward", "back"};

class EvidenceReader {
 public:
  explicit EvidenceReader(const Fabric& fabric) : fabric_(fabric) {}

  void add(const JsonLine& line) {
    Evidence row;
    row.t = line.time("t", {}, errors_);
    row.src = node(line, "src");
    row.dst = node(line, "dst");
    row.sport = static_cast<std::uint16_t>(line.count("sport", 0, 0, UINT16_MAX, errors_));
    row.sent = probes(line, "sent", {});
    row.lost = probes(line, "lost", {});
    row.late = probes(line, "late", 0);
    row.damaged = probes(line, "damaged", 0);
    row.duplicates = probes(line, "duplicates", 0);
    if (std::uint64_t{row.lost} + row.late + row.damaged > row.sent)
      refuse(line,
             fmt::format("{} lost, {} late and {} damaged of {} sent", row.lost, row.late,
                         row.damaged, row.sent),
             "count each probe once");
    read_leg(line, row);
    read_class(line, row);
    read_path(line, row);
    if (line.has("path_t")) row.path_t = line.time("path_t", {}, errors_);
    if (const auto rtt = line.object("rtt_us", errors_)) {
      row.rtt_p50_us = static_cast<float>(rtt->number("p50", -1, -1, rtt_us_max, errors_));
      row.rtt_p99_us = static_cast<float>(rtt->number("p99", -1, -1, rtt_us_max, errors_));
    }
    set_.rows.push_back(row);
  }

  Errors& errors() { return errors_; }
  EvidenceSet take() { return std::move(set_); }
  const EvidenceSet& set() const { return set_; }
  void forget_rows() {
    set_.rows.clear();
    set_.links.clear();
  }

 private:
  void refuse(const JsonLine& line, std::string what, std::string hint) {
    errors_.push_back({Errc::value, line.where(), std::move(what), std::move(hint), {}});
  }

  std::uint32_t probes(const JsonLine& line, std::string_view key,
                       std::optional<std::int64_t> fallback) {
    return static_cast<std::uint32_t>(line.count(key, fallback, 0, UINT32_MAX, errors_));
  }

  NodeId node(const JsonLine& line, std::string_view key) {
    const std::string name = line.text(key, {}, errors_);
    if (name.empty()) return {};
    if (const auto known = nodes_.find(name); known != nodes_.end()) return known->second;
    auto found = fabric_.find_node({name, line.where()});
    if (!found) {
      errors_.push_back(std::move(found).error());
      return {};
    }
    nodes_.emplace(name, *found);
    return *found;
  }

  LinkId link(const std::string& name, const Where& where) {
    if (const auto known = links_.find(name); known != links_.end()) return known->second;
    auto found = fabric_.find_link({name, where});
    if (!found) {
      errors_.push_back(std::move(found).error());
      return {};
    }
    links_.emplace(name, *found);
    return *found;
  }

  void read_leg(const JsonLine& line, Evidence& row) {
    const std::string leg = line.text("leg", std::string(leg_names[0]), errors_);
    const auto name = std::ranges::find(leg_names, leg);
    if (name == leg_names.end())
      refuse(line, fmt::format("\"leg\" is {}", quote(leg)),
             "give \"round_trip\", \"forward\" or \"back\"");
    else
      row.leg = static_cast<Leg>(name - leg_names.begin());
  }

  void read_class(const JsonLine& line, Evidence& row) {
    const std::string name = line.text("class", "0", errors_);
    if (std::ranges::find(set_.classes, name) == set_.classes.end() &&
        set_.classes.size() == class_count_max)
      return refuse(line, fmt::format("more than {} classes", class_count_max),
                    "name classes by their DSCP");
    row.traffic_class = set_.class_index(name);
  }

  void read_path(const JsonLine& line, Evidence& row) {
    const std::vector<std::string> names = line.texts("path", errors_);
    if (names.size() > path_links_max)
      return refuse(line, fmt::format("a path of {} links", names.size()),
                    fmt::format("give at most {}", path_links_max));
    path_.clear();
    for (const std::string& name : names) {
      const LinkId next = link(name, line.where());
      if (!next.valid()) return;
      if (!path_.empty() && !joins(path_.back(), next))
        return refuse(line,
                      fmt::format("{} cannot be followed by {} in the path",
                                  fabric_.name(path_.back()), name),
                      "list the links in the order in which they are crossed");
      path_.push_back(next);
    }
    set_.set_path(row, path_);
  }

  // The way back of a round trip begins anew: the other host may answer from another NIC.
  bool joins(LinkId before, LinkId next) const {
    const NodeId at = fabric_.to(before), from = fabric_.from(next);
    const NodeId host = fabric_.host_of(at);
    return at == from || (host.valid() && host == fabric_.host_of(from));
  }

  const Fabric& fabric_;
  EvidenceSet set_;
  Errors errors_;
  std::vector<LinkId> path_;
  std::map<std::string, NodeId, std::less<>> nodes_;
  std::map<std::string, LinkId, std::less<>> links_;
};

Status finish(EvidenceReader& reader) {
  if (reader.errors().empty()) return {};
  return std::unexpected(combine(std::move(reader.errors())));
}

}  // namespace

std::string_view to_text(Leg leg) { return leg_names[static_cast<std::size_t>(leg)]; }

std::uint8_t EvidenceSet::class_index(std::string_view name) {
  const auto known = std::ranges::find(classes, name);
  if (known != classes.end()) return static_cast<std::uint8_t>(known - classes.begin());
  classes.emplace_back(name);
  return static_cast<std::uint8_t>(classes.size() - 1);
}

void EvidenceSet::set_path(Evidence& row, std::span<const LinkId> path) {
  row.path_first = static_cast<std::uint32_t>(links.size());
  row.path_size = static_cast<std::uint16_t>(path.size());
  links.insert(links.end(), path.begin(), path.end());
}

Result<EvidenceSet> read_evidence(const Fabric& fabric, LineReader& lines) {
  EvidenceReader reader(fabric);
  while (const auto line = next_json_line(lines, reader.errors())) reader.add(*line);
  WEFT_TRY_STATUS(finish(reader));
  return reader.take();
}

Status scan_evidence(const Fabric& fabric, LineReader& lines,
                     const std::function<void(const EvidenceSet&)>& take) {
  EvidenceReader reader(fabric);
  while (const auto line = next_json_line(lines, reader.errors())) {
    reader.add(*line);
    if (reader.set().rows.size() < scanned_rows) continue;
    if (reader.errors().empty()) take(reader.set());
    reader.forget_rows();
  }
  WEFT_TRY_STATUS(finish(reader));
  take(reader.set());
  return {};
}

std::string to_json(const Fabric& fabric, const EvidenceSet& set, const Evidence& row) {
  JsonObject out;
  out.reserve(evidence_bytes)
      .add("t", row.t)
      .add("src", fabric.name(row.src))
      .add("dst", fabric.name(row.dst))
      .add("sport", row.sport)
      .add("class", set.classes[row.traffic_class])
      .add("leg", row.leg);
  if (row.path_size == 0)
    out.add("path", nullptr);
  else
    out.add("path",
            set.path(row) | std::views::transform([&](LinkId link) { return fabric.name(link); }));
  out.add_if("path_t", row.path_t);
  out.add("sent", row.sent).add("lost", row.lost).add("late", row.late);
  if (row.damaged > 0) out.add("damaged", row.damaged);
  if (row.duplicates > 0) out.add("duplicates", row.duplicates);
  if (row.rtt_p50_us >= 0)
    out.add("rtt_us", JsonObject().add("p50", row.rtt_p50_us).add("p99", row.rtt_p99_us));
  return std::move(out).text();
}

}  // namespace weft::model
