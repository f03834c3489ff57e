#include "observe/localise/truth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

namespace weft::observe::localise {
namespace {

using Names = std::set<std::string>;

struct Judged {
  Names fabric, congestion, hosts;
};

void add_cable(const Fabric& fabric, model::CableId cable, Names& out) {
  out.insert("link " + fabric.name(model::forward(cable)));
  out.insert("link " + fabric.name(model::reverse(model::forward(cable))));
}

Judged names_of(const Fabric& fabric, const Report& report) {
  Judged out;
  for (const Verdict& v : report.verdicts) {
    const bool host = v.finding == Finding::starved || v.finding == Finding::dead;
    Names& names = host                               ? out.hosts
                   : v.finding == Finding::congestion ? out.congestion
                                                      : out.fabric;
    if (v.entity.kind == EntityKind::cable)
      add_cable(fabric, model::CableId(v.entity.id), names);
    else
      names.insert(fmt::format("{} {}", to_text(v.entity.kind), name(fabric, v.entity)));
  }
  return out;
}

// "ctsw:5/0-13"
bool is_card(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view ports = text.substr(slash + 1);
  const std::size_t dash = ports.find('-');
  return dash != std::string_view::npos && dash > 0 && dash + 1 < ports.size() &&
         ports.find_first_not_of("0123456789-") == std::string_view::npos;
}

// The names by which verdicts call the entity.
Result<Names> resolve(const Fabric& fabric, const std::string& entity, Judged& hosts) {
  Names out;
  if (entity.find("->") != std::string::npos) {
    WEFT_TRY(const LinkId link, fabric.find_link({entity, {}}));
    out.insert("link " + fabric.name(link));
  } else if (is_card(entity)) {
    WEFT_TRY(const NodeId node,
             fabric.find_node({std::string_view(entity).substr(0, entity.rfind('/')), {}}));
    out.insert(fmt::format("card {}{}", fabric.name(node), entity.substr(entity.rfind('/'))));
  } else if (entity.find("--") != std::string::npos || entity.find('/') != std::string::npos) {
    WEFT_TRY(const model::CableId cable, fabric.find_cable({entity, {}}));
    add_cable(fabric, cable, out);
  } else {
    WEFT_TRY(const NodeId node, fabric.find_node({entity, {}}));
    if (fabric.is_switch(node)) {
      out.insert("switch " + fabric.name(node));
    } else if (fabric.kind(node) == model::NodeKind::nic) {
      std::vector<LinkId> wired;
      for (const LinkId link : fabric.out(node))
        if (fabric.on_wire(link)) wired.push_back(link);
      if (wired.size() == 1)
        add_cable(fabric, model::cable_of(wired.front()), out);
      else
        out.insert("nic " + fabric.name(node));
    } else {
      const NodeId host = fabric.host_of(node).valid() ? fabric.host_of(node) : node;
      hosts.hosts.insert("host " + fabric.name(host));
    }
  }
  return out;
}

Comparison compare(const Names& truth, const Names& got) {
  Comparison out;
  std::ranges::set_intersection(truth, got, std::back_inserter(out.right));
  std::ranges::set_difference(got, truth, std::back_inserter(out.wrong));
  std::ranges::set_difference(truth, got, std::back_inserter(out.missed));
  return out;
}

}  // namespace

Result<Comparisons> compare(const Fabric& fabric, const Report& report,
                            std::span<const model::Episode> truth) {
  Judged real;
  for (const model::Episode& episode : truth) {
    for (const std::string& entity : episode.entities) {
      Judged scratch;
      const bool now = episode.start <= report.end && episode.end > report.begin;
      WEFT_TRY(const Names names, resolve(fabric, entity, now ? real : scratch));
      if (!now) continue;
      const bool congestion = episode.kind.find("congestion") != std::string::npos;
      (congestion ? real.congestion : real.fabric).insert(names.begin(), names.end());
    }
  }
  const Judged got = names_of(fabric, report);
  return Comparisons{compare(real.fabric, got.fabric), compare(real.congestion, got.congestion),
                     compare(real.hosts, got.hosts)};
}

}  // namespace weft::observe::localise
