#include "engine/fluid/solver.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "engine/fluid/reference.hpp"

namespace weft::engine::fluid {
namespace {

// A solver and the same entities as plain lists, so that every state has its reference.
class Pair {
 public:
  explicit Pair(std::vector<double> capacity) : capacity_(capacity), solver_(capacity, {}) {}

  void insert(const std::vector<Hop>& hops) {
    const EntityId id = solver_.insert(hops);
    alive_.push_back({id, hops});
  }
  void set_flows(std::size_t k, std::uint32_t flows) {
    solver_.set_flows(alive_[k].id, flows);
    alive_[k].flows = flows;
  }
  void remove(std::size_t k) {
    solver_.remove(alive_[k].id);
    alive_[k] = alive_.back();
    alive_.pop_back();
  }
  void set_capacity(std::size_t resource, double capacity) {
    capacity_[resource] = capacity;
    solver_.set_capacity(LinkId(resource), capacity);
  }
  std::size_t size() const { return alive_.size(); }
  Solver& solver() { return solver_; }

  // Worst relative difference between incremental and reference rates.
  double error() {
    solver_.settle();
    std::vector<std::vector<Hop>> lists;
    std::vector<EntityId> entity;  // of each list
    for (const Alive& a : alive_) {
      lists.insert(lists.end(), a.flows, a.hops);
      entity.insert(entity.end(), a.flows, a.id);
    }
    const std::vector<double> want = reference_rates(capacity_, lists);
    double worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double got = solver_.rate(entity[i]);
      if (got == want[i]) continue;
      worst = std::max(worst, std::abs(got - want[i]) / std::max(got, want[i]));
    }
    return worst;
  }

 private:
  struct Alive {
    EntityId id;
    std::vector<Hop> hops;
    std::uint32_t flows = 1;
  };
  std::vector<double> capacity_;
  Solver solver_;
  std::vector<Alive> alive_;
};

enum class Weights : std::uint8_t { one, mixed };

std::vector<Hop> random_path(Rng& rng, std::size_t resources, std::size_t hops_max,
                             Weights weights) {
  std::vector<Hop> out;
  const std::size_t n = 1 + rng.below(hops_max);
  while (out.size() < n) {
    const LinkId link(static_cast<std::size_t>(rng.below(resources)));
    if (std::ranges::find(out, link, &Hop::link) != out.end()) continue;
    const double w = weights == Weights::one ? 1.0 : static_cast<double>(1 + rng.below(8)) / 4;
    out.push_back({link, w});
  }
  return out;
}

}  // namespace

TEST_CASE("one link is shared evenly, and the rest goes to who can use it") {
  //  a ---- 10 ---- b ---- 4 ---- c      flows: ab, ab, abc
  Pair pair({10, 4});
  const auto ab = pair.solver().insert(std::vector<Hop>{{LinkId(0), 1}});
  const auto ab2 = pair.solver().insert(std::vector<Hop>{{LinkId(0), 1}});
  const auto abc = pair.solver().insert(std::vector<Hop>{{LinkId(0), 1}, {LinkId(1), 1}});
  pair.solver().settle();
  CHECK(pair.solver().rate(ab) == approx(10.0 / 3));
  CHECK(pair.solver().rate(abc) == approx(10.0 / 3));
  pair.solver().set_capacity(LinkId(1), 2);
  pair.solver().settle();
  CHECK(pair.solver().rate(abc) == approx(2));
  CHECK(pair.solver().rate(ab2) == approx(4));
  pair.solver().remove(ab);
  pair.solver().settle();
  CHECK(pair.solver().rate(ab2) == approx(8));
}

TEST_CASE("weights: a ring that crosses a link twice gets half; repeated hops add up") {
  Pair pair({12});
  const auto twice = pair.solver().insert(std::vector<Hop>{{LinkId(0), 1}, {LinkId(0), 1}});
  pair.solver().settle();
  CHECK(pair.solver().rate(twice) == approx(6));
  const auto once = pair.solver().insert(std::vector<Hop>{{LinkId(0), 1}});
  pair.solver().settle();
  CHECK(pair.solver().rate(once) == approx(4));
  CHECK(pair.solver().rate(twice) == approx(4));
}

