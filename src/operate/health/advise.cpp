#include "operate/health/advise.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "engine/jobs/adapt.hpp"
#include "engine/jobs/declare.hpp"
#include "model/fabric/goback_n.hpp"
#include "workload/collective/cost.hpp"

namespace weft::operate::health {
namespace {

using model::NodeId;
using route::Router;
using workload::Op;
using workload::Traffic;

// NCCL's number of that name, if it has one.
template <std::size_t n>
constexpr std::optional<std::uint8_t> number_of(const std::array<std::string_view, n>& names,
                                                std::string_view name) {
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) return std::nullopt;
  return static_cast<std::uint8_t>(at - names.begin());
}

std::optional<std::uint8_t> operation_number(Op op) {
  return number_of(nccl_operations, workload::to_text(op));
}

// What is compared: algorithms that the cost model has.
struct Numbered {
  explicit constexpr Numbered(std::string_view its_name, bool divisible = false)
      : name(its_name),
        number(number_of(nccl_algorithms, its_name).value()),
        is_divisible(divisible) {}
  std::string_view name;
  std::uint8_t number;
  bool is_divisible;  // runs on any number of the first channels
};
constexpr std::array<Numbered, 5> algorithms{Numbered("tree", true), Numbered("ring", true),
                                             Numbered("nvls"), Numbered("nvls_tree"),
                                             Numbered("pat")};

// The lower ends of ranges of sizes, and where each is computed unless the job's own size lies in
// it: in the middle, by ratio.
constexpr std::array<double, 6> range_from{advised_from,       4 * advised_from,
                                           16 * advised_from,  64 * advised_from,
                                           256 * advised_from, 1024 * advised_from};
std::size_t range_of(double bytes) {
  std::size_t out = 0;
  while (out + 1 < range_from.size() && bytes >= range_from[out + 1]) ++out;
  return out;
}

struct Choice {
  std::uint8_t algorithm = 0, protocol = 0, channels = 0;
  double seconds = 0;
};

class Adviser {
 public:
  Adviser(const plan::Setup& setup, Router& router, const Call& call,
          const workload::Machine& machine)
      : setup_(setup), router_(router), call_(call), machine_(machine) {}

  // Of each range, the best of each algorithm that gains enough, best first; two at most.
  std::vector<std::vector<Choice>> choose() {
    for (std::size_t r = 0; r < range_from.size(); ++r) {
      bytes_[r] = 2 * range_from[r];
      if (call_.bytes >= advised_from && range_of(call_.bytes) == r) bytes_[r] = call_.bytes;
    }
    std::array<double, range_from.size()> own{};
    std::array<std::map<std::uint8_t, Choice>, range_from.size()> best;
    for (std::size_t r = 0; r < bytes_.size(); ++r) {
      const auto picked = workload::plan_call(machine_, call_.op, bytes_[r], {});
      if (!picked) continue;
      std::string algorithm = picked->pick.algorithm;
      if (is_line_rate())  // as jobs are read then
        algorithm = workload::default_algorithm(setup_.fabric, request("auto", 0)).value_or("");
      own[r] =
          seconds(algorithm, picked->pick.channels, bytes_[r], picked->cost, picked->pick.channels);
    }
    for (const Numbered& algorithm : algorithms) offer(algorithm, best);
    std::vector<std::vector<Choice>> out(bytes_.size());
    for (std::size_t r = 0; r < bytes_.size(); ++r) {
      for (const auto& [number, choice] : best[r])
        if (choice.seconds < never && choice.seconds < own[r] * (1 - engine::least_gain_of_other)) {
          out[r].push_back(choice);
          share_[{r, number}] = own[r] < never ? choice.seconds / own[r] : 0;
        }
      std::ranges::stable_sort(out[r], {}, &Choice::seconds);
      if (out[r].size() > 2) out[r].resize(2);
    }
    return out;
  }
  double share(std::size_t range, std::uint8_t algorithm) const {
    return share_.at({range, algorithm});
  }

 private:
  static constexpr double never = 1e300;

  void offer(const Numbered& algorithm,
             std::array<std::map<std::uint8_t, Choice>, range_from.size()>& best) {
    for (std::size_t r = 0; r < bytes_.size(); ++r) {
      const auto planned = workload::plan_call(machine_, call_.op, bytes_[r],
                                               {.algorithm = std::string(algorithm.name)});
      if (!planned) continue;
      const std::uint32_t most = planned->pick.channels;
      for (std::uint32_t c = most; c >= 1; --c) {
        const double s = seconds(algorithm.name, c, bytes_[r], planned->cost, most);
        const Choice choice{algorithm.number, static_cast<std::uint8_t>(planned->pick.protocol),
                            static_cast<std::uint8_t>(c == most ? 0 : c), s};
        const auto [at, is_new] = best[r].emplace(algorithm.number, choice);
        // Fewer channels must be worth it, too.
        if (!is_new && s < at->second.seconds * (1 - engine::least_gain)) at->second = choice;
        if (!algorithm.is_divisible) break;
      }
    }
  }

