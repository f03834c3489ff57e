// Where the time of an iteration went: compute, exposed communication, waiting for others.
#include <fmt/format.h>

#include <algorithm>

#include "engine/fluid/graph_run.hpp"
#include "engine/fluid/stage.hpp"

namespace weft::engine::fluid {
namespace {

constexpr std::size_t waits_kept = 10;
constexpr std::size_t stuck_shown = 100;
constexpr int walk_max = 1'000;

using model::Operation;
using Kind = model::Operation::Kind;

}  // namespace

// The dependency that ended last, or the operation that it queued behind; none where there is none.
std::uint32_t GraphRun::last_dependency(std::uint32_t actor, std::uint32_t operation) const {
  const model::Program& source = *graph_program(actor);
  const Operation& o = source.operations[operation];
  std::uint32_t last = none;
  for (std::uint32_t a = 0; a < o.after_count; ++a) {
    const std::uint32_t before = source.after[o.after_first + a];
    if (last == none || end_s_[row(actor, before)] > end_s_[row(actor, last)]) last = before;
  }
  // What a started operation has left is whom it got its stream from (sends count transfers there).
  const std::uint32_t queued_behind = left_[row(actor, operation)];
  if (o.stream != 0 && o.kind != Kind::send && queued_behind > 0) last = queued_behind - 1;
  return last;
}

// Collectives since from_s that the operation had to wait for, in order of their starts. Those of a
// sequence stand one behind another; a computation ends it.
std::vector<GraphRun::OwnCollective> GraphRun::own_collectives(std::uint32_t actor,
                                                               std::uint32_t operation,
                                                               double from_s) const {
  std::vector<OwnCollective> own;
  const model::Program& source = *graph_program(actor);
  const Operation& o = source.operations[operation];
  for (std::uint32_t a = 0; a < o.after_count; ++a) {
    std::uint32_t before = source.after[o.after_first + a];
    for (int step = 0; step < walk_max && before != none; ++step) {
      const std::uint32_t at = row(actor, before);
      const Operation& b = source.operations[before];
      if (b.kind == Kind::compute || end_s_[at] <= from_s) break;
      if (b.kind == Kind::collective)
        own.push_back({std::max(from_s, start_s_[at]), end_s_[at], b.dimension});
      before = last_dependency(actor, before);
    }
  }
  std::ranges::stable_sort(own, {}, &OwnCollective::start_s);
  return own;
}

// Waiting for somebody else is idle only while no collective of the actor's own has to end anyway.
// Returns the idle part.
double GraphRun::book_waiting(double from_s, double until_s, std::span<const OwnCollective> own) {
  double idle_s = until_s - from_s;
  for (const OwnCollective& collective : own) {
    const double start = std::max(from_s, collective.start_s);
    const double end = std::min(until_s, collective.end_s);
    if (end <= start) continue;
    current_.exposed_s[static_cast<std::size_t>(collective.dimension)] += end - start;
    idle_s -= end - start;
    from_s = end;
  }
  current_.idle_s += idle_s;
  return idle_s;
}

// The actor has computed nothing since busy_until_s. Walks back along what held it up: transfers
// are exposed communication, and what came before they could start was waiting for somebody.
void GraphRun::account_gap(std::uint32_t actor, std::uint32_t operation, double until_s) {
  const double from = actors_[actor].busy_until_s;
  const std::vector<OwnCollective> own = own_collectives(actor, operation, from);
  double t = until_s;
  for (int step = 0; step < walk_max && t > from; ++step) {
    const std::uint32_t before = last_dependency(actor, operation);
    if (before == none) break;
    const std::uint32_t at = row(actor, before);
    if (end_s_[at] < t) {
      book_waiting(std::max(from, end_s_[at]), t, own);
      t = std::max(from, end_s_[at]);
    }
    const Operation& o = op(actor, before);
    if (o.kind != Kind::compute) {
      const double start = std::max(from, start_s_[at]);
      if (start < t) current_.exposed_s[static_cast<std::size_t>(o.dimension)] += t - start;
      t = std::min(t, start);
      const double ready = std::max(from, ready_s_[at]);
      if (ready < t) {
        blame(actor, before, book_waiting(ready, t, own));
        t = ready;
      }
    } else {
      t = std::min(t, std::max(from, start_s_[at]));
    }
    operation = before;
  }
  if (t > from) book_waiting(from, t, own);
}

// Whoever came last to this communication is what the actor waited for.
void GraphRun::blame(std::uint32_t actor, std::uint32_t operation, double seconds) {
  const Operation& o = op(actor, operation);
  std::uint32_t culprit = actor;
  if (o.kind == Kind::collective) {
    const std::uint32_t group = graph_.memberships[graph_.actors[actor].group_first + o.slot];
    const std::uint32_t call = groups_[group].first + graph_program(actor)->match[operation];
    culprit = last_actor_[call];
    if (graph_.groups[group].actors > 1)
      seconds = std::min(seconds, start_s_[row(actor, operation)] - before_last_s_[call]);
  } else {
    culprit = graph_.peers[graph_.actors[actor].peer_first + o.slot];
  }
  if (culprit != actor && seconds > 0)
    waits_[{culprit, o.dimension}] += seconds * static_cast<double>(graph_.ranks_per_actor);
}

// Stages of a pipeline are waited for in the best of worlds: only what exceeds the median of the
// actors with the same program is somebody's doing.
void GraphRun::subtract_usual_waits() {
  std::map<std::uint32_t, std::vector<double>> of_program;
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a) {
    const auto wait = waits_.find({a, model::Dimension::pp});
    of_program[graph_.actors[a].program].push_back(wait == waits_.end() ? 0 : wait->second);
  }
  for (auto& [program, waits] : of_program)
    std::ranges::nth_element(waits,
                             waits.begin() + static_cast<std::ptrdiff_t>((waits.size() - 1) / 2));
  for (auto& [key, seconds] : waits_) {
    if (key.second != model::Dimension::pp) continue;
    const std::vector<double>& all = of_program[graph_.actors[key.first].program];
    seconds -= all[(all.size() - 1) / 2];
  }
}

