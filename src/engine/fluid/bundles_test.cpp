// Flows of equal hops as one entity, compared with the same flows one by one.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "engine/fluid/simulation.hpp"

namespace weft::engine::fluid {
namespace {

using Bundles = Simulation::Options::Bundles;

double share_sum(const std::vector<Hop>& path) {
  double out = 0;
  for (const Hop& hop : path) out += hop.share;
  return out;
}

// A run laid out before it begins: flows start at set times or when another ends, links change,
// flows are moved and stopped.
struct Plan {
  struct Flow {
    std::size_t path = 0;
    double bytes = 0;
    double start_s = 0;       // unless it follows
    std::size_t follows = 0;  // the flow after whose end it starts; itself: none
  };
  struct Change {
    enum class What : std::uint8_t { capacity, move, stop } what;
    double at_s = 0;
    std::size_t which = 0;  // link or flow
    double value = 0;       // capacity, or bytes to send again
    std::size_t path = 0;
  };
  std::vector<double> capacity;
  std::vector<std::vector<Hop>> paths;
  std::vector<Flow> flows;
  std::vector<Change> changes;
};

std::vector<Hop> random_hops(Rng& rng, std::size_t links) {
  std::vector<Hop> out;
  const std::size_t hops = 1 + rng.below(std::min<std::size_t>(4, links));
  while (out.size() < hops) {
    const LinkId link(static_cast<std::size_t>(rng.below(links)));
    const double share = rng.below(3) == 0 ? static_cast<double>(1 + rng.below(4)) / 2 : 1;
    if (std::ranges::find(out, link, &Hop::link) == out.end()) out.push_back({link, share});
  }
  return out;  // in no order: merged on the way in
}

// Few links and paths, so that many flows share one; few sizes, so that several end together.
Plan random_plan(std::uint64_t seed) {
  Rng rng = Rng(seed).stream("bundles");
  Plan out;
  const std::size_t links = 2 + rng.below(8), paths = 1 + rng.below(6);
  const std::size_t flows = 20 + rng.below(100), changes = rng.below(30);
  for (std::size_t i = 0; i < links; ++i)
    out.capacity.push_back(static_cast<double>(1 + rng.below(4)));
  for (std::size_t i = 0; i < paths; ++i) out.paths.push_back(random_hops(rng, links));
  for (std::size_t i = 0; i < flows; ++i) {
    const std::size_t path = rng.below(paths);
    const double bytes = rng.below(3) == 0 ? rng.uniform() * 8 : static_cast<double>(rng.below(9));
    const double start_s = rng.below(2) == 0 ? 0 : rng.uniform() * 40;
    const std::size_t follows = i > 0 && rng.below(3) == 0 ? rng.below(i) : i;
    out.flows.push_back({path, bytes, start_s, follows});
  }
  for (std::size_t i = 0; i < changes; ++i) {
    const auto what = static_cast<Plan::Change::What>(rng.below(3));
    const double at_s = rng.uniform() * 120;
    const std::size_t which = rng.below(what == Plan::Change::What::capacity ? links : flows);
    const double value = static_cast<double>(rng.below(5));
    const std::size_t path = rng.below(paths);
    out.changes.push_back({what, at_s, which, value, path});
  }
  return out;
}

class Run final : Simulation::Listener {
 public:
  Run(const Plan& plan, Bundles bundles)
      : plan_(plan),
        sim_(plan.capacity,
             {.solver = {}, .bundles = bundles, .audit_every = 7, .load_windows = 8}),
        flow_(plan.flows.size()),
        path_(plan.flows.size(), none),
        left_(plan.flows.size(), 0),
        end_s(plan.flows.size(), -1) {
    for (std::size_t i = 0; i < plan.flows.size(); ++i)
      if (plan.flows[i].follows == i) sim_.timer(plan.flows[i].start_s, i);
    for (std::size_t i = 0; i < plan.changes.size(); ++i)
      sim_.timer(plan.changes[i].at_s, plan.flows.size() + i);
    sim_.run(*this);
    for (std::size_t i = 0; i < flow_.size(); ++i) {
      if (path_[i] == none) continue;
      stalled_s[i] = sim_.rate_since(flow_[i]);
      took(i, sim_.bytes_left(flow_[i]));
      stalled_bytes[i] = left_[i];
    }
    sim_.account_active();
    carried = sim_.carried();
  }
  const Simulation& simulation() const { return sim_; }

 private:
  static constexpr std::size_t none = SIZE_MAX;
  void start(std::size_t i) {
    path_[i] = plan_.flows[i].path;
    left_[i] = plan_.flows[i].bytes;
    flow_[i] = sim_.start(plan_.paths[path_[i]], left_[i], i);
  }
  // The flow has come to so many bytes left on its path.
  void took(std::size_t i, double left) {
    expected_carried += (left_[i] - left) * share_sum(plan_.paths[path_[i]]);
    left_[i] = left;
  }
  void on_flow_end(FlowId, std::uint64_t i) override {
    end_s[i] = sim_.now();
    order.push_back(i);
    took(i, 0);
    path_[i] = none;
    for (std::size_t f = i + 1; f < plan_.flows.size(); ++f)
      if (plan_.flows[f].follows == i) start(f);
  }
  void on_timer(std::uint64_t tag) override {
    if (tag < plan_.flows.size()) return start(tag);
    const Plan::Change& change = plan_.changes[tag - plan_.flows.size()];
    using What = Plan::Change::What;
    if (change.what == What::capacity) return sim_.set_capacity(LinkId(change.which), change.value);
    const std::size_t i = change.which;
    if (path_[i] == none) return;  // not under way
    took(i, sim_.bytes_left(flow_[i]));
    if (change.what == What::stop) {
      CHECK(sim_.stop(flow_[i]) == left_[i]);
      path_[i] = none;
      return;
    }
    sim_.move(flow_[i], plan_.paths[change.path], change.value);
    left_[i] += change.value;
    path_[i] = change.path;
  }

