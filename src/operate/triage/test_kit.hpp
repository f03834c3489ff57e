// For tests of this room: small fabrics, and stories told record by record.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/rng.hpp"
#include "model/formats/test_fabric.hpp"
#include "operate/triage/report.hpp"
#include "operate/triage/triage.hpp"

namespace weft::operate::triage::testing {

using model::testing::make_fabric;

//   ctsw:0 ... ctsw:3      each rack has two hosts with two NICs each; ports of a rack switch are
//      | \ / |             0..3 for NICs and 4..7 for spines, port r of a spine leads to rack r
//   rtsw:0 ... rtsw:7
inline model::Fabric small_zone() {
  return make_fabric(
      "{generator: ai_zone, racks: 8, hosts_per_rack: 2, gpus_per_host: 2, spines: 4, "
      "link: 400 Gbps}");
}

inline Rules rules_with(std::string_view yaml) {
  auto config = parse_yaml(yaml, "rules.yaml");
  REQUIRE(config.has_value());
  auto rules = read_rules(*config);
  REQUIRE_MESSAGE(rules.has_value(), (rules ? "" : rules.error().text()));
  return *std::move(rules);
}

// Seconds of the story's day as nanoseconds.
inline std::int64_t at_ns(double s) {
  return 1'772'323'200 * ns_per_s + static_cast<std::int64_t>(s * 1e9);
}

class Story {
 public:
  explicit Story(model::Fabric fabric, const Rules& rules = default_rules(),
                 LearnedRelations relations = {})
      : fabric_(std::make_unique<model::Fabric>(std::move(fabric))),
        context_(std::make_unique<Context>(*fabric_, rules, std::move(relations))) {}

  struct Extra {
    double until = -1, received = -1;
    model::Attributes attrs = {};
    model::Source source = model::Source::syslog;
    double value = 1;
  };

  // What `entity` says at second `t`.
  Story& say(double t, std::string_view entity, std::string_view kind) {
    return say(t, entity, kind, {});
  }
  Story& say(double t, std::string_view entity, std::string_view kind, const Extra& extra) {
    const auto found = model::find_entity(*fabric_, {entity, {}});
    REQUIRE_MESSAGE(found.has_value(), entity);
    const auto event = model::event_kind(kind);
    REQUIRE_MESSAGE(event.has_value(), kind);
    model::Record row;
    row.t.ns = at_ns(t);
    row.until.ns = extra.until < 0 ? row.t.ns : at_ns(extra.until);
    row.received.ns = extra.received < 0 ? row.t.ns : at_ns(extra.received);
    row.entity = *found;
    row.kind = *event;
    row.source = extra.source;
    row.value = extra.value;
    row.id = set_.add_id(fmt::format("r{}", set_.rows.size()));
    row.attrs = set_.add_attributes(extra.attrs);
    set_.rows.push_back(row);
    return *this;
  }
  // Both ends of the cable between a rack switch and a spine see it go down, with its session.
  Story& link_down(double t, int rack, int spine) {
    const std::string low = fmt::format("rtsw:{}->ctsw:{}", rack, spine);
    const std::string high = fmt::format("ctsw:{}->rtsw:{}", spine, rack);
    say(t, low, "link_down").say(t + 0.01, high, "link_down");
    return say(t + 0.1, low, "bgp_down", {.attrs = {{"reason", "interface"}}});
  }
  Story& link_up(double t, int rack, int spine) {
    const std::string low = fmt::format("rtsw:{}->ctsw:{}", rack, spine);
    say(t, low, "link_up").say(t, fmt::format("ctsw:{}->rtsw:{}", spine, rack), "link_up");
    return say(t + 1, low, "bgp_up");
  }
  // What the far ends see when a spine dies.
  Story& spine_dies(double t, int spine, int racks) {
    for (int rack = 0; rack < racks; ++rack) {
      const std::string low = fmt::format("rtsw:{}->ctsw:{}", rack, spine);
      say(t + 0.02 * (rack % 20), low, "link_down").say(t + 0.3, low, "bgp_down");
    }
    return *this;
  }
  Story& maintain(const model::Episode& episode) {
    auto windows = Maintenance::create(context_->parts, context_->suspects, {episode});
    REQUIRE_MESSAGE(windows.has_value(), (windows ? "" : windows.error().text()));
    context_->maintenance = *std::move(windows);
    return *this;
  }
  // Records arrive up to `lateness` seconds late, each on its own.
  Story& shuffle(double lateness, std::uint64_t seed) {
    Rng rng(seed);
    std::vector<std::pair<std::int64_t, std::size_t>> arrival;
    for (std::size_t i = 0; i < set_.rows.size(); ++i)
      arrival.emplace_back(
          set_.rows[i].until.ns + static_cast<std::int64_t>(rng.uniform() * lateness * 1e9), i);
    std::ranges::sort(arrival);
    std::vector<model::Record> rows;
    for (const auto& [at, i] : arrival) rows.push_back(set_.rows[i]);
    set_.rows = rows;
    return *this;
  }

  std::vector<Case> cases(Correlator::Bounds bounds = {}) {
    std::vector<Case> out;
    Triage triage(*context_, [&](Case c) { out.push_back(std::move(c)); }, bounds);
    for (const model::Record& row : set_.rows) triage.add(set_, row, row.id);
    triage.finish();
    counts_ = triage.counts();
    return out;
  }
  // "cable rtsw:0--ctsw:1 (3); switch ctsw:2 (16)": cause and number of members of each case.
  std::string told() {
    std::string out;
    for (const Case& c : cases())
      out += fmt::format("{}{} {} ({})", out.empty() ? "" : "; ", to_text(c.kind),
                         root_name(*fabric_, c), c.members.size());
    return out;
  }
  std::string json(Correlator::Bounds bounds = {}) {
    std::string out;
    for (const Case& c : cases(bounds))
      out +=
          to_json(*fabric_, c, [&](std::uint64_t s) -> std::string_view { return set_.ids[s]; }) +
          "\n";
    return out;
  }
  const Triage::Counts& counts() const { return counts_; }
  const model::Fabric& fabric() const { return *fabric_; }
  const Context& context() const { return *context_; }
  const model::RecordSet& set() const { return set_; }

 private:
  std::unique_ptr<model::Fabric> fabric_;
  std::unique_ptr<Context> context_;
  model::RecordSet set_;
  Triage::Counts counts_;
};

}  // namespace weft::operate::triage::testing
