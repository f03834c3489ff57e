#include "model/work/op_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/text.hpp"
#include "model/work/op_graph_cycle.hpp"

namespace weft::model {
namespace {

using Kind = Operation::Kind;

constexpr std::array<std::string_view, dimension_count> dimension_names{"tp", "cp", "pp",
                                                                        "dp", "ep", "other"};
constexpr std::uint32_t none = UINT32_MAX;

std::unexpected<Error> wrong(std::string what) { return fail(Errc::value, {}, std::move(what)); }

bool is_amount(double number) { return std::isfinite(number) && number >= 0; }
bool is_message(const Operation& op) { return op.kind == Kind::send || op.kind == Kind::recv; }

// Where a peer slot leads, the same for all actors of a program. Slots with one peer are one.
struct Link {
  std::uint32_t slot = none;     // the lowest with this peer
  std::uint32_t program = none;  // of the peer
  std::uint32_t back = none;     // the peer's lowest slot that leads here
  friend bool operator==(const Link&, const Link&) = default;
};

// All sends, or all recvs, of a program over one link with one tag.
struct Message {
  std::uint32_t slot, tag;
  Kind kind;
  std::uint32_t operation;
  auto key() const { return std::tuple(slot, tag, kind); }
};

// `sorted` by key.
template <class Key>
std::span<const Message> with_key(std::span<const Message> sorted, const Key& key) {
  const auto found = std::ranges::equal_range(sorted, key, {}, &Message::key);
  return {found.begin(), found.end()};
}

struct Finisher {
  OpGraph& graph;
  std::vector<std::uint32_t> peer_slots, group_slots;          // by program: how many it uses
  std::vector<std::uint32_t> example;                          // by program: its first actor
  std::vector<std::vector<std::uint32_t>> by_peer;             // by actor: its slots, by peer
  std::vector<std::vector<Link>> links;                        // by program and slot
  std::vector<std::vector<Message>> messages;                  // by program, by key
  std::vector<std::vector<std::vector<std::uint32_t>>> calls;  // by program and group slot

  std::string name(std::uint32_t p, std::uint32_t o) const {
    const Program& program = graph.programs[p];
    return fmt::format("operation {} {} of {}", o, quote(graph.labels[program.operations[o].label]),
                       quote(program.role));
  }

  Status check_operation(std::uint32_t p, std::uint32_t o) const {
    const Program& program = graph.programs[p];
    const Operation& op = program.operations[o];
    if (op.label >= graph.labels.size())
      return wrong(fmt::format("operation {} of {} has label {}, but there are {}", o,
                               quote(program.role), op.label, graph.labels.size()));
    if (!is_amount(op.seconds) || !is_amount(op.bytes))
      return wrong(fmt::format("{} takes {} s and {} bytes; both must be finite and at least 0",
                               name(p, o), op.seconds, op.bytes));
    if (std::uint64_t{op.after_first} + op.after_count > program.after.size())
      return wrong(name(p, o) + " has dependencies beyond the end of the list");
    for (std::uint32_t a = 0; a < op.after_count; ++a)
      if (program.after[op.after_first + a] >= program.operations.size())
        return wrong(fmt::format("{} waits for operation {}, but there are {}", name(p, o),
                                 program.after[op.after_first + a], program.operations.size()));
    return {};
  }

  Status check_folded(std::uint32_t p) const {
    const Program& program = graph.programs[p];
    std::uint32_t last = 0;
    double sum = 0;
    for (const Folded& folded : program.folded) {
      const std::uint32_t o = folded.operation;
      if (o < last) return wrong("folded parts of " + quote(program.role) + " are out of order");
      if (o >= program.operations.size() || program.operations[o].kind != Kind::compute)
        return wrong(
            fmt::format("a folded part of {} belongs to operation {}, which does not "
                        "compute",
                        quote(program.role), o));
      sum = o == last ? sum + folded.seconds : folded.seconds;
      last = o;
      // The sum may be off by rounding.
      if (!is_amount(folded.seconds) || sum > program.operations[o].seconds * (1 + 1e-9))
        return wrong(fmt::format("folded parts of {} take {} s, but the whole operation takes {} s",
                                 name(p, o), sum, program.operations[o].seconds));
    }
    return {};
  }