  const Plan& plan_;
  Simulation sim_;
  std::vector<FlowId> flow_;
  std::vector<std::size_t> path_;  // of flows under way
  std::vector<double> left_;

 public:
  std::vector<double> end_s;  // -1: stopped, or never
  std::vector<std::uint64_t> order;
  std::map<std::size_t, double> stalled_s, stalled_bytes;
  std::vector<double> carried;
  double expected_carried = 0;
};

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max({a, b, 1.0}); }

bool all_close(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, close);
}

bool all_close(const std::map<std::size_t, double>& a, const std::map<std::size_t, double>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && close(x.second, y.second);
  });
}

}  // namespace

TEST_CASE("bundles: ends, stalls and bytes are those of single flows in 400 random runs") {
  std::uint64_t shared = 0, single = 0;
  std::size_t ends = 0, stalls = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const Plan plan = random_plan(seed);
    const Run on(plan, Bundles::on), off(plan, Bundles::off);
    CHECK(all_close(on.end_s, off.end_s));
    CHECK(all_close(on.stalled_s, off.stalled_s));
    CHECK(all_close(on.stalled_bytes, off.stalled_bytes));
    CHECK(all_close(on.carried, off.carried));
    const double carried = std::accumulate(on.carried.begin(), on.carried.end(), 0.0);
    CHECK(carried == approx(on.expected_carried).epsilon(1e-12));
    CHECK(on.simulation().rate_error() < 1e-9);
    CHECK(on.simulation().active_count() == on.stalled_s.size());
    for (std::size_t i = 0; i < on.simulation().windows().size(); ++i)
      for (std::size_t link = 0; link < plan.capacity.size(); ++link)
        CHECK(on.simulation().windows().bytes(i)[link] ==
              approx(off.simulation().windows().bytes(i)[link]).epsilon(1e-5).scale(1));
    const Run again(plan, Bundles::on);
    CHECK(again.end_s == on.end_s);
    CHECK(again.order == on.order);
    shared += on.simulation().counters().recomputes;
    single += off.simulation().counters().recomputes;
    ends += on.order.size();
    stalls += on.stalled_s.size();
  }
  CHECK(shared < single);
  CHECK(ends > 10'000);
  CHECK(stalls > 100);
}

TEST_CASE("bundles: flows that end together are reported in order of start") {
  struct Order final : Simulation::Listener {
    std::vector<std::uint64_t> seen;
    void on_flow_end(FlowId, std::uint64_t tag) override { seen.push_back(tag); }
    void on_timer(std::uint64_t) override {}
  };
  const std::vector<std::vector<Hop>> paths{{{LinkId(0), 1}, {LinkId(2), 1}},
                                            {{LinkId(1), 1}, {LinkId(2), 1}}};
  for (const Bundles bundles : {Bundles::on, Bundles::off}) {
    Simulation sim(std::vector<double>{5, 5, 10}, {.solver = {}, .bundles = bundles});
    Order order;
    for (std::uint64_t i = 0; i < 40; ++i) sim.start(paths[i % 2], 7, i);
    sim.run(order);
    std::vector<std::uint64_t> want(40);
    std::iota(want.begin(), want.end(), 0);
    CHECK(order.seen == want);
    CHECK(sim.event_count() == 1);
    CHECK(sim.now() == approx(28));
  }
}

TEST_CASE("bundles: equal flows cost the solver one entity") {
  const auto recomputes = [](Bundles bundles) {
    Simulation sim(std::vector<double>{8}, {.solver = {}, .bundles = bundles});
    struct Quiet final : Simulation::Listener {
      void on_flow_end(FlowId, std::uint64_t) override {}
      void on_timer(std::uint64_t) override {}
    } quiet;
    for (int i = 1; i <= 100; ++i) sim.start(std::vector<Hop>{{LinkId(0), 1}}, i, 0);
    sim.run(quiet);
    CHECK(sim.now() == approx(100 * 101 / 2 / 8.0));
    return sim.counters().recomputes;
  };
  CHECK(recomputes(Bundles::on) < recomputes(Bundles::off));
}

TEST_CASE("bundles: a flow that joins a stalled one has been stalled since it came") {
  struct Joins final : Simulation::Listener {
    Simulation* sim = nullptr;
    FlowId late;
    void on_flow_end(FlowId, std::uint64_t) override {}
    void on_timer(std::uint64_t) override {
      late = sim->start(std::vector<Hop>{{LinkId(0), 1}}, 3, 2);
    }
  } joins;
  Simulation sim(std::vector<double>{0}, {});
  joins.sim = &sim;
  const FlowId first = sim.start(std::vector<Hop>{{LinkId(0), 1}}, 5, 1);
  sim.timer(8, 0);
  sim.run(joins);
  CHECK(sim.rate_since(first) == 0);
  CHECK(sim.rate_since(joins.late) == 8);
  CHECK(sim.bytes_left(first) == 5);
  CHECK(sim.bytes_left(joins.late) == 3);
}

}  // namespace weft::engine::fluid
