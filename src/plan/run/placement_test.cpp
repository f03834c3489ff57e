#include "plan/run/placement.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>

#include "model/formats/test_fabric.hpp"
#include "plan/place/rank_file.hpp"
#include "plan/run/compute_times.hpp"

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

namespace {

Result<std::vector<NodeId>> listed(const Fabric& fabric, std::initializer_list<const char*> names) {
  std::vector<Token> tokens;
  for (const char* name : names) tokens.push_back({name, {"s.yaml", 3, 10}});
  return Placer(fabric).place_list(tokens);
}

Result<std::vector<NodeId>> from_file(const Fabric& fabric, std::string_view text) {
  WEFT_TRY(const auto lines, place::read_rank_file(text, "ranks.txt"));
  return Placer(fabric).place_lines(lines);
}

using Indices = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("a list names GPUs, hosts in either spelling, host lists and racks") {
  const Fabric fabric = small();
  CHECK(indices(fabric, *listed(fabric, {"9", "gpu:3"})) == Indices{9, 3});
  CHECK(indices(fabric, *listed(fabric, {"host:1", "host0"})) == Indices{4, 5, 6, 7, 0, 1, 2, 3});
  CHECK(indices(fabric, *listed(fabric, {"host[2,0]"})) == Indices{8, 9, 10, 11, 0, 1, 2, 3});
  CHECK(indices(fabric, *listed(fabric, {"gpu:[5-7],30"})) == Indices{5, 6, 7, 30});
  CHECK(indices(fabric, *listed(fabric, {"rack:3"})) == Indices{24, 25, 26, 27, 28, 29, 30, 31});
  CHECK(listed(fabric, {"host[0-1]", "gpu:5"}).error().text() ==
        "s.yaml:3:10: gpu:5 is already in use; assign each GPU once, to one job");
  CHECK(listed(fabric, {"hosts[0-1]"}).error().text().contains("unknown node \"hosts0\""));
  CHECK(listed(fabric, {"rtsw:0"}).error().text().contains("\"rtsw:0\" is not a GPU"));
  CHECK(listed(fabric, {"host[0-"}).error().text().contains("without \"]\""));
}

TEST_CASE("rank files: every form gives back what rank_file() wrote") {
  const Fabric fabric = small();
  const Indices wanted{20, 21, 22, 23, 0, 1, 2, 3};
  for (const std::string& form : place::rank_file_formats()) {
    CAPTURE(form);
    const std::string text =
        place::rank_file(form, std::array<std::string, 2>{"host5", "host0"}, 4, 8);
    CHECK(indices(fabric, *from_file(fabric, text)) == wanted);
  }
  CHECK(indices(fabric, *from_file(fabric, "# mpi\nhost5 slots=4\n\nhost:0 slots=4\n")) == wanted);
  // Seven ranks of eight GPUs.
  CHECK(from_file(fabric,
                  place::rank_file("openmpi", std::array<std::string, 2>{"host5", "host0"}, 4, 7))
            ->size() == 7);
  // Lines in any order; slots are GPUs of the host.
  CHECK(indices(fabric, *from_file(fabric, "rank 1=host0 slot=3\nrank 0=host0 slot=1")) ==
        Indices{1, 3});
  // A host may return: its next GPUs.
  CHECK(indices(fabric, *from_file(fabric, "host0\nhost1\nhost0\n")) == Indices{0, 4, 1});
}

TEST_CASE("rank files that are wrong say where") {
  const Fabric fabric = small();
  const auto wrong = [&](std::string_view text) { return from_file(fabric, text).error().text(); };
  CHECK(wrong("").contains("no ranks in this file"));
  CHECK(wrong("a b c d\n").starts_with("ranks.txt:1:1: not a line of a rank file"));
  CHECK(wrong("host0\n1 host1\n").starts_with("ranks.txt:2:1: a line of the form \"N HOST\""));
  CHECK(wrong("rank 0=host0 slot=0\nrank 0=host0 slot=1\n").contains("duplicate entry for rank 0"));
  CHECK(wrong("rank 1=host0 slot=0\n").contains("rank 0 is missing"));
  CHECK(wrong("tux9\n").starts_with("ranks.txt:1:1: unknown host \"tux9\""));
  CHECK(wrong("host0 slots=5\n").contains("host0 has 4 GPUs, and GPU 4 of it is listed"));
  CHECK(wrong("rank 0=host0 slot=4\n").contains("and GPU 4 of it is listed"));
  CHECK(wrong("0 host0\n1 host0\n").contains("gpu:0 is already in use"));
}

TEST_CASE("compute times: the median of a rank by the median of all") {
  const auto read = [](std::string_view text, std::size_t ranks) {
    return read_compute_factors(text, "t.csv", ranks);
  };
  CHECK(*read("rank,seconds\n1,0.2\n0,0.1\n2,0.1\n", 3) == std::vector<double>{1, 2, 1});
  // Three samples of rank 0: 9 is an outlier. Steps are not used.
  CHECK(*read("step,seconds,rank\n0,1,0\n1,9,0\n2,1,0\n0,3,1\n", 2) ==
        std::vector<double>{0.5, 1.5});
  const auto wrong = [&](std::string_view text) { return read(text, 2).error().text(); };
  CHECK(wrong("rank,seconds\n0,1\n2,1\n").starts_with("t.csv:3:1: \"2\" is not a rank"));
  CHECK(wrong("rank,seconds\n0,0\n").starts_with("t.csv:2:3: \"0\" is not a time"));
  CHECK(wrong("rank,seconds\n0,nan\n").contains("is not a time"));
  CHECK(wrong("rank,seconds\n0,1\n").contains("rank 1 has no row; 1 of 2 ranks have none"));
  CHECK(wrong("rank,ms\n0,1\n").starts_with("t.csv:1:"));
  CHECK(read("rank,seconds\n0,1\n1,1\n2,1e9\n", 3).error().text().contains("check the unit"));
}

}  // namespace weft::plan
