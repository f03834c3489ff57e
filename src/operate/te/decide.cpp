#include "operate/te/decide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "route/hash.hpp"

namespace weft::operate::te {
namespace {

using model::LinkId;
using route::Assignment;
using route::Zone;

// Sums of floating-point numbers in another order are not the same to the last bit.
constexpr double rounding = 1e-9;

bool crosses_spines(const Zone& zone, const Flow& flow) {
  const std::uint32_t from = zone.rack_of[flow.src], to = zone.rack_of[flow.dst];
  return from != Zone::none && to != Zone::none && from != to;
}

class Loads {
 public:
  explicit Loads(std::size_t links) : weight_(links, 0) {}

  void add(std::span<const LinkId> path, double weight) {
    for (const LinkId link : path) weight_[link.index()] += weight;
  }

  struct Worst {
    double load = 0;
    LinkId link;
  };
  // Of the links between racks and spines, in shares of the fastest.
  Worst worst(const Zone& zone, const Fabric& fabric, const model::LiveView& view) const {
    double fastest = 0;
    for (const LinkId up : zone.up)
      if (up.valid()) fastest = std::max(fastest, fabric.rate(up).bytes_per_s());
    Worst out;
    for (const LinkId up : zone.up) {
      if (!up.valid()) continue;
      for (const LinkId link : {up, reverse(up)}) {
        const double left = view.bytes_per_s[link.index()];
        const double load = left > 0 ? weight_[link.index()] * fastest / left : 0;
        if (load > out.load) out = {load, link};
      }
    }
    return out;
  }

 private:
  std::vector<double> weight_;  // by LinkId
};

// The path of a mark, if it is one that packets can take.
bool is_live(const Zone& zone, const Flow& flow, std::uint32_t column,
             const model::LiveView& view) {
  if (column >= zone.columns || !crosses_spines(zone, flow) ||
      !zone.uplink(zone.rack_of[flow.src], column).valid() ||
      !zone.uplink(zone.rack_of[flow.dst], column).valid())
    return false;
  return std::ranges::all_of(zone.path(flow.src, flow.dst, column),
                             [&](LinkId link) { return view.usable(link); });
}

void put_installed(const Zone& zone, std::span<const Flow> flows, const Marks& installed,
                   std::span<const std::uint32_t> number, Assignment& assignment) {
  for (std::size_t f = 0; f < installed.size(); ++f)
    if (number[f] != Assignment::none && installed[f] < zone.columns)
      assignment.assume(number[f], installed[f]);
  WEFT_CHECK(installed.empty() || installed.size() == flows.size());
}

}  // namespace

Judgement judge(const Zone& zone, route::Router& hashing, const model::State& state,
                std::span<const Flow> flows, const Marks& marks) {
  WEFT_CHECK(marks.size() == flows.size());
  const Fabric& fabric = hashing.fabric();
  const model::LiveView view(fabric, state);
  hashing.set_state(state);
  Loads marked(fabric.link_count()), hashed(fabric.link_count());
  Judgement out;
  route::Path path;
  for (std::uint32_t f = 0; f < flows.size(); ++f) {
    const Flow& flow = flows[f];
    path.clear();
    const bool has_path = hashing.append_udp_path(
        flow.src, flow.dst, {.src = flow.port, .dst = route::roce_port}, path);
    if (!has_path) out.cut_off.push_back(f);
    hashed.add(path, flow.weight);
    const bool live = marks[f] != Zone::none && is_live(zone, flow, marks[f], view);
    if (marks[f] != Zone::none && !live) out.dead.push_back(f);
    if (live)
      marked.add(zone.path(flow.src, flow.dst, marks[f]), flow.weight);
    else
      marked.add(path, flow.weight);
  }
  const Loads::Worst worst = marked.worst(zone, fabric, view);
  out.worst = worst.load;
  out.worst_link = worst.link;
  out.hashed = hashed.worst(zone, fabric, view).load;
  return out;
}

Decision decide(const Zone& zone, route::Router& hashing, const model::State& state,
                std::span<const Flow> flows, const Marks& installed, const Settings& settings) {
  const Fabric& fabric = hashing.fabric();
  Assignment assignment(zone.racks, zone.columns);
  set_capacities(assignment, zone, zone_capacities(zone, fabric, state));
  std::vector<std::uint32_t> number(flows.size(), Assignment::none);
  for (std::size_t f = 0; f < flows.size(); ++f)
    if (crosses_spines(zone, flows[f]))
      number[f] = assignment.add({.from = zone.rack_of[flows[f].src],
                                  .to = zone.rack_of[flows[f].dst],
                                  .weight = flows[f].weight,
                                  .priority = flows[f].priority});
  put_installed(zone, flows, installed, number, assignment);
  const Assignment::Outcome outcome = assignment.solve(settings.others);
  Decision out{.marks = Marks(flows.size(), Zone::none),
               .judgement = {},
               .bound = outcome.bound,
               .hit = outcome.placed,
               .moved = outcome.moved,
               .without = outcome.without,
               .refused = {}};
  for (std::size_t f = 0; f < flows.size(); ++f)
    if (number[f] != Assignment::none) out.marks[f] = assignment.spine_of(number[f]);
  out.judgement = judge(zone, hashing, state, flows, out.marks);
  const double hashed = out.judgement.hashed;
  if (out.judgement.worst <= hashed * (1 + rounding) && out.judgement.dead.empty()) return out;
  out.refused =
      out.judgement.dead.empty()
          ? fmt::format("{} would carry {:.4g}, and with plain ECMP no link more than {:.4g}",
                        fabric.name(out.judgement.worst_link), out.judgement.worst, hashed)
          : fmt::format("{} marks would lead over dead links", out.judgement.dead.size());
  out.marks.assign(flows.size(), Zone::none);
  out.judgement = judge(zone, hashing, state, flows, out.marks);
  return out;
}

}  // namespace weft::operate::te
