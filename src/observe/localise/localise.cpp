#include "observe/localise/localise.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "observe/localise/delays.hpp"
#include "observe/localise/lost_routes.hpp"
#include "observe/localise/search.hpp"
#include "observe/localise/unused.hpp"

namespace weft::observe::localise {
namespace {

constexpr std::size_t suspects_max = 20;
constexpr std::size_t coverage_links_max = 100;

double loss_of(double intensity) { return -std::expm1(-intensity); }

// Links and classes whose queues dropped enough to be felt, and links with damaged frames.
CounterFacts facts_of(const Fabric& fabric, const EvidenceIndex& ledger,
                      std::span<const LinkCounters> counters) {
  constexpr double drops_min = 10, share_min = 1e-5, damaged_min = 3;
  struct Sum {
    double packets = 0, drops = 0;
  };
  std::map<std::pair<LinkId, std::string>, Sum> by_class;
  std::map<LinkId, double> damaged;
  for (const LinkCounters& row : counters) {
    Sum& sum = by_class[{row.link, row.traffic_class}];
    sum.packets += static_cast<double>(row.packets);
    sum.drops += static_cast<double>(row.drops);
    damaged[row.link] += static_cast<double>(row.errors);
  }
  CounterFacts out;
  for (const auto& [key, sum] : by_class) {
    const auto known = std::ranges::lower_bound(ledger.classes, key.second);
    if (known == ledger.classes.end() || *known != key.second) continue;
    if (sum.drops >= drops_min && sum.drops > share_min * sum.packets)
      out.congested.push_back({key.first,
                               static_cast<std::uint16_t>(known - ledger.classes.begin()),
                               sum.drops / sum.packets});
  }
  if (!counters.empty()) out.damaged.assign(fabric.link_count(), false);
  for (const auto& [link, frames] : damaged)
    if (frames >= damaged_min) out.damaged[link.index()] = true;
  return out;
}

// From the outcome of a search to the report.
class Reporter {
 public:
  Reporter(const Structure& structure, const EvidenceIndex& ledger, const Search& search)
      : ledger_(ledger), structure_(structure), search_(search) {}

  Verdict verdict(const Accepted& accepted) const {
    Verdict out = describe(accepted.candidate, accepted.explained);
    // The verdict alone or beside another cause, against that cause alone or none at all.
    const double top =
        accepted.alternatives.empty()
            ? accepted.candidate.score
            : std::max(accepted.candidate.score, accepted.alternatives.front().candidate.score);
    const auto weight = [&](double score) { return std::exp(std::min(score - top, 500.0)); };
    double with = weight(accepted.candidate.score), without = weight(0);
    for (const Alternative& other : accepted.alternatives) {
      with += weight(other.candidate.score + other.beside);
      without += weight(other.candidate.score);
      out.alternatives.push_back(search_.entity(other.candidate.cause));
    }
    out.probability = with / (with + without);
    if (accepted.prior_rate > 0) {
      out.finding = Finding::congestion;
      out.probability = 0.99;
    } else if (out.probability < search_.parameters().certain &&
               !search_.is_end(accepted.candidate.cause)) {
      out.needs_probes = std::max<std::uint64_t>(
          1, probes_for(accepted.candidate.rate, search_.parameters().decisive));
    }
    return out;
  }

  Verdict suspect(const Candidate& candidate) const {
    Verdict out = describe(
        candidate, candidate.rate * search_.tally(candidate.cause, candidate.shape).survived);
    const double odds = std::exp(candidate.score);
    out.probability = std::min(0.5, odds / (1 + odds));
    out.needs_probes = std::max<std::uint64_t>(
        1, probes_for(candidate.rate, search_.parameters().accept - candidate.score));
    return out;
  }

  // Crossings after which a loss of intensity `rate` is expected to have gained so much.
  std::uint64_t probes_for(double rate, double gain) const {
    constexpr double margin = 1.5, most = 1e15;  // for bad luck; more than anybody sends
    const double normal = std::max(1e-6, search_.mean_intensity());
    const double each = (normal + rate) * std::log1p(rate / normal) - rate;
    if (each <= 0 || gain <= 0) return 1;
    return static_cast<std::uint64_t>(std::min(most, std::ceil(margin * gain / each)));
  }

