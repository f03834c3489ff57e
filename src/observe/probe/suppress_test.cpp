#include "observe/probe/suppress.hpp"

#include <doctest/doctest.h>

namespace weft::observe::probe {
namespace {

using enum HostVerdict;
using Hosts = std::vector<HostCounts>;
using Verdicts = std::vector<HostVerdict>;

HostCounts host(std::string name, std::string rack, std::uint64_t lost, std::uint64_t sent = 100) {
  return {.host = std::move(name), .rack = std::move(rack), .sent = sent, .lost = lost};
}

TEST_CASE("a silent host whose rack answers is dead; one that loses some is not") {
  const Hosts hosts{host("a", "r0", 0), host("b", "r0", 100), host("c", "r0", 99)};
  CHECK(judge_hosts(hosts) == Verdicts{alive, dead_host, alive});
}

TEST_CASE("a host that loses all probes and still answers questions about them is alive") {
  Hosts hosts{host("a", "r0", 0), host("b", "r0", 100)};
  hosts[1].heard = true;
  CHECK(judge_hosts(hosts) == Verdicts{alive, alive});
}

TEST_CASE("a rack that is silent as a whole is evidence") {
  const Hosts hosts{host("a", "r0", 100), host("b", "r0", 100), host("c", "r1", 0)};
  CHECK(judge_hosts(hosts) == Verdicts{dead_rack, dead_rack, alive});
}

TEST_CASE("the only host probed in its rack, and hosts without racks") {
  const Hosts hosts{host("a", "r0", 100), host("b", "", 100), host("c", "", 0)};
  CHECK(judge_hosts(hosts) == Verdicts{dead_host, dead_host, alive});
}

TEST_CASE("too few probes say nothing") {
  const Hosts hosts{host("a", "r0", 2, 2), host("b", "r0", 0)};
  CHECK(judge_hosts(hosts) == Verdicts{unknown, alive});
}

TEST_CASE("silent hosts in more racks than the threshold are not what failed") {
  Hosts hosts;
  for (int rack = 0; rack < 8; ++rack)
    for (int i = 0; i < 2; ++i)
      hosts.push_back(host("h" + std::to_string(2 * rack + i), "r" + std::to_string(rack),
                           rack < 4 && i == 0 ? 100 : 0));
  CHECK(judge_hosts(hosts)[0] == dead_host);
  hosts[8].lost = 100;  // a fifth rack
  CHECK(judge_hosts(hosts)[0] == dead_rack);
  CHECK(judge_hosts(hosts, {.dead_racks_threshold = 5})[0] == dead_host);
}

}  // namespace
}  // namespace weft::observe::probe