TEST_CASE("no hop is no limit; no capacity is no rate; capacity brings it back") {
  Pair pair({0, 5});
  CHECK(pair.solver().rate(pair.solver().insert({})) == unlimited);
  const auto stuck = pair.solver().insert(std::vector<Hop>{{LinkId(0), 1}, {LinkId(1), 1}});
  const auto free = pair.solver().insert(std::vector<Hop>{{LinkId(1), 1}});
  pair.solver().settle();
  CHECK(pair.solver().rate(stuck) == 0);
  CHECK(pair.solver().rate(free) == approx(5));
  pair.solver().set_capacity(LinkId(0), 1);
  pair.solver().settle();
  CHECK(pair.solver().rate(stuck) == approx(1));
  CHECK(pair.solver().rate(free) == approx(4));
}

TEST_CASE("rates equal the reference after every one of many random events") {
  struct Shape {
    std::size_t resources, hops, entities;
    Weights weights;
  };
  // Few equal capacities make ties, the hard case; many hops make long entities, and those of up to
  // 8 lie beside the entity.
  for (const Shape& shape : {Shape{6, 3, 12, Weights::one}, Shape{40, 4, 60, Weights::one},
                             Shape{40, 6, 60, Weights::mixed}, Shape{60, 40, 20, Weights::mixed},
                             Shape{30, 10, 60, Weights::mixed}, Shape{120, 30, 80, Weights::one}}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      Rng rng = Rng(seed).stream("solver");
      std::vector<double> capacity;
      for (std::size_t r = 0; r < shape.resources; ++r)
        capacity.push_back(static_cast<double>(1 + rng.below(3)) * 25e9);
      Pair pair(capacity);
      double worst = 0;
      for (int event = 0; event < 150; ++event) {
        const std::uint64_t kind = rng.below(10);
        if (kind < 5 || pair.size() == 0) {
          if (pair.size() < shape.entities)
            pair.insert(random_path(rng, shape.resources, shape.hops, shape.weights));
        } else if (kind < 9) {
          pair.remove(rng.below(pair.size()));
        } else {
          pair.set_capacity(rng.below(shape.resources), static_cast<double>(rng.below(4)) * 25e9);
        }
        worst = std::max(worst, pair.error());
      }
      CAPTURE(seed);
      CAPTURE(shape.resources);
      CHECK(worst < 1e-9);
    }
  }
}

TEST_CASE("an entity of several flows has the rate of as many entities after random events") {
  struct Shape {
    std::size_t resources, hops, entities;
    Weights weights;
  };
  for (const Shape& shape : {Shape{6, 3, 8, Weights::one}, Shape{40, 6, 40, Weights::mixed},
                             Shape{60, 40, 12, Weights::mixed}, Shape{200, 4, 30, Weights::one}}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      Rng rng = Rng(seed).stream("flows of entities");
      std::vector<double> capacity;
      for (std::size_t r = 0; r < shape.resources; ++r)
        capacity.push_back(static_cast<double>(1 + rng.below(3)) * 25e9);
      Pair pair(capacity);
      double worst = 0;
      for (int event = 0; event < 150; ++event) {
        const std::uint64_t kind = rng.below(10);
        if (kind < 3 || pair.size() == 0) {
          if (pair.size() < shape.entities)
            pair.insert(random_path(rng, shape.resources, shape.hops, shape.weights));
        } else if (kind < 5) {
          pair.remove(rng.below(pair.size()));
        } else if (kind < 9) {
          const std::size_t which = rng.below(pair.size());
          pair.set_flows(which, static_cast<std::uint32_t>(1 + rng.below(5)));
        } else {
          const std::size_t which = rng.below(shape.resources);
          pair.set_capacity(which, static_cast<double>(rng.below(4)) * 25e9);
        }
        if (rng.below(3) > 0)
          worst = std::max(worst, pair.error());  // else several changes at once
      }
      CAPTURE(seed);
      CAPTURE(shape.resources);
      CHECK(worst < 1e-9);
    }
  }
}

TEST_CASE("a bulk change takes the full solve and gives the same rates") {
  Rng rng = Rng(7).stream("bulk");
  Pair pair(std::vector<double>(100, 1e9));
  for (int i = 0; i < 400; ++i) pair.insert(random_path(rng, 100, 4, Weights::one));
  CHECK(pair.error() < 1e-9);
  CHECK(pair.solver().counters().full_solves == 1);
  for (int i = 0; i < 300; ++i) pair.remove(rng.below(pair.size()));
  CHECK(pair.error() < 1e-9);
  pair.remove(0);
  CHECK(pair.error() < 1e-9);
  CHECK(pair.solver().counters().full_solves == 2);
}

