// Which neighbouring ports of a switch may share a cause, such as a line card.
#include <algorithm>
#include <array>
#include <cmath>

#include "observe/localise/search.hpp"

namespace weft::observe::localise {
namespace {

constexpr std::size_t ranges_max = 20'000;
// Fewer neighbours may fail together by chance; more than 4/5 of all ports are the switch.
constexpr std::size_t ports_min = 4;
constexpr double promising = 10;  // least log likelihood ratio of a range worth a closer look

// The run of values with the largest sum (Kadane), as [first, last].
struct Run {
  std::size_t first = 0, last = 0;
  double sum = 0;
};
Run best_run(std::span<const double> values) {
  Run best, now;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (now.sum <= 0) now = {i, i, 0};
    now.sum += values[i];
    now.last = i;
    if (now.sum > best.sum) best = now;
  }
  return best;
}

}  // namespace

// Cards of a known size are all proposed; else the runs of ports that a few loss rates fit best.
void Search::propose_ranges() {
  double& total = kind_total_[static_cast<std::size_t>(EntityKind::card)];
  total = 0;
  for (const NodeId node : structure_.switches()) {
    const std::vector<LinkId> ports = structure_.ports(node);
    const auto count = static_cast<double>(ports.size());
    total += card_ports_ > 0 ? std::ceil(count / card_ports_) : count * (count - 1) / 2;
    const auto lossy = [&](LinkId out) {
      return !ledger_.entries(Structure::of(out)).empty() ||
             !ledger_.entries(Structure::of(model::reverse(out))).empty();
    };
    if (std::ranges::count_if(ports, lossy) < 2) continue;
    for (const Flow flow : {Flow::both, Flow::in, Flow::out})
      if (card_ports_ > 0)
        propose_cards(node, ports, flow);
      else
        propose_runs(node, ports, flow);
  }
}

void Search::propose_cards(NodeId node, std::span<const LinkId> ports, Flow flow) {
  const Fabric& fabric = structure_.fabric();
  for (std::size_t i = 0; i < ports.size();) {
    const std::uint32_t card = fabric.port(ports[i]) / card_ports_;
    std::size_t next = i;
    while (next < ports.size() && fabric.port(ports[next]) / card_ports_ == card) ++next;
    if (next - i > 1 && next - i < ports.size()) propose(node, ports.subspan(i, next - i), flow);
    i = next;
  }
}

void Search::propose_runs(NodeId node, std::span<const LinkId> ports, Flow flow) {
  constexpr std::array<double, 8> rates{3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.5, 5};
  const double normal = mean_intensity();
  std::vector<double> lost(ports.size(), 0), survived(ports.size(), 0), ratio(ports.size());
  const auto add = [&](std::size_t port, LinkId link) {
    const ComponentId component = Structure::of(link);
    survived[port] += tally(CauseId(component.value), {}).survived;
    for (const Entry& e : ledger_.entries(component))  // what no cause explains yet
      lost[port] +=
          lost_[e.row] * static_cast<double>(e.weight) * std::min(1.0, normal / mu_[e.row]);
  };
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (flow != Flow::in) add(i, ports[i]);
    if (flow != Flow::out) add(i, model::reverse(ports[i]));
  }
  for (const double rate : rates) {
    for (std::size_t i = 0; i < ports.size(); ++i)
      ratio[i] = lost[i] * std::log1p(rate / normal) - rate * survived[i];
    const Run run = best_run(ratio);
    const std::size_t count = run.last - run.first + 1;
    if (run.sum > promising && count >= ports_min && 5 * count <= 4 * ports.size())
      propose(node, ports.subspan(run.first, count), flow);
  }
}

// The ports of one host are that host.
bool Search::is_one_host(std::span<const LinkId> ports) const {
  const Fabric& fabric = structure_.fabric();
  ComponentId host;
  for (const LinkId out : ports) {
    if (fabric.is_switch(fabric.to(out))) continue;
    const ComponentId end = structure_.receiving(fabric.to(out));
    if (host.valid() && end != host) return false;
    host = end;
  }
  return host.valid();
}

void Search::propose(NodeId node, std::span<const LinkId> ports, Flow flow) {
  if (is_one_host(ports)) return;
  Group range = structure_.range(node, ports, flow);
  if (ranges_.size() < ranges_max && known_ranges_.insert(range.members).second)
    ranges_.push_back(std::move(range));
}

CauseId Search::range_cause(NodeId node, std::span<const LinkId> ports, Flow flow) {
  ranges_.push_back(structure_.range(node, ports, flow));
  return CauseId(ledger_.components + structure_.groups().size() + ranges_.size() - 1);
}

// With all other causes known: moves the ends of each range of ports while that gains.
void Search::refine_ranges() {
  if (card_ports_ > 0) return;
  for (Accepted& verdict : accepted_)
    if (entity(verdict.candidate.cause).kind == EntityKind::card) refine(verdict);
  learn();
}