  bool is_line_rate() const { return setup_.library.cost == workload::Library::Cost::line_rate; }
  workload::Request request(std::string_view algorithm, std::uint32_t channels) const {
    return {.op = call_.op,
            .algorithm = std::string(algorithm),
            .ranks = call_.groups[0],
            .bytes = unit_bytes,
            .channels = channels,
            .matrix = {}};
  }

  // All groups at the same time; `never` where one cannot.
  double seconds(std::string_view algorithm, std::uint32_t channels, double bytes,
                 workload::CallCost cost, std::uint32_t channels_all) {
    const Traffic* unit = traffic(algorithm, channels);
    if (unit == nullptr) return never;
    Traffic scaled = *unit;
    for (workload::Stage& stage : scaled.stages) {
      for (workload::Chain& chain : stage.chains)
        for (workload::Edge& edge : chain.edges) edge.bytes *= bytes / unit_bytes;
      for (workload::Edge& edge : stage.flows) edge.bytes *= bytes / unit_bytes;
    }
    cost.bytes_s *= static_cast<double>(channels_all) / channels;
    const auto out = engine::predicted_seconds(
        scaled, setup_.step_overhead, is_line_rate() ? std::nullopt : std::optional(cost), router_);
    return out && *out < never ? *out : never;
  }

  // For unit_bytes, of all groups, stage by stage; null where the algorithm cannot serve them.
  const Traffic* traffic(std::string_view algorithm, std::uint32_t channels) {
    const auto [at, is_new] =
        traffics_.emplace(std::pair(std::string(algorithm), channels), std::nullopt);
    if (is_new) at->second = build(algorithm, channels);
    return at->second ? &*at->second : nullptr;
  }

  std::optional<Traffic> build(std::string_view algorithm, std::uint32_t channels) {
    std::optional<Traffic> out;
    for (const auto& ranks : call_.groups) {
      workload::Request wanted = request(algorithm, channels);
      wanted.ranks = ranks;
      auto one = workload::build_traffic(setup_.fabric, wanted);
      if (!one || (out && one->stages.size() != out->stages.size())) return std::nullopt;
      if (!out) {
        out = *std::move(one);
        continue;
      }
      for (std::size_t s = 0; s < out->stages.size(); ++s) {
        workload::Stage& into = out->stages[s];
        std::ranges::move(one->stages[s].chains, std::back_inserter(into.chains));
        std::ranges::move(one->stages[s].flows, std::back_inserter(into.flows));
      }
    }
    if (out && router_.listens()) {
      const engine::Job job{.name = call_.job, .traffic = *out, .ranks = call_.groups[0]};
      engine::declare_flows({{&job, 1}, {}}, router_);
    }
    return out;
  }