void GraphRun::rank_waits() {
  subtract_usual_waits();
  for (const auto& [key, seconds] : waits_)
    if (seconds > 0)
      current_.waits.push_back({graph_.ranks_of(key.first).front(), key.second, seconds});
  std::ranges::stable_sort(current_.waits, std::ranges::greater{}, &GraphResult::Wait::seconds);
  if (current_.waits.size() > waits_kept) current_.waits.resize(waits_kept);
}

void GraphRun::find_stragglers() {
  std::vector<double> compute_s;
  std::vector<std::uint32_t> slowest;
  for (std::uint32_t a = 0; a < actors_.size(); ++a) {
    compute_s.push_back(actors_[a].compute_s);
    slowest.push_back(job_.slowest_of(a, network_.state(), network_.fabric()));
  }
  current_.stragglers = engine::find_stragglers(graph_, compute_s, slowest);
}

// Whose operation, of those that had to be ready for this one to start, became ready last.
std::pair<std::uint32_t, std::uint32_t> GraphRun::held_up_by(std::uint32_t actor,
                                                             std::uint32_t operation) const {
  const Operation& o = op(actor, operation);
  if (o.kind == Kind::compute) return {actor, operation};
  const std::uint32_t match = graph_program(actor)->match[operation];
  if (o.kind == Kind::collective) {
    const std::uint32_t g = graph_.memberships[graph_.actors[actor].group_first + o.slot];
    const GroupState& group = groups_[g];
    const std::uint32_t last = last_actor_[group.first + match];
    const auto member = std::ranges::find(group.actors, last) - group.actors.begin();
    return {last, call_operation(last, group.slots[static_cast<std::size_t>(member)], match)};
  }
  const std::uint32_t peer = graph_.peers[graph_.actors[actor].peer_first + o.slot];
  if (ready_s_[row(peer, match)] > ready_s_[row(actor, operation)]) return {peer, match};
  return {actor, operation};
}