void Search::refine(Accepted& verdict) {
  const Entity was = entity(verdict.candidate.cause);
  const std::vector<LinkId> ports = structure_.ports(NodeId(was.id));
  Span at = span_of(was, ports);
  std::ranges::fill(verdict.rates, 0);
  rebuild_extra();
  update_intensities(verdict.candidate.cause);
  Candidate best = score(verdict.candidate.cause, verdict.candidate.shape);
  const auto try_span = [&](Span span) {
    if (span.first < 0 || span.last >= std::ssize(ports) || span.last <= span.first ||
        span.last - span.first + 1 == std::ssize(ports))
      return false;
    const auto part = std::span(ports).subspan(
        static_cast<std::size_t>(span.first), static_cast<std::size_t>(span.last - span.first + 1));
    const Candidate candidate = score(range_cause(NodeId(was.id), part, was.flow), best.shape);
    if (candidate.score <= best.score) {
      ranges_.pop_back();
      return false;
    }
    best = candidate;
    at = span;
    return true;
  };
  for (std::size_t step = 0; step < ports.size(); ++step) {
    const Span now = at;
    const bool moved = try_span({now.first + 1, now.last}) || try_span({now.first, now.last - 1}) ||
                       try_span({now.first - 1, now.last}) || try_span({now.first, now.last + 1});
    if (!moved) break;
  }
  const std::span<const ComponentId> parts = members(best.cause);
  verdict.candidate = best;
  verdict.members.assign(parts.begin(), parts.end());
  verdict.rates.assign(parts.size(), best.rate);
  rebuild_extra();
  update_intensities();
}

Search::Span Search::span_of(const Entity& range, std::span<const LinkId> ports) const {
  const auto position = [&](std::uint32_t port) {
    return std::ranges::lower_bound(ports, port, {},
                                    [&](LinkId link) { return structure_.fabric().port(link); }) -
           ports.begin();
  };
  return {position(range.port_first), position(range.port_last)};
}

// Links that were found one by one on neighbouring ports: the first of them becomes a range, which
// then takes in the others.
void Search::promote_runs() {
  for (const NodeId node : structure_.switches())
    for (const Flow flow : {Flow::in, Flow::out}) {
      const std::vector<LinkId> ports = structure_.ports(node);
      std::vector<std::size_t> run;  // positions in accepted_
      for (std::size_t i = 0; i < ports.size(); ++i) {
        const LinkId link = flow == Flow::out ? ports[i] : model::reverse(ports[i]);
        const auto found = std::ranges::find_if(accepted_, [&](const Accepted& verdict) {
          return verdict.candidate.cause == CauseId(link.value) &&
                 verdict.candidate.shape == Shape{};
        });
        if (found == accepted_.end()) {
          run.clear();
          continue;
        }
        run.push_back(static_cast<std::size_t>(found - accepted_.begin()));
        if (run.size() == ports_min)
          accepted_[run.front()].candidate.cause =
              range_cause(node, std::span(ports).subspan(i + 1 - ports_min, 1), flow);
      }
    }
}

// What is found right beside a range of faulty ports belongs to it: a link with too few losses for
// the range's rate, or the rest of the range.
void Search::merge_neighbours() {
  if (card_ports_ == 0 && accepted_.size() >= ports_min) promote_runs();
  for (std::size_t i = 0; i < accepted_.size() && card_ports_ == 0;) {
    std::size_t j = 0;
    while (j < accepted_.size() && (j == i || !extend(accepted_[i], accepted_[j]))) ++j;
    if (j == accepted_.size()) {
      ++i;
      continue;
    }
    accepted_.erase(accepted_.begin() + static_cast<std::ptrdiff_t>(j));
    if (j < i) --i;
  }
}

// Adds the neighbour to the range where it touches it.
bool Search::extend(Accepted& range, const Accepted& neighbour) {
  const Entity was = entity(range.candidate.cause), other = entity(neighbour.candidate.cause);
  if (was.kind != EntityKind::card || neighbour.candidate.shape != range.candidate.shape ||
      is_end(neighbour.candidate.cause))
    return false;
  const std::vector<LinkId> ports = structure_.ports(NodeId(was.id));
  const Span at = span_of(was, ports);
  Span next{-1, -1};
  if (other.kind == EntityKind::card) {
    if (other.id == was.id && other.flow == was.flow) next = span_of(other, ports);
  } else if (neighbour.members.size() <= 2) {
    for (std::ptrdiff_t i : {at.first - 1, at.last + 1})
      if (i >= 0 && i < std::ssize(ports) &&
          has_link(neighbour, ports[static_cast<std::size_t>(i)], was.flow))
        next = {i, i};
  }
  if (next.first < 0 || next.last + 1 < at.first || at.last + 1 < next.first) return false;
  const Span all{std::min(at.first, next.first), std::max(at.last, next.last)};
  range.candidate.cause =
      range_cause(NodeId(was.id),
                  std::span(ports).subspan(static_cast<std::size_t>(all.first),
                                           static_cast<std::size_t>(all.last - all.first + 1)),
                  was.flow);
  range.members.insert(range.members.end(), neighbour.members.begin(), neighbour.members.end());
  range.rates.insert(range.rates.end(), neighbour.rates.begin(), neighbour.rates.end());
  range.explained += neighbour.explained;
  return true;
}

// Whether the verdict holds the port's link in that direction.
bool Search::has_link(const Accepted& verdict, LinkId out, Flow flow) {
  return std::ranges::any_of(verdict.members, [&](ComponentId c) {
    return (c == Structure::of(out) && flow != Flow::in) ||
           (c == Structure::of(model::reverse(out)) && flow != Flow::out);
  });
}

}  // namespace weft::observe::localise
