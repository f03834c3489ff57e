// Probing without sockets: codes, judgements, accounts, and the plan of a zone.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "base/config.hpp"
#include "model/formats/build_fabric.hpp"
#include "observe/probe/histogram.hpp"
#include "observe/probe/plan.hpp"
#include "observe/probe/responder.hpp"

namespace {

using namespace weft;
using namespace weft::observe::probe;

constexpr Key key{1, 2};

void wire(benchmark::State& state) {
  WireBytes bytes;
  Message message{.session = 1}, out;
  for (auto _ : state) {
    ++message.sequence;
    encode(message, key, bytes);
    benchmark::DoNotOptimize(decode(bytes, key, out));
  }
}
BENCHMARK(wire);

void respond(benchmark::State& state) {
  Responder responder({.key = key, .age_max_ns = 0, .source_rate = 1e9});
  port::Incoming in;
  Message message{.session = 1}, reply;
  std::int64_t now = 0;
  for (auto _ : state) {
    state.PauseTiming();
    ++message.sequence;
    message.flow = static_cast<std::uint32_t>(message.sequence % 4096);
    WireBytes bytes;
    encode(message, key, bytes);
    std::copy(bytes.begin(), bytes.end(), in.bytes.begin());
    in.size = wire_bytes;
    state.ResumeTiming();
    benchmark::DoNotOptimize(responder.take(in, {now += 1'000}, {now}, reply));
  }
}
BENCHMARK(respond);

void histogram(benchmark::State& state) {
  Histogram histogram;
  std::int64_t value = 1;
  for (auto _ : state) histogram.add(value = value * 5 % 1'000'003);
}
BENCHMARK(histogram);

void plan_zone(benchmark::State& state) {
  const auto section = parse_yaml(
      "{generator: ai_zone, racks: 252, hosts_per_rack: 2, gpus_per_host: 8, spines: 18, "
      "link: 400 Gbps}",
      "fabric.yaml");
  if (!section) std::abort();
  const auto fabric = model::build_fabric(*section);
  if (!fabric) std::abort();
  auto router = route::Router::create(*fabric, {}, 1);
  if (!router) std::abort();
  for (auto _ : state) {
    const auto plan = make_plan(*router, {}, {.crossings = 1000});
    if (!plan || !plan->coverage.below.empty()) std::abort();
  }
}
BENCHMARK(plan_zone)->Unit(benchmark::kMillisecond);

}  // namespace