TEST_CASE("bulk changes of any kind, with and without room, give the reference's rates") {
  std::uint64_t full_solves = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng = Rng(seed).stream("bulk");
    const std::size_t resources = 80 + rng.below(80);
    const std::size_t entities = 40 + rng.below(300);  // from hardly any link full to all
    const std::size_t hops = seed % 2 == 0 ? 5 : 30;
    const Weights weights = seed % 4 < 2 ? Weights::one : Weights::mixed;
    std::vector<double> capacity;
    for (std::size_t r = 0; r < resources; ++r)
      capacity.push_back(static_cast<double>(1 + rng.below(3)) * 25e9);
    Pair pair(capacity);
    double worst = 0;
    for (int step = 0; step < 6; ++step) {
      while (pair.size() < entities) pair.insert(random_path(rng, resources, hops, weights));
      worst = std::max(worst, pair.error());
      for (std::size_t r = 0; r < resources; ++r)
        if (rng.below(4) == 0) pair.set_capacity(r, static_cast<double>(rng.below(4)) * 25e9);
      worst = std::max(worst, pair.error());
      for (std::size_t n = entities / 3; n > 0; --n) pair.remove(rng.below(pair.size()));
      if (step % 2 == 0) worst = std::max(worst, pair.error());
    }
    CAPTURE(seed);
    CHECK(worst < 1e-9);
    full_solves += pair.solver().counters().full_solves;
  }
  CHECK(full_solves > 100);
}

TEST_CASE("what has its path to itself moves no level, also as its capacities change") {
  Pair pair(std::vector<double>(40, 12));
  const auto lone = [](std::size_t first, double weight) {
    return std::vector<Hop>{{LinkId(first), weight}, {LinkId(first + 1), 1}};
  };
  for (std::size_t first = 0; first < 40; first += 2) pair.insert(lone(first, 2));
  CHECK(pair.error() == 0);
  pair.set_capacity(1, 3);
  pair.set_capacity(2, 0);
  CHECK(pair.error() == 0);
  pair.set_capacity(1, 12);
  CHECK(pair.error() == 0);
  pair.remove(0);
  CHECK(pair.error() == 0);
  CHECK(pair.solver().counters().level_changes == 0);
  // A second one on a link that has room for both moves nothing either; a third fills it.
  pair.set_capacity(4, 30);
  pair.insert({{LinkId(0), 1}, {LinkId(4), 0.5}});
  CHECK(pair.error() == 0);
  CHECK(pair.solver().counters().level_changes == 0);
  pair.insert({{LinkId(4), 1}});
  CHECK(pair.error() < 1e-15);
  CHECK(pair.solver().counters().level_changes > 0);
}

TEST_CASE("a tolerance bounds how far levels lag behind") {
  Rng rng = Rng(3).stream("tolerance");
  const std::vector<double> capacity(60, 1e9);
  Solver loose(capacity, {.tolerance = 1e-3});
  Solver exact(capacity, {});
  std::vector<EntityId> a, b;
  double worst = 0;
  for (int i = 0; i < 500; ++i) {
    const auto path = random_path(rng, 60, 4, Weights::one);
    a.push_back(loose.insert(path));
    b.push_back(exact.insert(path));
    if (a.size() > 80) {
      const std::size_t k = rng.below(a.size());
      loose.remove(a[k]);
      exact.remove(b[k]);
      a.erase(a.begin() + static_cast<std::ptrdiff_t>(k));
      b.erase(b.begin() + static_cast<std::ptrdiff_t>(k));
    }
    loose.settle();
    exact.settle();
    for (std::size_t k = 0; k < a.size(); ++k)
      worst = std::max(worst, std::abs(loose.rate(a[k]) / exact.rate(b[k]) - 1));
  }
  CHECK(worst > 0);
  CHECK(worst < 5e-3);
  CHECK(loose.counters().level_changes < exact.counters().level_changes);
}

}  // namespace weft::engine::fluid