// How far apart the ranks of a communication are. Routes of messages are the sender's.
model::Distance GraphRun::farthest(std::uint32_t actor, std::uint32_t operation) {
  const Operation& o = op(actor, operation);
  const std::array<double, model::distance_count>* shares = nullptr;
  if (o.kind == Kind::collective) {
    const std::uint32_t group = graph_.memberships[graph_.actors[actor].group_first + o.slot];
    shares = &call_of(group, o).traffic->distance_bytes;
  } else {
    const std::uint32_t slot = graph_.actors[actor].peer_first + o.slot;
    if (o.kind == Kind::recv)
      return farthest(graph_.peers[slot], graph_program(actor)->match[operation]);
    shares = &peer_routes_[slot].distance_share;
  }
  std::size_t at = model::distance_count - 1;
  while (at > 0 && (*shares)[at] <= 0) --at;
  return static_cast<model::Distance>(at);
}

// Communication that is folded into compute operations stays inside the host.
void GraphRun::add_critical(std::uint32_t actor, std::uint32_t operation, double from_s,
                            double to_s) {
  const Operation& o = op(actor, operation);
  double seconds = to_s - from_s;
  auto& parts = current_.critical.communication_s;
  if (o.kind != Kind::compute) {
    const auto distance = static_cast<std::size_t>(farthest(actor, operation));
    parts[static_cast<std::size_t>(o.dimension)][distance] += seconds;
    if (network_.notes_limits()) add_limits(actor, operation, from_s, to_s);
    return;
  }
  const auto& folded = graph_program(actor)->folded;
  for (auto f = std::ranges::lower_bound(folded, operation, {}, &model::Folded::operation);
       f != folded.end() && f->operation == operation; ++f) {
    const double part = std::min(seconds, f->seconds);
    parts[static_cast<std::size_t>(f->dimension)][0] += part;
    if (current_.critical_links) current_.critical_links->folded_s += part;
    seconds -= part;
  }
  current_.critical.compute_s += seconds;
}

// What the communication waited for: a message, as its sender's; a collective, by call.
void GraphRun::add_limits(std::uint32_t actor, std::uint32_t operation, double from_s,
                          double to_s) {
  const Operation& o = op(actor, operation);
  const std::uint32_t match = graph_program(actor)->match[operation];
  if (o.kind == Kind::collective) {
    const std::uint32_t group = graph_.memberships[graph_.actors[actor].group_first + o.slot];
    return critical_limits_.add(call_limits_.at(groups_[group].first + match), from_s, to_s);
  }
  const std::uint32_t peer = graph_.peers[graph_.actors[actor].peer_first + o.slot];
  const std::uint32_t at = o.kind == Kind::recv ? row(peer, match) : row(actor, operation);
  critical_limits_.add(message_limits_.at(at), from_s, to_s);
}

void GraphRun::take_limits() {
  if (!current_.critical_links) return;
  GraphResult::LinkWaits& out = *current_.critical_links;
  out.latency_s = critical_limits_.seconds(limit::latency);
  out.library_s = critical_limits_.seconds(limit::library);
  out.no_path_s = critical_limits_.seconds(limit::no_path);
  const std::vector<double> seconds = network_.by_link(critical_limits_);
  for (const LinkId link : ids<LinkId>(seconds.size()))
    if (seconds[link.index()] > 0) out.links.emplace_back(link, seconds[link.index()]);
  std::ranges::stable_sort(out.links, std::ranges::greater{}, &std::pair<LinkId, double>::second);
}

// From the operation that ended last back to the begin. A message or collective takes from its
// start to its end; it started when the last of its ranks was ready, whose path goes on. What lies
// between an operation's dependencies and its own start, it spent in the queue of its stream.
void GraphRun::find_critical_path() {
  current_.critical = {};
  critical_limits_ = {};
  if (network_.notes_limits()) current_.critical_links = GraphResult::LinkWaits{};
  std::uint32_t actor = none, operation = none;
  for (std::uint32_t a = 0; a < actors_.size(); ++a)
    for (std::uint32_t o = 0; o < graph_program(a)->operations.size(); ++o)
      if (actor == none || end_s_[row(a, o)] > end_s_[row(actor, operation)])
        actor = a, operation = o;
  if (actor == none) return;
  double t = network_.now();
  while (operation != none && t > operations_begin_s_) {
    const auto [last, its] = held_up_by(actor, operation);
    const std::uint32_t before = last_dependency(last, its);
    const double ended =
        before == none ? operations_begin_s_ : std::min(t, end_s_[row(last, before)]);
    add_critical(actor, operation, ended, t);
    t = ended;
    actor = last;
    operation = before;
  }
  take_limits();
}

