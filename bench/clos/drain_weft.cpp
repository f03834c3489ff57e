// drain_weft FLOWS [SEED]: all flows of the instance from start to end, without reading a file.
#include <sys/resource.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>

#include "clos/instance.hpp"
#include "engine/fluid/simulation.hpp"

namespace {

using weft::engine::fluid::Hop;
using weft::engine::fluid::LinkId;
using weft::engine::fluid::Simulation;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Ends final : Simulation::Listener {
  Simulation& simulation;
  double sum = 0, last = 0;
  explicit Ends(Simulation& s) : simulation(s) {}
  void on_flow_end(weft::engine::fluid::FlowId, std::uint64_t) override {
    last = simulation.now();
    sum += last;
  }
  void on_timer(std::uint64_t) override {}
};

}  // namespace

int main(int argc, char** argv) {
  weft::bench::ClosInstance in;
  if (argc > 1) in.flows = std::atoi(argv[1]);
  if (argc > 2) in.seed = std::strtoull(argv[2], nullptr, 10);
  const int racks = in.hosts / in.hosts_per_rack;
  const int up = 2 * in.hosts, down = up + racks * in.spines;
  std::vector<double> capacity(static_cast<std::size_t>(down + racks * in.spines), 50e9);
  for (std::size_t i = static_cast<std::size_t>(up); i < capacity.size(); ++i)
    capacity[i] = 50e9 * in.hosts_per_rack / in.spines;
  struct Flow {
    Hop hops[4];
    double bytes;
  };
  std::vector<Flow> flows;
  weft::bench::for_each_flow(in, [&](int src, int dst, int spine, long long bytes) {
    const int a = up + src / in.hosts_per_rack * in.spines + spine;
    const int b = down + dst / in.hosts_per_rack * in.spines + spine;
    flows.push_back(
        {{{LinkId(src), 1}, {LinkId(a), 1}, {LinkId(b), 1}, {LinkId(in.hosts + dst), 1}},
         static_cast<double>(bytes)});
  });
  const double start = cpu_seconds();
  Simulation simulation(capacity, {});
  Ends ends(simulation);
  for (std::size_t i = 0; i < flows.size(); ++i) simulation.start(flows[i].hops, flows[i].bytes, i);
  simulation.run(ends);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("weft    flows=%d makespan_s=%.9f mean_s=%.9f cpu_s=%.4f rss_mb=%ld\n", in.flows,
              ends.last, ends.sum / in.flows, cpu_seconds() - start, usage.ru_maxrss / 1024);
  return 0;
}