  Status check_programs() {
    for (std::uint32_t p = 0; p < graph.programs.size(); ++p) {
      const Program& program = graph.programs[p];
      peer_slots.push_back(0);
      group_slots.push_back(0);
      if (program.operations.size() >= none) return wrong("a program has too many operations");
      for (std::uint32_t o = 0; o < program.operations.size(); ++o) {
        WEFT_TRY_STATUS(check_operation(p, o));
        const Operation& op = program.operations[o];
        if (op.kind == Kind::compute) continue;
        if (op.slot == none) return wrong(name(p, o) + " has an impossible slot");
        std::uint32_t& slots = is_message(op) ? peer_slots[p] : group_slots[p];
        slots = std::max(slots, op.slot + 1);
      }
      WEFT_TRY_STATUS(check_folded(p));
    }
    return {};
  }

  Status check_actor(std::uint32_t a) {
    const Actor& actor = graph.actors[a];
    if (actor.program >= graph.programs.size())
      return wrong(fmt::format("actor {} runs program {}, but there are {}", a, actor.program,
                               graph.programs.size()));
    if (example[actor.program] == none) example[actor.program] = a;
    const std::uint64_t peer_end = std::uint64_t{actor.peer_first} + peer_slots[actor.program];
    const std::uint64_t group_end = std::uint64_t{actor.group_first} + group_slots[actor.program];
    if (peer_end > graph.peers.size() || group_end > graph.memberships.size())
      return wrong(fmt::format("actor {} lacks peers or groups that {} uses", a,
                               quote(graph.programs[actor.program].role)));
    for (std::uint64_t i = actor.peer_first; i < peer_end; ++i)
      if (graph.peers[i] >= graph.actors.size())
        return wrong(fmt::format("a peer of actor {} is actor {}, but there are {}", a,
                                 graph.peers[i], graph.actors.size()));
    for (std::uint64_t i = actor.group_first; i < group_end; ++i)
      if (graph.memberships[i] >= graph.groups.size())
        return wrong(fmt::format("actor {} is in group {}, but there are {}", a,
                                 graph.memberships[i], graph.groups.size()));
    return {};
  }

  Status check_actors() {
    if (graph.ranks_per_actor == 0 ||
        graph.actor_ranks.size() != graph.actors.size() * graph.ranks_per_actor)
      return wrong(fmt::format("{} actors of {} ranks do not have {} ranks", graph.actors.size(),
                               graph.ranks_per_actor, graph.actor_ranks.size()));
    std::vector<std::uint8_t> taken(graph.rank_count, 0);
    for (const std::uint32_t rank : graph.actor_ranks) {
      if (rank >= graph.rank_count)
        return wrong(fmt::format("rank {} of a job of {} ranks", rank, graph.rank_count));
      if (std::exchange(taken[rank], std::uint8_t{1}) != 0)
        return wrong(fmt::format("rank {} belongs to two actors", rank));
    }
    example.assign(graph.programs.size(), none);
    for (std::uint32_t a = 0; a < graph.actors.size(); ++a) WEFT_TRY_STATUS(check_actor(a));
    const auto idle = std::ranges::find(example, none);
    if (idle == example.end()) return {};
    return wrong("no actor runs " +
                 quote(graph.programs[static_cast<std::size_t>(idle - example.begin())].role));
  }

  std::uint32_t peer(std::uint32_t a, std::uint32_t slot) const {
    return graph.peers[graph.actors[a].peer_first + slot];
  }
  std::uint32_t slot_to(std::uint32_t a, std::uint32_t b) const {
    const auto slot =
        std::ranges::lower_bound(by_peer[a], b, {}, [&](std::uint32_t s) { return peer(a, s); });
    return slot != by_peer[a].end() && peer(a, *slot) == b ? *slot : none;
  }
  Link link(std::uint32_t a, std::uint32_t slot) const {
    const std::uint32_t b = peer(a, slot);
    return {slot_to(a, b), graph.actors[b].program, slot_to(b, a)};
  }

