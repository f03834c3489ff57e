// drain_simgrid FLOWS [SEED [CPU_SECONDS]]: the same instance on SimGrid, as the peer to compare
// with. CPU time of the run alone, like drain_weft. SimGrid's default model scales bandwidth by
// 0.97 and adds cross traffic; both are switched off here for plain max-min rates.
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>

#include "clos/instance.hpp"

namespace sg = simgrid::s4u;

namespace {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Clos {
  std::vector<sg::Host*> hosts;
  std::vector<sg::Link*> host_up, host_down, up, down;
  sg::NetZone* zone = sg::create_full_zone("clos");

  explicit Clos(const weft::bench::ClosInstance& in) {
    const double host_rate = 50e9;
    const double fabric_rate = host_rate * in.hosts_per_rack / in.spines;
    const auto link = [&](const char* kind, int i, double rate) {
      return zone->create_link(kind + std::to_string(i), rate)->set_latency(0);
    };
    for (int i = 0; i < in.hosts; ++i) {
      hosts.push_back(zone->create_host("h" + std::to_string(i), 1e12));
      host_up.push_back(link("hu", i, host_rate));
      host_down.push_back(link("hd", i, host_rate));
    }
    for (int i = 0; i < in.hosts / in.hosts_per_rack * in.spines; ++i) {
      up.push_back(link("up", i, fabric_rate));
      down.push_back(link("dn", i, fabric_rate));
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  sg::Engine engine(&argc, argv);
  sg::Engine::set_config("network/bandwidth-factor:1");
  sg::Engine::set_config("network/crosstraffic:0");
  weft::bench::ClosInstance in;
  if (argc > 1) in.flows = std::atoi(argv[1]);
  if (argc > 2) in.seed = std::strtoull(argv[2], nullptr, 10);
  const double budget = argc > 3 ? std::atof(argv[3]) : 1e9;
  Clos clos(in);
  struct Flow {
    int src, dst;
    double bytes;
  };
  std::vector<Flow> flows;
  weft::bench::for_each_flow(in, [&](int src, int dst, int spine, long long bytes) {
    const int a = src / in.hosts_per_rack * in.spines + spine;
    const int b = dst / in.hosts_per_rack * in.spines + spine;
    clos.zone->add_route(clos.hosts[src]->get_netpoint(), clos.hosts[dst]->get_netpoint(), nullptr,
                         nullptr,
                         {sg::LinkInRoute(clos.host_up[src]), sg::LinkInRoute(clos.up[a]),
                          sg::LinkInRoute(clos.down[b]), sg::LinkInRoute(clos.host_down[dst])},
                         false);
    flows.push_back({src, dst, static_cast<double>(bytes)});
  });
  clos.zone->seal();
  std::vector<sg::CommPtr> running;
  for (const Flow& flow : flows)
    running.push_back(sg::Comm::sendto_init(clos.hosts[flow.src], clos.hosts[flow.dst])
                          ->set_payload_size(static_cast<uint64_t>(flow.bytes))
                          ->start());
  const double start = cpu_seconds();
  double sum = 0;
  long done = 0;
  sg::Comm::on_completion_cb([&](const sg::Activity&) {
    sum += sg::Engine::get_clock();
    ++done;
    if (cpu_seconds() - start < budget) return;
    std::printf("simgrid flows=%d stopped after %ld completions cpu_s=%.3f\n", in.flows, done,
                cpu_seconds() - start);
    std::fflush(stdout);
    _exit(0);
  });
  engine.run();
  std::printf("simgrid flows=%d makespan_s=%.9f mean_s=%.9f cpu_s=%.4f\n", in.flows,
              sg::Engine::get_clock(), sum / in.flows, cpu_seconds() - start);
  std::fflush(stdout);
  _exit(0);  // SimGrid's teardown of many routes is slow and not part of the comparison
}