// What is left after each actor's last computation, then the means.
void GraphRun::account_iteration() {
  double compute = 0;
  current_.busiest_compute_s = 0;
  for (std::uint32_t a = 0; a < actors_.size(); ++a) {
    std::uint32_t last = none;
    const auto& operations = graph_program(a)->operations;
    for (std::uint32_t o = 0; o < operations.size(); ++o)
      if (last == none || end_s_[row(a, o)] > end_s_[row(a, last)]) last = o;
    if (last != none && network_.now() > actors_[a].busy_until_s) account_tail(a, last);
    compute += actors_[a].compute_s;
    if (actors_[a].compute_s <= current_.busiest_compute_s) continue;
    current_.busiest_compute_s = actors_[a].compute_s;
    current_.busiest_rank = graph_.ranks_of(a).front();
  }
  const double share = actors_.empty() ? 0 : 1 / static_cast<double>(actors_.size());
  current_.idle_s *= share;
  for (double& seconds : current_.exposed_s) seconds *= share;
  current_.compute_s = compute * share;
  find_stragglers();
  find_critical_path();
  rank_waits();
  take_folded(share);
}

void GraphRun::account_tail(std::uint32_t actor, std::uint32_t last) {
  const double from = actors_[actor].busy_until_s;
  const std::uint32_t at = row(actor, last);
  const double end = std::max(from, end_s_[at]);
  current_.idle_s += network_.now() - end;
  const Operation& o = op(actor, last);
  if (o.kind == Kind::compute || end <= from) return;
  const double start = std::max(from, start_s_[at]);
  current_.exposed_s[static_cast<std::size_t>(o.dimension)] += end - start;
  const double ready = std::max(from, ready_s_[at]);
  if (ready < start) {
    blame(actor, last, start - ready);
    current_.idle_s += start - ready;
  }
  account_gap(actor, last, std::min(start, ready));
}

// Communication that is folded into compute operations is exposed too.
void GraphRun::take_folded(double share) {
  std::vector<std::uint32_t> actors_of(graph_.programs.size(), 0);
  for (const model::Actor& actor : graph_.actors) ++actors_of[actor.program];
  for (std::size_t p = 0; p < graph_.programs.size(); ++p)
    for (const model::Folded& folded : graph_.programs[p].folded) {
      const double seconds = folded.seconds * actors_of[p] * share;
      current_.exposed_s[static_cast<std::size_t>(folded.dimension)] += seconds;
      current_.compute_s -= seconds;
    }
}

void GraphRun::record_spans() {
  std::vector<bool> seen(graph_.programs.size(), false);
  for (std::uint32_t a = 0; a < actors_.size(); ++a) {
    const std::uint32_t program = graph_.actors[a].program;
    if (seen[program]) continue;
    seen[program] = true;
    for (std::uint32_t o = 0; o < graph_program(a)->operations.size(); ++o) {
      if (op(a, o).kind == Kind::send) continue;  // the recv shows it, on the side that waits
      if (current_.spans.size() == engine::graph_span_count_max) return;
      current_.spans.push_back({program, o, start_s_[row(a, o)], end_s_[row(a, o)]});
    }
  }
}

GraphResult GraphRun::take_result() {
  for (const std::string& note : library_calls_.notes())
    result_.notes.push_back(fmt::format("job {}: {}", job_.name, note));
  if (!result_.finished) list_stuck();
  if (front_end_) result_.front_end = std::move(front_end_->result);
  return std::move(result_);
}

void GraphRun::list_stuck() {
  std::size_t more = 0;
  for (std::uint32_t a = 0; a < actors_.size(); ++a)
    for (std::uint32_t o = 0; o < graph_program(a)->operations.size(); ++o) {
      const Phase phase = phase_[row(a, o)];
      if (phase == Phase::ended || phase == Phase::waiting) continue;
      if (result_.stuck.size() == stuck_shown) {
        ++more;
        continue;
      }
      result_.stuck.push_back(describe_operation(a, o));
    }
  if (more > 0) result_.stuck.push_back(fmt::format("... and {} more", more));
}

