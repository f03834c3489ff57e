#include "model/work/op_graph_cycle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "base/text.hpp"

namespace weft::model {
namespace {

using Kind = Operation::Kind;

constexpr std::size_t named_max = 8;  // operations of a circle that the message shows

// Who plays: all actors, or one actor for each program.
struct Cast {
  std::vector<Actor> actors;
  std::vector<std::uint32_t> peers, memberships;
  std::size_t group_count = 0;
};

// An operation of one player.
struct Instance {
  std::uint32_t actor, operation;
};

// What programs share, whoever plays them.
struct Script {
  // By program: operations that wait for one, as a list for each; collectives of each slot.
  std::vector<std::vector<std::uint32_t>> successor_first, successors;
  std::vector<std::vector<std::vector<std::uint32_t>>> calls;
};

Script read_script(const OpGraph& graph) {
  Script script;
  for (const Program& program : graph.programs) {
    const std::size_t count = program.operations.size();
    auto& first = script.successor_first.emplace_back(count + 1, 0);
    auto& next = script.successors.emplace_back(program.after.size());
    auto& calls = script.calls.emplace_back();
    const auto for_each_edge = [&](auto&& edge) {
      for (std::uint32_t o = 0; o < count; ++o)
        for (std::uint32_t a = 0; a < program.operations[o].after_count; ++a)
          edge(program.after[program.operations[o].after_first + a], o);
    };
    std::size_t edges = 0;
    for_each_edge([&](std::uint32_t from, std::uint32_t) { ++first[from], ++edges; });
    next.resize(edges);
    std::partial_sum(first.begin(), first.end(), first.begin());
    for_each_edge([&](std::uint32_t from, std::uint32_t to) { next[--first[from]] = to; });
    for (std::uint32_t o = 0; o < count; ++o) {
      const Operation& operation = program.operations[o];
      if (operation.kind != Kind::collective) continue;
      if (operation.slot >= calls.size()) calls.resize(operation.slot + 1);
      calls[operation.slot].push_back(o);
    }
  }
  return script;
}

class CircleSearch {
 public:
  CircleSearch(const OpGraph& graph, const Script& script, const Cast& cast)
      : graph_(graph), script_(script), cast_(cast) {
    std::size_t total = 0;
    for (const Actor& actor : cast.actors) {
      base_.push_back(total);
      total += graph.programs[actor.program].operations.size();
    }
    waits_.assign(total, 0);
    list_members();
  }

  // A circle, each waiting for the next and the last for the first; empty where there is none.
  std::vector<Instance> run() {
    std::vector<Instance> ready = count_waits();
    while (!ready.empty()) {
      const Instance node = ready.back();
      ready.pop_back();
      for_each_member(node, [&](Instance member) {
        for (const std::uint32_t next : successors(member)) {
          const Instance after = node_of({member.actor, next});
          if (--waits_[id(after)] == 0) ready.push_back(after);
        }
      });
    }
    const auto stuck = std::ranges::find_if(waits_, [](std::uint32_t n) { return n > 0; });
    if (stuck == waits_.end()) return {};
    return walk(static_cast<std::size_t>(stuck - waits_.begin()));
  }

 private:
  const Program& program(std::uint32_t actor) const {
    return graph_.programs[cast_.actors[actor].program];
  }
  std::size_t id(Instance instance) const { return base_[instance.actor] + instance.operation; }
  std::uint32_t group_of(std::uint32_t actor, std::uint32_t slot) const {
    return cast_.memberships[cast_.actors[actor].group_first + slot];
  }

  void list_members() {
    member_first_.assign(cast_.group_count + 1, 0);
    const auto for_each_slot = [&](auto&& visit) {
      for (std::uint32_t a = 0; a < cast_.actors.size(); ++a)
        for (std::uint32_t s = 0; s < script_.calls[cast_.actors[a].program].size(); ++s)
          visit(group_of(a, s), Member{a, s});
    };
    std::size_t total = 0;
    for_each_slot([&](std::uint32_t group, Member) { ++member_first_[group], ++total; });
    std::partial_sum(member_first_.begin(), member_first_.end(), member_first_.begin());
    members_.resize(total);
    for_each_slot([&](std::uint32_t group, Member m) { members_[--member_first_[group]] = m; });
  }

  std::span<const std::uint32_t> successors(Instance instance) const {
    const std::uint32_t p = cast_.actors[instance.actor].program;
    const auto& first = script_.successor_first[p];
    return std::span(script_.successors[p])
        .subspan(first[instance.operation],
                 first[instance.operation + 1] - first[instance.operation]);
  }

  Instance other_end(Instance instance) const {
    const Operation& operation = program(instance.actor).operations[instance.operation];
    return {cast_.peers[cast_.actors[instance.actor].peer_first + operation.slot],
            program(instance.actor).match[instance.operation]};
  }

  template <class Visit>
  void for_each_member(Instance instance, Visit&& visit) const {
    const Program& own = program(instance.actor);
    const Operation& operation = own.operations[instance.operation];
    if (operation.kind != Kind::collective) {
      visit(instance);
      if (operation.kind != Kind::compute) visit(other_end(instance));
      return;
    }
    const std::uint32_t group = group_of(instance.actor, operation.slot);
    for (std::uint32_t m = member_first_[group]; m < member_first_[group + 1]; ++m)
      visit(call_of(members_[m], own.match[instance.operation]));
  }

  // The member that stands for all that meet in this operation.
  Instance node_of(Instance instance) const {
    const Program& own = program(instance.actor);
    const Operation& operation = own.operations[instance.operation];
    if (operation.kind == Kind::recv) return other_end(instance);
    if (operation.kind != Kind::collective) return instance;
    const std::uint32_t group = group_of(instance.actor, operation.slot);
    return call_of(members_[member_first_[group]], own.match[instance.operation]);
  }

