#include "workload/collective/timing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/test_approx.hpp"
#include "workload/collective/test_kit.hpp"

namespace weft::workload {
namespace {

using test::contains;
using test::hosts_of;
using test::preset;

double seconds(const System& system, const GroupShape& shape, const Call& call) {
  const auto terms = predict(system, shape, call);
  if (!terms) FAIL(terms.error().text());
  return terms->seconds();
}

struct Case {
  GroupShape shape;
  Op op;
  std::string algorithm;
  Protocol protocol;
};

// Every algorithm, operation and protocol that serves 8 GPUs of one host, 4 hosts of 8, or 4 of 1.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const GroupShape& shape : {hosts_of(1, 8), hosts_of(4, 8), hosts_of(4, 1)})
    for (const std::string& algorithm : timed_algorithms())
      for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::broadcast,
                          Op::all_to_all, Op::send_recv})
        for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple})
          if (predict(preset("h100"), shape, {op, algorithm, protocol, 8}))
            cases.push_back({shape, op, algorithm, protocol});
  return cases;
}

TEST_CASE("time grows with size, from the hops alone to the bandwidth alone") {
  const System system = preset("h100");
  const auto cases = all_cases();
  CHECK(cases.size() > 40);
  for (const Case& c : cases) {
    CAPTURE(c.algorithm);
    const auto at = [&](double bytes) {
      return predict(system, c.shape, {c.op, c.algorithm, c.protocol, bytes}).value();
    };
    const Terms empty = at(0);
    CHECK(empty.wire == 0);
    CHECK(empty.seconds() == approx(empty.launch + empty.latency));
    double before = empty.seconds();
    for (double bytes = 1; bytes <= 0x1p50; bytes *= 2) {
      const Terms terms = at(bytes);
      CHECK(terms.seconds() > before);
      CHECK(terms.seconds() >= terms.wire);
      before = terms.seconds();
    }
    const Terms full = at(collective_bytes_max);
    CHECK(full.seconds() == approx(full.wire).epsilon(1e-3));
  }
}

// Bus bandwidth that remains of each algorithm when latency no longer counts: closed forms.
TEST_CASE("bandwidth in the limit") {
  const System system = preset("h100");
  const double ring = system.link.ring, nvls = system.link.nvls;
  const auto busbw = [&](const GroupShape& shape, Op op, const std::string& algorithm) {
    const Terms terms = predict(system, shape, {op, algorithm, Protocol::simple, 1e18}).value();
    return 1e18 / terms.wire * busbw_factor(op, shape.ranks);
  };
  const GroupShape host = hosts_of(1, 8), pair = hosts_of(2, 8), four = hosts_of(4, 8);
  for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::broadcast})
    CHECK(busbw(host, op, "ring") == approx(ring));
  CHECK(busbw(host, Op::all_reduce, "nvls") == approx(nvls * 14 / 9));
  CHECK(busbw(host, Op::all_to_all, "pairwise") == approx(ring));

  const double network = network_bytes_per_s(system, four);
  CHECK(network == approx(8 * 50e9 * system.nic_efficiency));
  CHECK(busbw(hosts_of(4, 1), Op::all_reduce, "ring") == approx(ring));  // 8 NICs a GPU
  // A ring between hosts takes the slower of NVLink and all NICs.
  CHECK(busbw(four, Op::all_reduce, "ring") == approx(std::min(ring, network)));
  // A pair of hosts sends each byte once; four send it twice, n/(n-1) over the ring's factor.
  const double halves = busbw(four, Op::all_reduce, "nvls_tree") / (network * 31 / 32);
  CHECK(halves < 1);
  CHECK(halves > 0.9);
  CHECK(busbw(pair, Op::all_reduce, "nvls_tree") > network);
}

TEST_CASE("a larger NVLink domain starts later and gives each GPU a little less") {
  const System gb200 = preset("gb200");
  const auto terms = [&](std::uint32_t gpus) {
    return predict(gb200, hosts_of(1, gpus), {Op::all_reduce, "nvls", Protocol::simple, 1e9})
        .value();
  };
  CHECK(terms(4).latency == terms(8).latency);  // a chunk for each of up to 8 GPUs
  double before = terms(8).latency;
  for (const std::uint32_t gpus : {16u, 32u, 64u, 72u}) {
    CHECK(terms(gpus).latency > before);
    before = terms(gpus).latency;
  }
  // By hand: 37.5 us * 9^0.8; (1 + 1/72) GB at 545 GB/s / 9^0.078.
  CHECK(terms(72).latency == approx(217.5e-6).epsilon(1e-3));
  CHECK(terms(72).wire == approx(2.208e-3).epsilon(1e-3));
  CHECK(terms(8).wire == approx(1.125e9 / 545e9));
}

TEST_CASE("an all-to-all costs more with every peer") {
  const System system = preset("h100");
  const auto terms = [&](std::uint32_t hosts) {
    return predict(system, hosts_of(hosts, 8), {Op::all_to_all, "pairwise", Protocol::simple, 1e6})
        .value();
  };
  CHECK((terms(8).latency - terms(2).latency) / 1e-6 == approx(48 * 0.7));
  // Two hosts: half of the data leaves through NICs that have it for themselves.
  const double network = network_bytes_per_s(system, hosts_of(2, 8));
  CHECK(terms(2).wire == approx(8 * 1e6 / 2 / network));
  CHECK(terms(32).wire > 8 * 1e6 * 31 / 32 / network * 1.2);
}