  static constexpr double unit_bytes = 1 << 30;
  const plan::Setup& setup_;
  Router& router_;
  const Call& call_;
  const workload::Machine& machine_;
  std::array<double, range_from.size()> bytes_{};
  std::map<std::pair<std::string, std::uint32_t>, std::optional<Traffic>> traffics_;
  std::map<std::pair<std::size_t, std::uint8_t>, double> share_;
};

// What go-back-N leaves of a lossy link counts as its rate.
model::State with_loss_as_rate(const plan::Setup& setup, const model::State& state,
                               const Call& call, Router& router) {
  model::State out = state;
  double round_trip = 0;
  for (const auto& ranks : call.groups) {
    const Duration way = router.latency(ranks.front(), ranks.back());
    if (way < duration_max) round_trip = std::max(round_trip, 2 * way.seconds());
  }
  const auto mtu = static_cast<double>(setup.fluid.options.mtu.count);
  for (const auto& [link, condition] : state.troubled_links()) {
    if (condition.loss <= 0) continue;
    const double bytes_per_s = static_cast<double>(setup.fabric.rate(link).bps) / 8;
    model::Condition changed = condition;
    changed.loss = 0;
    changed.rate_factor *=
        model::goodput_share(condition.loss, bytes_per_s * changed.rate_factor * round_trip / mtu);
    out.set(link, changed);
  }
  return out;
}

// Ranges that follow each other and have the same rows are one.
void append_rows(const Adviser& adviser, const std::vector<std::vector<Choice>>& choices,
                 const Call& call, std::uint32_t nodes, std::vector<Advice>& out) {
  const auto same = [](const Choice& a, const Choice& b) {
    return std::tuple(a.algorithm, a.protocol, a.channels) ==
           std::tuple(b.algorithm, b.protocol, b.channels);
  };
  for (std::size_t r = 0; r < choices.size();) {
    std::size_t end = r + 1;
    while (end < choices.size() && std::ranges::equal(choices[end], choices[r], same)) ++end;
    for (const Choice& choice : choices[r]) {
      double share = 0;  // the least gain of these ranges
      for (std::size_t i = r; i < end; ++i)
        share = std::max(share, adviser.share(i, choice.algorithm));
      out.push_back({.job = layout::hash_of(call.job.c_str()),
                     .bytes_from = static_cast<std::uint64_t>(range_from[r]),
                     .bytes_to = end < choices.size() ? static_cast<std::uint64_t>(range_from[end])
                                                      : UINT64_MAX,
                     .nodes = nodes,
                     .ranks = static_cast<std::uint32_t>(call.groups[0].size()),
                     .operation = *operation_number(call.op),
                     .algorithm = choice.algorithm,
                     .protocol = choice.protocol,
                     .channels = choice.channels,
                     .share_ppm = static_cast<std::uint32_t>(std::lround(share * 1e6))});
    }
    r = end;
  }
}

std::size_t hosts_of(const model::Fabric& fabric, std::span<const NodeId> ranks) {
  std::set<NodeId> out;
  for (const NodeId gpu : ranks) out.insert(fabric.host_of(gpu));
  return out.size();
}

void add_graph_calls(const model::Fabric& fabric, const plan::PlacedGraph& placed,
                     std::vector<Call>& out) {
  const model::OpGraph& graph = *placed.graph;
  std::map<std::pair<std::uint32_t, Op>, double> bytes;  // by group and operation: the largest
  for (const model::Actor& actor : graph.actors)
    for (const model::Operation& o : graph.programs[actor.program].operations) {
      if (o.kind != model::Operation::Kind::collective) continue;
      double& most = bytes[{graph.memberships[actor.group_first + o.slot], o.collective}];
      most = std::max(most, o.bytes);
    }
  std::map<std::tuple<Op, std::size_t, std::size_t>, Call> by_shape;
  for (const auto& [key, most] : bytes) {
    const model::RankGroup& group = graph.groups[key.first];
    if (!operation_number(key.second) || group.size() < 2) continue;
    for (std::uint32_t row = 0; row < group.rows; ++row) {
      std::vector<NodeId> gpus;
      for (const std::uint32_t rank : group.row(row)) gpus.push_back(placed.ranks[rank]);
      const std::size_t hosts = hosts_of(fabric, gpus);
      if (hosts < 2) continue;
      Call& call = by_shape[{key.second, gpus.size(), hosts}];
      call.job = placed.name;
      call.op = key.second;
      call.bytes = std::max(call.bytes, most);
      call.groups.push_back(std::move(gpus));
    }
  }
  for (auto& [shape, call] : by_shape) out.push_back(std::move(call));
}

}  // namespace

std::vector<Call> calls_of(const model::Fabric& fabric, const plan::Jobs& jobs) {
  std::vector<Call> out;
  for (const plan::PlacedJob& placed : jobs.collectives)
    if (operation_number(placed.op) && hosts_of(fabric, placed.job.ranks) > 1)
      out.push_back({placed.job.name, placed.op, {placed.job.ranks}, placed.bytes});
  for (const plan::PlacedGraph& placed : jobs.graphs) add_graph_calls(fabric, placed, out);
  return out;
}

Result<Advised> advise(const plan::Setup& setup, std::span<const Call> calls,
                       const model::State& now, std::uint64_t seed) {
  Advised out;
  if (now.healthy()) return out;
  for (const Call& call : calls) {
    if (call.ranks() > ranks_max) {
      ++out.too_large;
      continue;
    }
    const auto machine = workload::machine_of(setup.library, setup.fabric, call.groups[0]);
    if (!machine) continue;  // the model does not know such hosts
    WEFT_TRY(Router router, Router::create(setup.fabric, setup.routing, seed));
    router.set_state(with_loss_as_rate(setup, now, call, router));
    Adviser adviser(setup, router, call, *machine);
    const auto choices = adviser.choose();
    std::vector<Advice> rows;
    append_rows(adviser, choices, call,
                static_cast<std::uint32_t>(hosts_of(setup.fabric, call.groups[0])), rows);
    if (out.rows.size() + rows.size() > layout::advice_max)
      ++out.no_room;
    else
      out.rows.insert(out.rows.end(), rows.begin(), rows.end());
  }
  return out;
}

}  // namespace weft::operate::health
