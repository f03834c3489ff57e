#include "cli/flows_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "cli/flows_report.hpp"

namespace weft::cli {
namespace {

using Json = nlohmann::ordered_json;
using plan::FlowsResult;
using plan::Surplus;

struct ComparedRow {
  std::string name;
  double fluid, packet;
  enum class Unit : std::uint8_t { us, share } unit = Unit::us;
};

std::vector<ComparedRow> rows_of(const FlowsResult& fluid, const FlowsResult& packet) {
  std::vector<ComparedRow> out{{"makespan", fluid.makespan_s * 1e6, packet.makespan_s * 1e6},
                               {"completion: mean", fluid.fct.mean, packet.fct.mean},
                               {"completion: p50", fluid.fct.p50, packet.fct.p50},
                               {"completion: p99", fluid.fct.p99, packet.fct.p99},
                               {"completion: max", fluid.fct.max, packet.fct.max}};
  for (const model::TierOutcome& tier : fluid.tiers) {
    const auto other = std::ranges::find(packet.tiers, tier.name, &model::TierOutcome::name);
    if (other == packet.tiers.end()) continue;
    out.push_back(
        {tier.name + ": mean load", tier.mean_load, other->mean_load, ComparedRow::Unit::share});
    out.push_back(
        {tier.name + ": max load", tier.max_load, other->max_load, ComparedRow::Unit::share});
  }
  return out;
}

std::string percent_of(double difference, double of) {
  return of > 0 ? fmt::format("{:+.2f} %", 100 * difference / of) : "-";
}

std::vector<std::pair<std::string, double>> named(const Surplus& surplus) {
  return {{"headers", surplus.headers},
          {"round trip of the last packet", surplus.round_trip},
          {"retransmitted", surplus.sent_again},
          {"queues, pauses, unequal shares", surplus.rest}};
}

Json to_json(const FlowsResult& result) {
  const plan::CompletionTimes& fct = result.fct;
  Json tiers = Json::object();
  for (const model::TierOutcome& tier : result.tiers)
    tiers[tier.name] = {{"mean_load", tier.mean_load}, {"max_load", tier.max_load}};
  return {{"makespan_s", result.makespan_s},
          {"fct_s",
           {{"min", fct.min / us_per_s},
            {"mean", fct.mean / us_per_s},
            {"p50", fct.p50 / us_per_s},
            {"p99", fct.p99 / us_per_s},
            {"max", fct.max / us_per_s}}},
          {"tiers", std::move(tiers)},
          {"unfinished", fct.unfinished},
          {"digest", result.digest}};
}

// Time that the links of NICs were paused, over that of all links of NICs that were of use.
double paused_share(const FlowsResult& packet) {
  double paused = 0, all = 0;
  for (const model::PacketOutcome::Tier& tier : packet.packet->tiers) {
    if (!tier.name.starts_with("nic->")) continue;
    const auto loads = std::ranges::find(packet.tiers, tier.name, &model::TierOutcome::name);
    if (loads == packet.tiers.end()) continue;
    paused += tier.paused_total_s;
    all += static_cast<double>(loads->links) * packet.makespan_s;
  }
  return all > 0 ? paused / all : 0;
}

}  // namespace

void print_comparison(const FlowsResult& fluid, const FlowsResult& packet, const Surplus& surplus) {
  Table table({{"", Table::Align::left}, {"fluid"}, {"packet"}, {"difference"}});
  for (const ComparedRow& row : rows_of(fluid, packet)) {
    const auto text = [&](double value) {
      return row.unit == ComparedRow::Unit::us ? human_seconds(value * 1e-6)
                                               : fmt::format("{:.4f}", value);
    };
    table.add({row.name, text(row.fluid), text(row.packet),
               percent_of(row.packet - row.fluid, row.fluid)});
  }
  fmt::print("{}\n", table.text());
  Table why({{"difference of the mean", Table::Align::left}, {"us"}, {"of the fluid mean"}});
  for (const auto& [name, us] : named(surplus))
    why.add({name, fmt::format("{:+.3f}", us), percent_of(us, fluid.fct.mean)});
  fmt::print("{}\n", why.text());
  const model::PacketOutcome& p = *packet.packet;
  fmt::print(
      "{} pause frames (NIC links paused {:.2f} % of the time), {} retransmissions, {} drops, {} "
      "trims, {} ECN marks\n",
      p.pause_frames, 100 * paused_share(packet), p.retransmissions, p.drops, p.trims, p.ecn_marks);
}

void print_comparison_json(const FlowsResult& fluid, const FlowsResult& packet,
                           const Surplus& surplus) {
  const model::PacketOutcome& p = *packet.packet;
  const Json out{{"fluid", to_json(fluid)},
                 {"packet", to_json(packet)},
                 {"mean_surplus_s",
                  {{"headers", surplus.headers / us_per_s},
                   {"round_trip", surplus.round_trip / us_per_s},
                   {"sent_again", surplus.sent_again / us_per_s},
                   {"rest", surplus.rest / us_per_s}}},
                 {"pause_frames", p.pause_frames},
                 {"nic_paused_share", paused_share(packet)},
                 {"retransmissions", p.retransmissions},
                 {"drops", p.drops},
                 {"trims", p.trims},
                 {"ecn_marks", p.ecn_marks}};
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace weft::cli