TEST_CASE("a step over the network depends on the protocol") {
  System system = preset("h100");
  const auto latency = [&](const std::string& algorithm, Protocol protocol, Duration step) {
    system.network_latency = step;
    return predict(system, hosts_of(4, 8), {Op::all_reduce, algorithm, protocol, 0})->latency;
  };
  const auto per_step = [&](const std::string& algorithm, Protocol protocol) {
    return (latency(algorithm, protocol, 2_us) - latency(algorithm, protocol, 1_us)) / 1e-6;
  };
  CHECK(per_step("tree", Protocol::ll) == approx(4));  // up and down two levels
  CHECK(per_step("tree", Protocol::simple) == approx(4 * 2.8));
  CHECK(per_step("ring", Protocol::simple) == approx(6 * 2.8));
  CHECK(per_step("nvls_tree", Protocol::simple) == approx(4 * 2.8));
}

TEST_CASE("the network's bandwidth is an input") {
  const System system = preset("h100");
  const Call call{Op::all_reduce, "ring", Protocol::simple, 1e12};
  const double full = predict(system, hosts_of(4, 8), call).value().seconds();
  const double network = network_bytes_per_s(system, hosts_of(4, 8));
  const double half = predict(system, hosts_of(4, 8), call, network / 2).value().seconds();
  CHECK(half / full == approx(2).epsilon(0.02));
  CHECK_FALSE(predict(system, hosts_of(4, 8), call, 0.0));
  CHECK_FALSE(predict(system, hosts_of(4, 8), call, std::nan("")));
}

TEST_CASE("a combination with p = 1 is a sum, with large p the larger") {
  CHECK(Terms{1, 2, 3, 1}.seconds() == approx(6));
  CHECK(Terms{0, 2, 3, 50}.seconds() == approx(3));
  CHECK(Terms{0, 4, 9, 0.5}.seconds() == approx(25));  // (2 + 3)^2
  CHECK(Terms{1, 0, 0, 0.5}.seconds() == 1);
  CHECK(Terms{0, 1e-300, 1e300, 0.5}.seconds() == approx(1e300));
}

TEST_CASE("calibration meets its row and moves nothing but the latency") {
  struct Row {
    GroupShape shape;
    std::string algorithm;
    double seconds;
  };
  for (const Row& row : {Row{hosts_of(1, 8), "nvls", 68.5e-6}, Row{hosts_of(1, 8), "nvls", 53e-6},
                         Row{hosts_of(2, 8), "nvls_tree", 168.6e-6},
                         Row{hosts_of(16, 8), "ring", 1e-3}, Row{hosts_of(2, 8), "tree", 1e-3}}) {
    const Call call{Op::all_reduce, row.algorithm, Protocol::simple, 4 << 20};
    const System before = preset("h200");
    const auto after = calibrate(before, row.shape, call, row.seconds);
    if (!after) FAIL(after.error().text());
    CHECK(seconds(*after, row.shape, call) == approx(row.seconds).epsilon(1e-6));
    CHECK(after->link.ring == before.link.ring);
    if (row.shape.hosts == 1) CHECK(after->network_latency == before.network_latency);
    if (row.shape.hosts > 1) CHECK(after->host_latency == before.host_latency);
  }
}

TEST_CASE("rows that no latency can explain are refused") {
  const Call call{Op::all_reduce, "nvls", Protocol::simple, 1 << 30};
  for (const double row : {0.0, -1.0, 1e-3, 1e9, std::nan(""), HUGE_VAL})
    CHECK_FALSE(calibrate(preset("h100"), hosts_of(1, 8), call, row));
  const Call tree{Op::all_reduce, "nvls_tree", Protocol::simple, 8};
  CHECK_FALSE(calibrate(preset("h100"), hosts_of(2, 8), tree, 1e-6));
  CHECK_FALSE(calibrate(preset("h100"), hosts_of(1, 8), {Op::all_reduce, "ring"}, 1e-6));
}

TEST_CASE("what cannot be: the message says why") {
  const System h100 = preset("h100"), a100 = preset("a100");
  const auto refused = [](const System& system, const GroupShape& shape, const Call& call) {
    const auto terms = predict(system, shape, call);
    return terms ? std::string("accepted") : terms.error().text();
  };
  const GroupShape host = hosts_of(1, 8), pair = hosts_of(2, 8);
  CHECK(contains(refused(a100, host, {Op::all_reduce, "nvls"}), "NVSwitch"));
  CHECK(contains(refused(h100, pair, {Op::all_reduce, "nvls"}), "one host"));
  CHECK(contains(refused(h100, host, {Op::all_reduce, "nvls_tree"}), "several hosts"));
  CHECK(contains(refused(h100, host, {Op::all_gather, "tree"}), "operation"));
  CHECK(contains(refused(h100, host, {Op::all_reduce, "nvls", Protocol::ll}), "Simple"));
  CHECK(contains(refused(h100, host, {Op::all_reduce, "rnig"}), "ring"));
  for (const double bytes : {-1.0, 1e30, std::nan(""), HUGE_VAL})
    CHECK(
        contains(refused(h100, host, {Op::all_reduce, "ring", Protocol::simple, bytes}), "bytes"));
  for (const GroupShape& bad : {GroupShape{.ranks = 1, .gpus_per_host = 1}, GroupShape{.ranks = 9},
                                GroupShape{.ranks = 16, .hosts = 2, .nics_per_host = 0}})
    CHECK(refused(h100, bad, {Op::all_reduce, "ring"}) != "accepted");
}

TEST_CASE("whatever makes traffic has a time") {
  const auto timed = timed_algorithms();
  for (const std::string& name : algorithm_names()) {
    if (name == "auto") continue;
    CHECK_MESSAGE(std::ranges::find(timed, name) != timed.end(), name);
  }
}

TEST_CASE("protocol names") {
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple})
    CHECK(parse_protocol(to_text(protocol)).value() == protocol);
  CHECK_FALSE(parse_protocol("ll256"));
}

}  // namespace
}  // namespace weft::workload