  // Links of all actors, which must agree within each program.
  Status find_links() {
    by_peer.resize(graph.actors.size());
    for (std::uint32_t a = 0; a < graph.actors.size(); ++a) {
      by_peer[a].resize(peer_slots[graph.actors[a].program]);
      std::iota(by_peer[a].begin(), by_peer[a].end(), 0u);
      std::ranges::stable_sort(by_peer[a], {}, [&](std::uint32_t s) { return peer(a, s); });
    }
    for (std::uint32_t p = 0; p < graph.programs.size(); ++p) {
      links.emplace_back();
      for (std::uint32_t s = 0; s < peer_slots[p]; ++s) links[p].push_back(link(example[p], s));
    }
    for (std::uint32_t a = 0; a < graph.actors.size(); ++a) {
      const std::uint32_t p = graph.actors[a].program;
      for (std::uint32_t s = 0; s < peer_slots[p]; ++s)
        if (link(a, s) != links[p][s])
          return wrong(
              fmt::format("actors {} and {} both run {}, but their peers in slot {} have "
                          "other programs or slots",
                          example[p], a, quote(graph.programs[p].role), s));
    }
    return {};
  }

  void list_messages() {
    for (std::uint32_t p = 0; p < graph.programs.size(); ++p) {
      Program& program = graph.programs[p];
      program.match.assign(program.operations.size(), none);
      auto& list = messages.emplace_back();
      for (std::uint32_t o = 0; o < program.operations.size(); ++o) {
        const Operation& op = program.operations[o];
        if (is_message(op)) list.push_back({links[p][op.slot].slot, op.tag, op.kind, o});
      }
      std::ranges::stable_sort(list, {}, &Message::key);
    }
  }

  Status match_messages() {
    list_messages();
    for (std::uint32_t p = 0; p < graph.programs.size(); ++p)
      for (std::size_t i = 0; i < messages[p].size();) {
        const std::span<const Message> own =
            with_key(std::span(messages[p]).subspan(i), messages[p][i].key());
        WEFT_TRY_STATUS(match_run(p, own));
        i += own.size();
      }
    return {};
  }

  Status match_run(std::uint32_t p, std::span<const Message> own) {
    const Message& first = own.front();
    const Link& link = links[p][first.slot];
    const std::uint32_t q = link.program;
    const bool sends = first.kind == Kind::send;
    const Kind other_kind = sends ? Kind::recv : Kind::send;
    const std::span<const Message> other =
        with_key(messages[q], std::tuple(link.back, first.tag, other_kind));
    if (own.size() != other.size())
      return wrong(fmt::format(
          "{} {} {} messages with tag {} {} {}, which {} {} of them", quote(graph.programs[p].role),
          sends ? "sends" : "receives", own.size(), first.tag, sends ? "to" : "from",
          quote(graph.programs[q].role), sends ? "receives" : "sends", other.size()));
    for (std::size_t k = 0; k < own.size(); ++k) {
      const std::uint32_t mine = own[k].operation, theirs = other[k].operation;
      graph.programs[p].match[mine] = theirs;
      const double bytes = graph.programs[p].operations[mine].bytes;
      const double expected = graph.programs[q].operations[theirs].bytes;
      if (bytes != expected)
        return wrong(fmt::format("{} has {} bytes, but its other end, {}, has {}", name(p, mine),
                                 bytes, name(q, theirs), expected));
    }
    return {};
  }

  void number_calls() {
    for (std::uint32_t p = 0; p < graph.programs.size(); ++p) {
      Program& program = graph.programs[p];
      auto& lists = calls.emplace_back(group_slots[p]);
      for (std::uint32_t o = 0; o < program.operations.size(); ++o) {
        const Operation& op = program.operations[o];
        if (op.kind != Kind::collective) continue;
        program.match[o] = static_cast<std::uint32_t>(lists[op.slot].size());
        lists[op.slot].push_back(o);
      }
    }
  }

  struct Member {
    std::uint32_t actor, slot;
  };

  Status check_calls(const Actor& a, std::uint32_t a_slot, const Actor& b, std::uint32_t b_slot) {
    if (a.program == b.program && a_slot == b_slot) return {};
    const auto& a_calls = calls[a.program][a_slot];
    const auto& b_calls = calls[b.program][b_slot];
    if (a_calls.size() != b_calls.size())
      return wrong(fmt::format("{} and {} share a group, but call {} and {} collectives in it",
                               quote(graph.programs[a.program].role),
                               quote(graph.programs[b.program].role), a_calls.size(),
                               b_calls.size()));
    for (std::size_t k = 0; k < a_calls.size(); ++k) {
      const Operation& x = graph.programs[a.program].operations[a_calls[k]];
      const Operation& y = graph.programs[b.program].operations[b_calls[k]];
      if (x.collective != y.collective || x.bytes != y.bytes || x.dimension != y.dimension)
        return wrong(
            fmt::format("{} and {} meet in one collective, but differ in operation, "
                        "purpose or size",
                        name(a.program, a_calls[k]), name(b.program, b_calls[k])));
    }
    return {};
  }

