// Durable commits to the embedded store, in a file under the directory for temporary files.
#include <benchmark/benchmark.h>

#include <string>

#include "adapt/sqlite/store.hpp"
#include "base/test_folder.hpp"

namespace {

namespace port = weft::port;

// Lines of 150 bytes, as syslog has them.
port::Commit batch(std::size_t count) {
  port::Commit out;
  out.events.assign(count, {0, {1}, "syslog", std::string(150, 'x')});
  return out;
}

void store_commit(benchmark::State& state) {
  const weft::TestFolder folder;
  const auto store = weft::adapt::sqlite::open_sqlite(folder.file("weft.db"));
  const port::Commit commit = batch(static_cast<std::size_t>(state.range(0)));
  if (!store) return state.SkipWithError("there is no store");
  for (auto _ : state)
    if (!(*store)->commit(commit)) return state.SkipWithError("the commit failed");
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void store_read(benchmark::State& state) {
  const weft::TestFolder folder;
  const auto store = weft::adapt::sqlite::open_sqlite(folder.file("weft.db"));
  if (!store || !(*store)->commit(batch(100'000))) return state.SkipWithError("there is no store");
  for (auto _ : state) benchmark::DoNotOptimize((*store)->events(50'000, 1000));
  state.SetItemsProcessed(state.iterations() * 1000);
}

BENCHMARK(store_commit)->Arg(1)->Arg(100)->Arg(1000)->UseRealTime();
BENCHMARK(store_read);

}  // namespace