  // Returns the nodes that wait for nothing.
  std::vector<Instance> count_waits() {
    std::vector<Instance> ready;
    const auto for_each_instance = [&](auto&& visit) {
      for (std::uint32_t a = 0; a < cast_.actors.size(); ++a)
        for (std::uint32_t o = 0; o < program(a).operations.size(); ++o) visit(Instance{a, o});
    };
    for_each_instance([&](Instance i) {
      waits_[id(node_of(i))] += program(i.actor).operations[i.operation].after_count;
    });
    for_each_instance([&](Instance i) {
      if (waits_[id(i)] == 0 && id(node_of(i)) == id(i)) ready.push_back(i);
    });
    return ready;
  }

  // From an operation that never became ready to one it waits for, until one comes up again.
  std::vector<Instance> walk(std::size_t start) const {
    std::vector<std::uint32_t> place(waits_.size(), UINT32_MAX);
    std::vector<Instance> path;
    const auto owner = std::ranges::upper_bound(base_, start) - base_.begin() - 1;
    const auto actor = static_cast<std::uint32_t>(owner);
    Instance at{actor, static_cast<std::uint32_t>(start - base_[actor])};
    while (place[id(at)] == UINT32_MAX) {
      place[id(at)] = static_cast<std::uint32_t>(path.size());
      path.push_back(at);
      at = stuck_before(at);
    }
    path.erase(path.begin(), path.begin() + place[id(at)]);
    return path;
  }

  Instance stuck_before(Instance node) const {
    Instance found = node;
    for_each_member(node, [&](Instance member) {
      const Program& own = program(member.actor);
      const Operation& operation = own.operations[member.operation];
      for (std::uint32_t a = 0; a < operation.after_count; ++a) {
        const Instance before = node_of({member.actor, own.after[operation.after_first + a]});
        if (waits_[id(before)] > 0) found = before;
      }
    });
    return found;
  }

  struct Member {
    std::uint32_t actor, slot;
  };
  Instance call_of(Member member, std::uint32_t number) const {
    return {member.actor, script_.calls[cast_.actors[member.actor].program][member.slot][number]};
  }

  const OpGraph& graph_;
  const Script& script_;
  const Cast& cast_;
  std::vector<std::size_t> base_;     // by actor: id of its first operation
  std::vector<std::uint32_t> waits_;  // by id, at nodes: what has not ended yet
  std::vector<std::uint32_t> member_first_;
  std::vector<Member> members_;
};

std::uint32_t root_of(std::vector<std::uint32_t>& parent, std::uint32_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

// One player for each program; slots that meet in some group share one.
Cast roles_of(const OpGraph& graph, const Script& script) {
  Cast cast;
  cast.actors.resize(graph.programs.size());
  std::uint32_t slots = 0;
  for (std::uint32_t p = 0; p < graph.programs.size(); ++p) {
    cast.actors[p] = {p, 0, slots};
    slots += static_cast<std::uint32_t>(script.calls[p].size());
  }
  std::vector<std::uint32_t> parent(slots), seen(graph.groups.size(), UINT32_MAX);
  std::iota(parent.begin(), parent.end(), 0u);
  std::vector<std::uint8_t> played(graph.programs.size(), 0);
  for (const Actor& actor : graph.actors) {
    for (std::uint32_t s = 0; s < script.calls[actor.program].size(); ++s) {
      const std::uint32_t slot = cast.actors[actor.program].group_first + s;
      std::uint32_t& first = seen[graph.memberships[actor.group_first + s]];
      if (first == UINT32_MAX) first = slot;
      parent[root_of(parent, slot)] = root_of(parent, first);
    }
    if (played[actor.program] != 0) continue;
    played[actor.program] = 1;
    cast.actors[actor.program].peer_first = static_cast<std::uint32_t>(cast.peers.size());
    for (const Operation& operation : graph.programs[actor.program].operations) {
      if (operation.kind != Kind::send && operation.kind != Kind::recv) continue;
      while (cast.peers.size() <= cast.actors[actor.program].peer_first + operation.slot)
        cast.peers.push_back(UINT32_MAX);
      cast.peers[cast.actors[actor.program].peer_first + operation.slot] =
          graph.actors[graph.peers[actor.peer_first + operation.slot]].program;
    }
  }
  for (std::uint32_t i = 0; i < slots; ++i) cast.memberships.push_back(root_of(parent, i));
  cast.group_count = slots;
  return cast;
}

std::string in_words(const OpGraph& graph, const Cast& cast, std::span<const Instance> circle) {
  std::string text;
  for (const Instance& at : circle.first(std::min(circle.size(), named_max))) {
    const Program& program = graph.programs[cast.actors[at.actor].program];
    text += fmt::format("operation {} {} of {}, which waits for ", at.operation,
                        quote(graph.labels[program.operations[at.operation].label]),
                        quote(program.role));
  }
  if (circle.size() > named_max) return text + fmt::format("{} more", circle.size() - named_max);
  return text + "the first";
}

}  // namespace

std::string find_circle(const OpGraph& graph) {
  const Script script = read_script(graph);
  const Cast roles = roles_of(graph, script);
  const std::vector<Instance> circle = CircleSearch(graph, script, roles).run();
  if (circle.empty()) return "";
  std::uint64_t instances = 0;
  for (const Actor& actor : graph.actors)
    instances += graph.programs[actor.program].operations.size();
  if (instances > circle_instances_max) return in_words(graph, roles, circle);
  const Cast actors{graph.actors, graph.peers, graph.memberships, graph.groups.size()};
  const std::vector<Instance> exact = CircleSearch(graph, script, actors).run();
  return exact.empty() ? "" : in_words(graph, actors, exact);
}

}  // namespace weft::model