std::string GraphRun::describe_operation(std::uint32_t actor, std::uint32_t operation) const {
  const Operation& o = op(actor, operation);
  return fmt::format("job {}, iteration {}, rank {} ({}): \"{}\" has not finished", job_.name,
                     iteration_ + 1, graph_.ranks_of(actor).front(), graph_program(actor)->role,
                     graph_.labels[o.label]);
}

std::string GraphRun::describe_transfer(std::uint64_t value) const {
  const auto operation = static_cast<std::uint32_t>(value & ((1u << operation_bits) - 1));
  const auto actor = static_cast<std::uint32_t>(value >> operation_bits & timer_begin);
  const std::uint32_t peer =
      graph_.peers[graph_.actors[actor].peer_first + op(actor, operation).slot];
  std::string why;
  for (std::uint32_t k = 0; k < graph_.ranks_per_actor && why.empty(); ++k)
    why = why_unreachable(std::array{graph_.ranks_of(actor)[k], graph_.ranks_of(peer)[k]});
  return describe_operation(actor, operation) + ": it has no live path or no bandwidth" + why;
}

std::string GraphRun::describe_play(std::uint64_t token) const {
  const auto group = static_cast<std::uint32_t>(owned_value(token) >> operation_bits & timer_begin);
  const model::RankGroup& ranks = graph_.groups[group];
  return fmt::format(
      "job {}, iteration {}: a collective of {} ranks from rank {} on ({}) has no "
      "live path or no bandwidth{}",
      job_.name, iteration_ + 1, ranks.ranks.size(), ranks.ranks.front(), to_text(ranks.dimension),
      why_unreachable(ranks.ranks));
}

std::string GraphRun::why_transfer(std::uint64_t value) const {
  const auto operation = static_cast<std::uint32_t>(value & ((1u << operation_bits) - 1));
  const auto actor = static_cast<std::uint32_t>(value >> operation_bits & timer_begin);
  const Operation& o = op(actor, operation);
  const std::uint32_t peer = graph_.peers[graph_.actors[actor].peer_first + o.slot];
  std::string path;
  for (std::uint32_t k = 0; k < graph_.ranks_per_actor && path.empty(); ++k)
    path = dead_path(std::array{graph_.ranks_of(actor)[k], graph_.ranks_of(peer)[k]});
  return fmt::format("{} ({})", path.empty() ? "a message has no bandwidth" : path,
                     to_text(o.dimension));
}

std::string GraphRun::why_play(std::uint64_t token) const {
  const auto group = static_cast<std::uint32_t>(owned_value(token) >> operation_bits & timer_begin);
  const model::RankGroup& ranks = graph_.groups[group];
  const std::string path = dead_path(ranks.ranks);
  return fmt::format(
      "{} ({})",
      path.empty() ? fmt::format("a collective of {} ranks has no bandwidth", ranks.ranks.size())
                   : path,
      to_text(ranks.dimension));
}

// The first of the ranks that has no path to its neighbour in the list; "" where all have.
std::string GraphRun::dead_path(std::span<const std::uint32_t> ranks) const {
  for (std::size_t i = 0; i + 1 < ranks.size(); ++i) {
    const NodeId a = job_.ranks[ranks[i]], b = job_.ranks[ranks[i + 1]];
    if (const std::string path = describe_dead_path(a, b, network_.router()); !path.empty())
      return path;
    if (const std::string path = describe_dead_path(b, a, network_.router()); !path.empty())
      return path;
  }
  return "";
}

// The first of the ranks that its neighbour in the list cannot reach, with the reason.
std::string GraphRun::why_unreachable(std::span<const std::uint32_t> ranks) const {
  for (std::size_t i = 0; i + 1 < ranks.size(); ++i)
    for (const bool forth : {true, false}) {
      const NodeId a = job_.ranks[ranks[forth ? i : i + 1]];
      const NodeId b = job_.ranks[ranks[forth ? i + 1 : i]];
      if (const Status status = network_.router().check_connected(a, b); !status)
        return ": " + status.error().what;
    }
  return "";
}

}  // namespace weft::engine::fluid
