// The readers that large inputs go through, and the generator that every run draws from.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/csv.hpp"
#include "base/rng.hpp"

namespace {

void draw_below(benchmark::State& state) {
  weft::Rng rng(1);
  for (auto _ : state) benchmark::DoNotOptimize(rng.below(4096));
}
BENCHMARK(draw_below);

void read_flow_csv(benchmark::State& state) {
  const std::vector<std::string> required{"id", "src", "dst", "bytes"};
  std::string text = "id,src,dst,bytes\n";
  for (int i = 0; i < state.range(0); ++i) text += std::to_string(i) + ",nic:1,nic:22,16 MiB\n";
  for (auto _ : state) {
    weft::CsvReader csv(text, "flows.csv");
    if (!csv.header(required, {})) state.SkipWithError("header");
    while (csv.next()) benchmark::DoNotOptimize(weft::parse_bytes(csv.cell(3)));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(read_flow_csv)->Arg(64'000)->Unit(benchmark::kMillisecond);

void read_yaml(benchmark::State& state) {
  std::string text;
  for (int i = 0; i < state.range(0); ++i)
    text += "- {name: job" + std::to_string(i) + ", bytes: 64 MiB, gpus: 512}\n";
  for (auto _ : state) benchmark::DoNotOptimize(weft::parse_yaml(text, "jobs.yaml"));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(read_yaml)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