  // `stamp`, by rank: the last group that has it, counted from 1.
  Status check_group(std::uint32_t g, std::span<const Member> members,
                     std::vector<std::uint32_t>& stamp) {
    const RankGroup& group = graph.groups[g];
    if (group.rows == 0 || group.ranks.empty() || group.ranks.size() % group.rows != 0)
      return wrong(fmt::format("group {} has {} ranks, which do not divide into {} rows", g,
                               group.ranks.size(), group.rows));
    for (const std::uint32_t rank : group.ranks) {
      if (rank >= graph.rank_count)
        return wrong(
            fmt::format("group {} has rank {}, but the job has {}", g, rank, graph.rank_count));
      if (std::exchange(stamp[rank], g + 1) == g + 1)
        return wrong(fmt::format("group {} has rank {} twice", g, rank));
    }
    if (members.size() != group.actors)
      return wrong(fmt::format("group {} waits for {} actors, but {} are in it", g, group.actors,
                               members.size()));
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0 && members[i].actor == members[i - 1].actor)
        return wrong(fmt::format("actor {} has group {} in two slots", members[i].actor, g));
      for (const std::uint32_t rank : graph.ranks_of(members[i].actor))
        if (stamp[rank] != g + 1)
          return wrong(fmt::format("actor {} is in group {}, but its rank {} is not",
                                   members[i].actor, g, rank));
      WEFT_TRY_STATUS(check_calls(graph.actors[members[0].actor], members[0].slot,
                                  graph.actors[members[i].actor], members[i].slot));
    }
    return {};
  }

  Status check_groups() {
    number_calls();
    std::vector<std::size_t> first(graph.groups.size() + 1, 0);
    const auto for_each_slot = [&](auto&& visit) {
      for (std::uint32_t a = 0; a < graph.actors.size(); ++a)
        for (std::uint32_t s = 0; s < group_slots[graph.actors[a].program]; ++s)
          visit(graph.memberships[graph.actors[a].group_first + s], Member{a, s});
    };
    for_each_slot([&](std::uint32_t group, Member) { ++first[group + 1]; });
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<Member> members(first.back());
    std::vector<std::size_t> next = first;
    for_each_slot([&](std::uint32_t group, Member member) { members[next[group]++] = member; });
    std::vector<std::uint32_t> stamp(graph.rank_count, 0);
    for (std::uint32_t g = 0; g < graph.groups.size(); ++g)
      WEFT_TRY_STATUS(
          check_group(g, std::span(members).subspan(first[g], first[g + 1] - first[g]), stamp));
    return {};
  }
};

}  // namespace

std::string_view to_text(Dimension dimension) {
  return dimension_names[static_cast<std::size_t>(dimension)];
}

std::uint32_t OpGraph::label(std::string_view text) {
  const auto found = std::ranges::find(labels, text);
  const auto index = static_cast<std::uint32_t>(found - labels.begin());
  if (found == labels.end()) labels.emplace_back(text);
  return index;
}

Status OpGraph::finish() {
  Finisher finisher{.graph = *this};
  WEFT_TRY_STATUS(finisher.check_programs());
  WEFT_TRY_STATUS(finisher.check_actors());
  WEFT_TRY_STATUS(finisher.find_links());
  WEFT_TRY_STATUS(finisher.match_messages());
  WEFT_TRY_STATUS(finisher.check_groups());
  if (const std::string circle = find_circle(*this); !circle.empty())
    return fail(Errc::value, {}, "operations wait for each other in a cycle: " + circle,
                "remove one of these dependencies, or reorder sends and recvs");
  return {};
}

std::uint32_t add_operation(Program& program, Operation operation,
                            std::span<const std::uint32_t> after) {
  const auto index = static_cast<std::uint32_t>(program.operations.size());
  operation.after_first = static_cast<std::uint32_t>(program.after.size());
  operation.after_count = static_cast<std::uint32_t>(after.size());
  program.after.insert(program.after.end(), after.begin(), after.end());
  program.operations.push_back(operation);
  return index;
}

}  // namespace weft::model
