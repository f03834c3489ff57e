#include "plan/run/placement.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "model/formats/test_fabric.hpp"

namespace weft::plan {
namespace {

// 4 racks x 2 hosts x 4 GPUs: GPU i is on host i / 4 in rack i / 8.
Fabric small() {
  return model::testing::make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 4, spines: 2}");
}

std::vector<std::uint32_t> indices(const Fabric& fabric, const std::vector<NodeId>& gpus) {
  std::vector<std::uint32_t> out;
  for (const NodeId gpu : gpus) out.push_back(fabric.role_index(gpu));
  return out;
}

std::size_t racks_of(const Fabric& fabric, const std::vector<NodeId>& gpus) {
  std::set<model::ScopeId> racks;
  for (const NodeId gpu : gpus) racks.insert(fabric.enclosing(gpu, model::ScopeKind::rack));
  return racks.size();
}

}  // namespace

TEST_CASE("rack_order takes the lowest free GPUs, topology the emptiest racks") {
  const Fabric fabric = small();
  Placer placer(fabric);
  const auto first = placer.place("rack_order", 4, Rng(1), {});
  CHECK(indices(fabric, *first) == std::vector<std::uint32_t>{0, 1, 2, 3});
  // Rack 0 is half full now: 8 GPUs fit one rack, but not that one.
  const auto whole = placer.place("topology", 8, Rng(1), {});
  CHECK(indices(fabric, *whole).front() == 8);
  CHECK(racks_of(fabric, *whole) == 1);
  const auto rest = placer.place("rack_order", 20, Rng(1), {});
  CHECK(indices(fabric, *rest).front() == 4);
  CHECK(placer.free_count() == 0);
}

TEST_CASE("fragmented takes whole hosts all over the fabric, ranks in fabric order") {
  const Fabric fabric = small();
  bool scattered = false;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Placer placer(fabric);
    const auto gpus = placer.place("fragmented", 12, Rng(seed), {});
    const auto at = indices(fabric, *gpus);
    CHECK(std::ranges::is_sorted(at));
    for (std::size_t i = 0; i < 12; i += 4) CHECK(at[i] % 4 == 0);
    scattered = scattered || racks_of(fabric, *gpus) == 3;
  }
  CHECK(scattered);
}

TEST_CASE("random takes whole hosts in random order, the GPUs of each in order") {
  const Fabric fabric = small();
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Placer placer(fabric);
    const auto at = indices(fabric, *placer.place("random", 14, Rng(seed), {}));
    REQUIRE(at.size() == 14);
    std::vector<std::uint32_t> hosts;
    for (std::size_t i = 0; i < at.size(); ++i) {
      CHECK(at[i] % 4 == i % 4);
      CHECK(at[i] / 4 == at[i - i % 4] / 4);
      if (i % 4 == 0) hosts.push_back(at[i] / 4);
    }
    CHECK(std::set(hosts.begin(), hosts.end()).size() == 4);
    orders.insert(hosts);
  }
  CHECK(orders.size() > 15);
}

TEST_CASE("random draws the hosts of fragmented, in another order") {
  const Fabric fabric = small();
  Placer a(fabric), b(fabric);
  const auto drawn = a.place("random", 16, Rng(3), {});
  const auto sorted = b.place("fragmented", 16, Rng(3), {});
  CHECK(*drawn != *sorted);
  CHECK(std::set(drawn->begin(), drawn->end()) == std::set(sorted->begin(), sorted->end()));
}

TEST_CASE("random fills hosts that are taken in part") {
  const Fabric fabric = small();
  Placer placer(fabric);
  CHECK(placer.place("rack_order", 2, Rng(1), {}).has_value());
  const auto rest = placer.place("random", 30, Rng(1), {});
  REQUIRE(rest.has_value());
  CHECK(std::set(rest->begin(), rest->end()).size() == 30);
  CHECK(placer.free_count() == 0);
}

TEST_CASE("random and scattered places are all different and depend on the stream alone") {
  const Fabric fabric = small();
  for (const char* const name : {"random", "scattered"}) {
    Placer a(fabric), b(fabric), c(fabric);
    const auto x = a.place(name, 16, Rng(1), {});
    CHECK(*x == *b.place(name, 16, Rng(1), {}));
    CHECK(*x != *c.place(name, 16, Rng(2), {}));
    CHECK(std::set(x->begin(), x->end()).size() == 16);
  }
}

TEST_CASE("scattered parts the GPUs of hosts") {
  const Fabric fabric = small();
  Placer placer(fabric);
  const auto at = indices(fabric, *placer.place("scattered", 16, Rng(1), {}));
  std::size_t together = 0;
  for (std::size_t i = 1; i < at.size(); ++i) together += at[i] == at[i - 1] + 1 ? 1 : 0;
  CHECK(together < 8);
}

TEST_CASE("no GPU twice, none beyond the fabric") {
  const Fabric fabric = small();
  Placer placer(fabric);
  const std::string names[] = {"0", "gpu:5", "0", "nic:1", "99"};
  std::vector<Token> tokens;
  for (std::uint32_t i = 0; i < 5; ++i) tokens.push_back({names[i], {"t.yaml", i + 1, 1}});
  const auto list = placer.place_list(tokens);
  REQUIRE_FALSE(list.has_value());
  const std::string text = list.error().text();
  CHECK(text.find("t.yaml:3:1: gpu:0 is already in use") != std::string::npos);
  CHECK(text.find("t.yaml:4:1: \"nic:1\" is not a GPU") != std::string::npos);
  CHECK(text.find("t.yaml:5:1") != std::string::npos);
  const auto many = placer.place("topology", 40, Rng(1), {"t.yaml", 9, 2});
  REQUIRE_FALSE(many.has_value());
  CHECK(many.error().text().find("t.yaml:9:2: 40 GPUs requested") != std::string::npos);
}

}  // namespace weft::plan