 private:
  // Nothing where the host, or NIC on its own, has several.
  std::optional<model::CableId> only_cable(NodeId end) const {
    const Fabric& fabric = structure_.fabric();
    std::optional<model::CableId> out;
    const auto nics = fabric.nics_of(end);
    for (const NodeId nic :
         nics.empty() ? std::span<const NodeId>(&end, 1) : std::span<const NodeId>(nics))
      for (const LinkId link : fabric.out(nic)) {
        if (!fabric.on_wire(link)) continue;
        if (out) return std::nullopt;
        out = cable_of(link);
      }
    return out;
  }

  Verdict describe(const Candidate& candidate, double lost) const {
    Verdict out;
    const Tally tally = search_.tally(candidate.cause, candidate.shape);
    out.entity = search_.entity(candidate.cause);
    out.probes = static_cast<std::uint64_t>(tally.survived + tally.lost);
    out.lost = lost;
    const bool tuples = candidate.shape.type == Shape::Type::tuples;
    const double spread = 1.96 / std::sqrt(std::max(1.0, lost));
    const auto share = [&](double rate) { return tuples ? std::min(rate, 1.0) : loss_of(rate); };
    out.loss = share(candidate.rate);
    out.loss_low = share(candidate.rate * std::exp(-spread));
    out.loss_high = share(candidate.rate * std::exp(spread));
    if (candidate.shape.type == Shape::Type::one_class) {
      out.finding = Finding::class_loss;
      out.traffic_class = ledger_.classes[candidate.shape.traffic_class];
    }
    if (tuples) out.finding = Finding::tuple_loss;
    if (search_.is_end(candidate.cause)) {
      out.finding = out.loss > 0.95 ? Finding::dead : Finding::starved;
      // What passes the only cable of a host passes the host.
      if (const auto cable = only_cable(NodeId(out.entity.id));
          out.finding == Finding::starved && cable && search_.is_even(candidate.cause)) {
        out.alternatives.push_back(out.entity);
        out.entity = {EntityKind::cable, cable->value, 0, 0, Flow::both};
        out.finding = Finding::loss;
      }
    }
    return out;
  }

  const EvidenceIndex& ledger_;
  const Structure& structure_;
  const Search& search_;
};

void fill_coverage(const Structure& structure, const EvidenceIndex& ledger, const Search& search,
                   const Reporter& reporter, double loss, const model::State* believed,
                   Coverage& out) {
  const model::LiveView view(structure.fabric(), believed == nullptr ? model::State{} : *believed);
  const double rate = -std::log1p(-loss);
  const double hurdle = std::log(std::max<double>(2, static_cast<double>(structure.link_count()))) -
                        std::log(search.parameters().first_fault) + search.parameters().accept;
  const std::uint64_t needed = reporter.probes_for(rate, hurdle);
  out.loss_of_interest = loss;
  for (const LinkId link : structure.fabric().links()) {
    if (structure.kind(Structure::of(link)) != Kind::switch_link || !view.usable(link)) continue;
    ++out.links;
    double crossings = 0;
    for (std::size_t k = 0; k < ledger.classes.size(); ++k) {
      const Tally& tally = ledger.tally[ledger.at(k, Structure::of(link))];
      crossings += tally.survived + tally.lost;
    }
    if (crossings >= static_cast<double>(needed)) continue;
    ++out.links_short;
    out.needs_probes += needed - static_cast<std::uint64_t>(crossings);
    if (out.shortest.size() < coverage_links_max) out.shortest.push_back(link);
  }
}

// Of the probes that came, those that `count` tells of, told of as lost ones are. Empty where there
// are none.
EvidenceSet counted_in(const EvidenceSet& evidence, std::uint32_t Evidence::* count) {
  if (std::ranges::none_of(evidence.rows, [&](const Evidence& row) { return row.*count > 0; }))
    return {};
  EvidenceSet out = evidence;
  for (Evidence& row : out.rows) {
    row.sent -= row.lost;
    row.lost = std::min(row.sent, row.*count);
  }
  return out;
}

auto order(const Verdict& v) {
  return std::tuple(-v.probability, v.entity.kind, v.entity.id, v.entity.port_first,
                    v.entity.port_last, v.entity.flow, v.finding, v.traffic_class);
}

}  // namespace

std::string_view to_text(Finding finding) {
  constexpr std::array<std::string_view, 12> names{
      "loss",   "class_loss", "tuple_loss", "congestion", "dead",  "starved",
      "unused", "unexpected", "corruption", "duplicates", "delay", "route"};
  return names[static_cast<std::size_t>(finding)];
}

class Localiser::Impl {
 public:
  Impl(const Fabric& fabric, const Options& options) : structure_(fabric), options_(options) {}

