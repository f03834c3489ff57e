#include "app/site/site_file.hpp"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <string>

#include "app/site/probe_plan.hpp"
#include "app/site/site_check.hpp"
#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "model/formats/build_fabric.hpp"

namespace weft::app {
namespace {

Result<Site> site_of(const std::string& text) {
  const auto config = parse_yaml(text, "site.yaml");
  REQUIRE(config.has_value());
  return read_site(*config, "/etc/weft/site.yaml");
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

TEST_CASE("a site becomes the options of weft serve and of its feeds") {
  const auto site = site_of(R"(
fabric: zone.yaml
inventory: names.csv
service: {listen: "127.0.0.1:8630", syslog: ["udp://0.0.0.0:514"], snapshots: snaps, traces: t}
operate: {policy: {}}
feeds:
  - snmp: {targets: a.csv, every: 30 s, traps: "0.0.0.0:162", senders: s.csv}
  - snmp: {targets: b.csv}
  - gnmi: {targets: g.csv, paths: [/a, /b]}
  - agent: {device: "host:0", logs: [/var/log/syslog], traces: /dev/shm, trace_every: 10 s}
probes: {key: k, window: 2 s, renew: 60 s}
)");
  REQUIRE(site.has_value());
  CHECK(joined(serve_arguments(*site)) ==
        "serve --fabric zone.yaml --store site.state/weft.db --listen 127.0.0.1:8630 --config "
        "/etc/weft/site.yaml --section operate --syslog udp://0.0.0.0:514 --inventory names.csv "
        "--snapshots snaps --traces t");
  REQUIRE(site->feeds.size() == 4);
  CHECK(site->feeds[1].name == "snmp 2");
  CHECK(joined(site->feeds[0].arguments) ==
        "poll snmp --fabric zone.yaml --addresses names.csv --targets a.csv --every 30 s --traps "
        "0.0.0.0:162 --senders s.csv");
  CHECK(joined(site->feeds[2].arguments) ==
        "gnmi --fabric zone.yaml --addresses names.csv --targets g.csv --path /a --path /b");
  CHECK(joined(site->feeds[3].arguments) ==
        "agent --fabric zone.yaml --inventory names.csv --device host:0 --log /var/log/syslog "
        "--traces /dev/shm --trace-every 10 s --to http://127.0.0.1:8630 --spool "
        "site.state/spool-agent");
  CHECK(site->feeds[3].sends);
  CHECK(site->probes->window == "2s");
  CHECK(site->ports.size() == 3);
}

TEST_CASE("errors of a site are reported together, with their places") {
  const auto site = site_of(R"(
fabrik: zone.yaml
service: {syslog: ["0.0.0.0:514"], tokens: t}
feeds:
  - snpm: {targets: a.csv}
  - snmp: {every: 30 s, node: mgmt}
probes: {key: k, at: [ssh, "{hots}"], renew: 1 s}
)");
  REQUIRE_FALSE(site.has_value());
  const std::string text = site.error().text();
  for (const char* part :
       {"fabric", "did you mean \"fabric\"", "not a syslog address", "have no token",
        "unknown feed \"snpm\" (did you mean \"snmp\"?)", "targets", "node is a namespace of a lab",
        "unknown placeholder {hots}", "path of a program", "at least 10 s", "site.yaml:5:5"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part << " in " << text);
}

TEST_CASE("what is missing is found before anything starts") {
  const TestFolder folder;
  REQUIRE(write_file(folder.file("zone.yaml"), "x"));
  REQUIRE(write_file(folder.file("names.csv"), "node,address\nnic:0,127.0.0.1\n"));
  const auto site = site_of(fmt::format(R"(
fabric: {0}/zone.yaml
state: {0}/state
service: {{listen: "127.0.0.1:1", syslog: ["udp://192.0.2.1:5514"]}}
feeds: [agent: {{device: "rtsw:0", logs: [{0}/zone.yaml, /nowhere/a.log]}}]
probes: {{key: {0}/key, addresses: {0}/names.csv, at: [/nowhere/ssh, "{{host}}"]}}
)",
                                        folder.path()));
  REQUIRE(site.has_value());
  const auto fabric = model::build_fabric(*parse_yaml(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 1}", "fabric"));
  REQUIRE(fabric.has_value());
  std::string problems;
  for (const SiteCheck& check : check_site(*site, *fabric))
    if (!check.problem.empty())
      problems += fmt::format("{}: {}; {}\n", check.what, check.problem, check.advice);
  for (const char* part :
       {"agent.logs /nowhere/a.log: No such file", "/key: No such file or directory; create it",
        "udp 192.0.2.1:5514: Cannot assign", "probes.at /nowhere/ssh: No such file",
        "address of nic:1: unknown; add it to"})
    CHECK_MESSAGE(problems.find(part) != std::string::npos, part << " in " << problems);
}

TEST_CASE("sweeps go to other racks, spread evenly, to all of them where they are few") {
  const auto fabric = model::build_fabric(*parse_yaml(
      "{generator: ai_zone, racks: 8, hosts_per_rack: 2, gpus_per_host: 1, spines: 2}", "fabric"));
  REQUIRE(fabric.has_value());
  const std::vector<model::NodeId> nics(fabric->nics().begin(), fabric->nics().end());
  CHECK(sweep_targets(*fabric, nics, nics[3], 100).size() == 14);
  const auto some = sweep_targets(*fabric, nics, nics[0], 7);
  REQUIRE(some.size() == 7);
  std::string names;
  for (const model::NodeId nic : some) names += fabric->name(nic) + " ";
  CHECK(names == "nic:2 nic:4 nic:6 nic:8 nic:10 nic:12 nic:14 ");
}

}  // namespace
}  // namespace weft::app
