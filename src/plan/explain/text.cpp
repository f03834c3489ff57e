// FabricFacts for people and for programs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/plural.hpp"
#include "plan/explain/explain.hpp"

namespace weft::plan {

using namespace model;
namespace {

using Json = nlohmann::ordered_json;
using Align = Table::Align;

std::string range(std::uint64_t least, std::uint64_t most) {
  return least == most ? fmt::format("{}", least) : fmt::format("{} .. {}", least, most);
}
std::string range(Duration least, Duration most) {
  return least == most ? to_text(least) : to_text(least) + " .. " + to_text(most);
}
std::string human_range(Rate least, Rate most) {
  return least == most ? human(least) : human(least) + " .. " + human(most);
}
std::string text(const Ratio& ratio) {
  if (ratio.under == 0) return "-";
  return fmt::format("{:.4g}", ratio.value());
}
std::string share(double value) { return fmt::format("{:.4g} %", 100 * value); }
std::string share_range(double least, double most) {
  return most - least < 1e-9 ? share(most) : share(least) + " .. " + share(most);
}

std::string role_table(const FabricFacts& facts) {
  Table table({{"role", Align::left}, {"kind", Align::left}, {"count"}, {"ports"}, {"capacity"}});
  for (const auto& r : facts.roles)
    table.add({r.name, std::string(to_text(r.kind)), fmt::format("{}", r.count),
               range(r.ports_min, r.ports_max), human_range(r.capacity_min, r.capacity_max)});
  return table.text();
}

std::string tier_table(const FabricFacts& facts) {
  Table table({{"links", Align::left}, {"count"}, {"rate"}, {"latency"}, {"together"}});
  for (const auto& t : facts.tiers)
    table.add({t.name, fmt::format("{}", t.links), human_range(t.rate_min, t.rate_max),
               range(t.latency_min, t.latency_max), human(t.capacity)});
  return table.text();
}

// What distinguishes the switches of a role.
std::string alike(const FabricFacts::SwitchTier& s) {
  std::string out = s.uniform ? "yes" : s.best.under == 0 ? "no" : "no, best " + text(s.best);
  if (s.out_of_service > 0)
    out += fmt::format("; {} of {} out of service", s.out_of_service, s.switches);
  if (s.cut_off > 0) out += fmt::format("; {} without a live cable up", s.cut_off);
  return out;
}

std::string switch_table(const FabricFacts& facts) {
  Table table({{"switch", Align::left},
               {"level"},
               {"down"},
               {"up"},
               {"across"},
               {"down : up"},
               {"all alike", Align::left}});
  for (const auto& s : facts.switch_tiers)
    table.add({s.role, range(s.level_min, s.level_max), human(s.down), human(s.up), human(s.peer),
               s.cut_off > 0 ? "cut off" : text(s.worst), alike(s)});
  return table.text();
}

std::string bisection_line(const FabricFacts& facts) {
  const FabricFacts::Bisection& cut = *facts.bisection;
  const std::string nics = 2 * cut.sending == cut.all
                               ? "half of the NICs"
                               : fmt::format("{} of the {} NICs", cut.sending, cut.all);
  return fmt::format("bisection: {} of {} that {} can send ({})\n", human(cut.capacity),
                     human(cut.nics), nics, text(cut.share()));
}

std::string note_lines(const FabricFacts& facts) {
  std::string out;
  for (const std::string& note : facts.notes) out += "note: " + note + "\n";
  return out;
}

std::string path_table(const FabricFacts& facts) {
  Table table({{"path", Align::left},
               {"from", Align::left},
               {"to", Align::left},
               {"links"},
               {"latency"},
               {"shortest paths"},
               {"disjoint"},
               {"beyond the NICs' cables"}});
  for (const auto& p : facts.paths) {
    if (p.hops == 0) {
      table.add({p.what, p.from, p.to, "-", "-", "0", "0", "0"});
      continue;
    }
    table.add({p.what, p.from, p.to, fmt::format("{}", p.hops), human_seconds(p.latency.seconds()),
               fmt::format("{}", p.shortest), fmt::format("{}", p.disjoint),
               p.disjoint_inside == 0 ? "-" : fmt::format("{}", p.disjoint_inside)});
  }
  return table.text();
}

std::string loss_table(const FabricFacts& facts) {
  Table table({{"one failed", Align::left},
               {"NICs cut off"},
               {"NICs affected"},
               {"racks affected"},
               {"of each rack's capacity"},
               {"examined"}});
  for (const auto& l : facts.losses)
    table.add({l.role, fmt::format("{}", l.nics_cut_off), fmt::format("{}", l.nics_affected),
               fmt::format("{}", l.racks_affected), share_range(l.rack_share_min, l.rack_share_max),
               fmt::format("{} of {}", l.examined, l.switches)});
  return table.text();
}

Json json(const Ratio& ratio) {
  if (ratio.under == 0) return nullptr;
  return {{"over", ratio.over}, {"under", ratio.under}, {"value", ratio.value()}};
}

Json roles_json(const FabricFacts& facts) {
  Json out = Json::array();
  for (const auto& r : facts.roles)
    out.push_back({{"role", r.name},
                   {"kind", to_text(r.kind)},
                   {"count", r.count},
                   {"ports_min", r.ports_min},
                   {"ports_max", r.ports_max},
                   {"capacity_min_bps", r.capacity_min.bps},
                   {"capacity_max_bps", r.capacity_max.bps}});
  return out;
}
Json tiers_json(const FabricFacts& facts) {
  Json out = Json::array();
  for (const auto& t : facts.tiers)
    out.push_back({{"tier", t.name},
                   {"links", t.links},
                   {"rate_min_bps", t.rate_min.bps},
                   {"rate_max_bps", t.rate_max.bps},
                   {"capacity_bps", t.capacity.bps},
                   {"latency_min_s", t.latency_min.seconds()},
                   {"latency_max_s", t.latency_max.seconds()}});
  return out;
}
Json switches_json(const FabricFacts& facts) {
  Json out = Json::array();
  for (const auto& s : facts.switch_tiers)
    out.push_back({{"role", s.role},
                   {"count", s.switches},
                   {"out_of_service", s.out_of_service},
                   {"cut_off", s.cut_off},
                   {"level_min", s.level_min},
                   {"level_max", s.level_max},
                   {"down_bps", s.down.bps},
                   {"up_bps", s.up.bps},
                   {"across_bps", s.peer.bps},
                   {"oversubscription", json(s.worst)},
                   {"oversubscription_best", json(s.best)},
                   {"uniform", s.uniform}});
  return out;
}
// By role of switches that have cables up; null where some switch has lost all of them.
Json oversubscription_json(const FabricFacts& facts) {
  Json out = Json::object();
  for (const auto& s : facts.switch_tiers)
    if (s.worst.under > 0 || s.cut_off > 0) out[s.role] = json(s.worst);
  return out;
}
Json bisection_json(const FabricFacts& facts) {
  if (!facts.bisection) return nullptr;
  return {{"capacity_bps", facts.bisection->capacity.bps},
          {"half_of_nics_bps", facts.bisection->nics.bps},
          {"share", json(facts.bisection->share())}};
}
Json paths_json(const FabricFacts& facts) {
  Json out = Json::array();
  for (const auto& p : facts.paths)
    out.push_back({{"what", p.what},
                   {"from", p.from},
                   {"to", p.to},
                   {"links", p.hops},
                   {"latency_s", p.latency.seconds()},
                   {"shortest_paths", p.shortest},
                   {"disjoint_paths", p.disjoint},
                   {"disjoint_paths_inside", p.disjoint_inside}});
  return out;
}
Json losses_json(const FabricFacts& facts) {
  Json out = Json::array();
  for (const auto& l : facts.losses)
    out.push_back({{"role", l.role},
                   {"switch", l.worst},
                   {"nics_cut_off", l.nics_cut_off},
                   {"nics_affected", l.nics_affected},
                   {"racks_affected", l.racks_affected},
                   {"rack_share_min", l.rack_share_min},
                   {"rack_share_max", l.rack_share_max},
                   {"examined", l.examined},
                   {"switches", l.switches}});
  return out;
}

}  // namespace

std::string to_table(const FabricFacts& facts) {
  std::string out = fmt::format("{}, {}, {}, {}; {}, {}\n\n", counted(facts.gpus, "GPU"),
                                counted(facts.nics, "NIC"), counted(facts.hosts, "host"),
                                counted(facts.racks, "rack"), counted(facts.nodes, "node"),
                                counted(facts.links, "link"));
  out += role_table(facts) + "\n" + tier_table(facts) + "\n";
  if (!facts.switch_tiers.empty()) out += switch_table(facts) + "\n";
  if (facts.bisection) out += bisection_line(facts) + "\n";
  if (!facts.paths.empty()) out += path_table(facts) + "\n";
  if (!facts.losses.empty()) out += loss_table(facts);
  return out + note_lines(facts);
}

std::string capacity_table(const FabricFacts& facts) {
  return switch_table(facts) + (facts.bisection ? bisection_line(facts) : "") + note_lines(facts);
}

std::string capacity_json(const FabricFacts& facts) {
  const Json out{{"switches", switches_json(facts)},
                 {"oversubscription", oversubscription_json(facts)},
                 {"bisection", bisection_json(facts)},
                 {"notes", facts.notes}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_json(const FabricFacts& facts) {
  Json out{{"nodes", facts.nodes}, {"links", facts.links}, {"gpus", facts.gpus},
           {"nics", facts.nics},   {"hosts", facts.hosts}, {"racks", facts.racks}};
  out["roles"] = roles_json(facts);
  out["tiers"] = tiers_json(facts);
  out["switches"] = switches_json(facts);
  out["oversubscription"] = oversubscription_json(facts);
  out["bisection"] = bisection_json(facts);
  out["paths"] = paths_json(facts);
  out["failures"] = losses_json(facts);
  out["notes"] = facts.notes;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::plan
