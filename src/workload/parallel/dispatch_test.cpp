#include "workload/parallel/dispatch.hpp"

#include <doctest/doctest.h>

#include "base/test_approx.hpp"
#include "workload/parallel/estimate.hpp"
#include "workload/parallel/step_cost.hpp"
#include "workload/parallel/test_kit.hpp"

namespace weft::workload {
namespace {

using model::CommWork;
using testing::h100;
using testing::preset;

// 8 of 128 experts on 4 hosts: a host has none of them with C(96, 8) / C(128, 8) = 0.0926.
TEST_CASE("hosts that a token's experts are on") {
  const CommWork::OncePerHost qwen{.experts = 128, .per_token = 8};
  CHECK(parts_met(qwen, 4) == approx(4 * (1 - 0.0926)).epsilon(1e-3));
  CHECK(parts_met(qwen, 1) == approx(1));
  CHECK(parts_met({.experts = 8, .per_token = 8}, 8) == approx(8));
  CHECK(parts_met({.experts = 64, .per_token = 1}, 8) == approx(1));
}

// DeepSeek-V3: 4 of 8 groups of 32 experts. With one group a host, half of the hosts are met but
// for those that none of the 8 of 128 experts is on; two hosts a group, and two groups a host.
TEST_CASE("a limit of groups is a limit of hosts") {
  const CommWork::OncePerHost limited{
      .experts = 256, .per_token = 8, .groups = 8, .groups_per_token = 4};
  CHECK(parts_met(limited, 8) == approx(4 * (1 - 0.0926)).epsilon(1e-3));
  CHECK(parts_met(limited, 8) < parts_met({.experts = 256, .per_token = 8}, 8));
  CHECK(parts_met(limited, 16) > parts_met(limited, 8));
  CHECK(parts_met(limited, 4) < 4);
  CHECK(parts_met(limited, 1) == approx(1));
}

double exchanged(const model::StepCost& cost) {
  double bytes = 0;
  for (const CommWork& work : cost.chunk(0, 0).forward.comms)
    if (work.dimension == model::Dimension::ep) bytes += work.bytes;
  return bytes;
}

TEST_CASE("a dispatcher that copies on the hosts sends less, and more where groups are spread") {
  TrainingPlan plan{.tp = 2, .pp = 8, .vp = 4, .dp = 16, .ep = 32, .batch = 2048};
  mixture_defaults(plan);
  const auto cost_with = [&](Dispatcher dispatcher) {
    plan.dispatcher = dispatcher;
    return step_cost(preset("qwen3-235b-a22b"), plan, h100()).value();
  };
  const double plain = exchanged(cost_with(Dispatcher::alltoall));
  CHECK(plain == 2.0 * 4096 / 2 * 8 * 4096);
  const auto sent = [&](std::uint32_t gpus_per_host) {
    model::StepCost cost = cost_with(Dispatcher::deepep);
    CHECK(exchanged(cost) == plain);  // not placed yet
    send_once_per_host(cost, [&](std::uint32_t rank) { return rank / gpus_per_host; });
    return exchanged(cost) / plain * 8;  // copies of a token, one's own host included
  };
  CHECK(sent(8) == approx(3.63).epsilon(1e-3));
  CHECK(sent(4) > sent(8));
  // Inside one host a copy for each of its ranks.
  CHECK(sent(256) == approx(parts_met({.experts = 128, .per_token = 8}, 32)));
  model::StepCost unchanged = cost_with(Dispatcher::alltoall);
  send_once_per_host(unchanged, [](std::uint32_t rank) { return rank / 8; });
  CHECK(exchanged(unchanged) == plain);
}

}  // namespace
}  // namespace weft::workload