  Report run(const EvidenceSet& all, std::span<const LinkCounters> counters,
             const model::State* believed) const {
    Report out;
    if (may_have_lost_routes(structure_.fabric(), all, believed)) {
      EvidenceSet others = all;
      for (const LostRoute& route : take_lost_routes(structure_.fabric(), others, believed))
        out.verdicts.push_back(verdict_on(route));
      judge(others, counters, believed, out);
    } else {
      judge(all, counters, believed, out);
    }
    return out;
  }

 private:
  static Verdict verdict_on(const LostRoute& route) {
    Verdict out;
    out.entity = {EntityKind::fabric_switch, route.device.value, 0, 0, Flow::both};
    out.finding = Finding::route;
    out.destination = route.to;
    out.probability = 1 - std::exp(-route.score);
    out.probes = route.probes;
    out.lost = static_cast<double>(route.lost);
    const double n = static_cast<double>(route.probes), p = out.lost / n;
    const double spread = 1.96 * std::sqrt(p * (1 - p) / n);
    out.loss = p;
    out.loss_low = p - spread;
    out.loss_high = std::min(1.0, p + spread);
    return out;
  }

  // Of all that no route explains.
  void judge(const EvidenceSet& evidence, std::span<const LinkCounters> counters,
             const model::State* believed, Report& out) const {
    const EvidenceIndex ledger(structure_, evidence, believed);
    const CounterFacts facts = facts_of(structure_.fabric(), ledger, counters);
    Search search(structure_, ledger, facts, options_.card_ports);
    search.run();
    const Reporter reporter(structure_, ledger, search);
    out.begin = ledger.begin;
    out.end = ledger.end;
    out.probes = ledger.probes();
    out.lost = ledger.total_lost;
    out.late = ledger.total_late;
    out.background = loss_of(search.background()[0]);
    out.unexplained = static_cast<double>(ledger.total_lost);
    for (const Accepted& accepted : search.accepted()) {
      Verdict verdict = reporter.verdict(accepted);
      (verdict.needs_probes > 0 ? out.suspects : out.verdicts).push_back(std::move(verdict));
      out.unexplained -= accepted.explained;
    }
    out.unexplained = std::max(0.0, out.unexplained);
    for (const Evidence& row : evidence.rows) out.damaged += row.damaged;
    find(counted_in(evidence, &Evidence::damaged), Finding::corruption, believed, out);
    find(counted_in(evidence, &Evidence::duplicates), Finding::duplicates, believed, out);
    find(delays_in(structure_.fabric(), evidence, options_.delay_us), Finding::delay, believed,
         out);
    for (Verdict& found : find_disagreements(structure_, ledger, evidence, believed))
      out.verdicts.push_back(std::move(found));
    std::ranges::sort(out.verdicts, {}, order);
    for (const Candidate& candidate : search.suspects())
      if (out.suspects.size() < suspects_max) out.suspects.push_back(reporter.suspect(candidate));
    fill_coverage(structure_, ledger, search, reporter, options_.loss_of_interest, believed,
                  out.coverage);
  }

  // Counters of switches say nothing of these.
  void find(const EvidenceSet& told, Finding finding, const model::State* believed,
            Report& out) const {
    if (told.rows.empty()) return;
    const EvidenceIndex index(structure_, told, believed);
    const CounterFacts facts;
    Search search(structure_, index, facts, options_.card_ports);
    search.run();
    const Reporter reporter(structure_, index, search);
    for (const Accepted& accepted : search.accepted()) {
      Verdict verdict = reporter.verdict(accepted);
      // A host that is slow to answer on all its paths stalls.
      const bool stalls = finding == Finding::delay && search.is_end(accepted.candidate.cause);
      verdict.finding = stalls ? Finding::starved : finding;
      (verdict.needs_probes > 0 ? out.suspects : out.verdicts).push_back(std::move(verdict));
    }
  }

  Structure structure_;
  Options options_;
};

Localiser::Localiser(const Fabric& fabric, const Options& options)
    : impl_(std::make_unique<Impl>(fabric, options)) {}
Localiser::Localiser(Localiser&&) noexcept = default;
Localiser& Localiser::operator=(Localiser&&) noexcept = default;
Localiser::~Localiser() = default;

Report Localiser::run(const EvidenceSet& evidence, std::span<const LinkCounters> counters,
                      const model::State* believed) const {
  return impl_->run(evidence, counters, believed);
}

}  // namespace weft::observe::localise
