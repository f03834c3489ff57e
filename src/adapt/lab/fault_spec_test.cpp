#include "adapt/lab/fault_spec.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/test_approx.hpp"
#include "model/fabric/fault_catalogue.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::adapt::lab {
namespace {

using Options = std::vector<FaultOption>;

FaultSpec parse(std::string_view kind, std::string_view target, const Options& options = {}) {
  const auto spec = parse_fault(kind, target, options);
  REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : spec.error().text()));
  return *spec;
}

std::string refusal(std::string_view kind, std::string_view target, const Options& options = {}) {
  const auto spec = parse_fault(kind, target, options);
  return spec ? "accepted" : spec.error().text();
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

//   rtsw:0   rtsw:1     two racks of one host, two spines
//     | \ X / |
//   ctsw:0   ctsw:1
struct Net {
  model::Fabric fabric;
  LabPlan plan;
};
Net make_net() {
  model::Fabric fabric = model::testing::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2, "
      "link: 100 Gbps}");
  auto plan = make_plan(fabric, {.lab = "spec"});
  REQUIRE_MESSAGE(plan.has_value(), (plan ? "" : plan.error().text()));
  return {std::move(fabric), *std::move(plan)};
}

FaultTarget find(const Net& net, const FaultSpec& spec) {
  const auto target = find_target(net.fabric, net.plan, spec);
  REQUIRE_MESSAGE(target.has_value(), (target ? "" : target.error().text()));
  return *target;
}

std::string not_found(const Net& net, const FaultSpec& spec) {
  const auto target = find_target(net.fabric, net.plan, spec);
  return target ? "found" : target.error().text();
}

TEST_CASE("a lab makes the kinds that the catalogue says, and no others") {
  std::set<std::string_view> kinds;
  for (std::size_t i = 0; i < fault_kind_count; ++i)
    kinds.insert(to_text(static_cast<FaultKind>(i)));
  CHECK(kinds.size() == fault_kind_count);
  const auto names = model::fault_names(model::by_lab);
  CHECK(kinds == std::set<std::string_view>(names.begin(), names.end()));
  for (const auto& [old, now] :
       {std::pair{"loss", "link_lossy"}, {"rate", "link_degraded"}, {"flap", "port_flap"}})
    CHECK(has(refusal(old, "a--b"), fmt::format("did you mean \"{}\"?", now)));
}

TEST_CASE("options of a fault") {
  const FaultSpec loss = parse("link_lossy", " ctsw:1->rtsw:3 ",
                               {{"rate", "1%"}, {"bucket", "3/64"}, {"class", "46"}});
  CHECK(loss.target == "ctsw:1->rtsw:3");
  CHECK(loss.share == approx(0.01));
  CHECK(loss.bucket == TupleBucket{3, 64});
  CHECK(loss.dscp == 46);
  CHECK(parse("link_lossy", "a->b").share == 1);
  CHECK(parse("link_lossy", "a->b", {{"rate", "0.0001 %"}}).share == approx(1e-6));
  CHECK(parse("link_lossy", "a->b", {{"rate", "1e-6"}}).share == 1e-6);
  CHECK(parse("delay", "a->b", {{"delay", "5 ms"}}).delay == Duration{5'000'000'000});
  CHECK(parse("reorder", "a->b", {{"rate", "1%"}}).delay == Duration{1'000'000'000});
  const FaultSpec rate = parse("link_degraded", "a--b", {{"rate", "1 Gbps"}, {"ecn", "50 KiB"}});
  CHECK(rate.rate == 1_Gbps);
  CHECK(rate.ecn_threshold == 50_KiB);
  CHECK(rate.queue == 256_KiB);
  CHECK(parse("port_flap", "a--b", {{"period", "2 s"}, {"count", "10"}}).count == 10);
  CHECK(parse("daemon_hang", "rtsw:0", {{"daemon", "zebra"}}).daemon == "zebra");
}

TEST_CASE("every fault is written down so that it reads back") {
  for (const auto& [kind, target, options] :
       std::vector<std::tuple<std::string, std::string, Options>>{
           {"link_lossy", "a->b", {{"rate", "0.123456789%"}, {"bucket", "1/2"}, {"class", "0"}}},
           {"dead_link", "a--b", {}},
           {"ecn_mark", "a->b", {{"rate", "0.5"}, {"seed", "4294967295"}}},
           {"delay", "a->b", {{"delay", "1.5 ms"}, {"jitter", "1 us"}}},
           {"jitter", "a->b", {{"jitter", "10 s"}}},
           {"corrupt", "a->b", {{"rate", "0.1%"}}},
           {"reorder", "a->b", {{"rate", "3%"}, {"delay", "77 us"}}},
           {"duplicate", "a->b", {{"rate", "1"}}},
           {"link_degraded", "a->b", {{"rate", "1 Mbps"}, {"queue", "9 kB"}, {"ecn", "3 kB"}}},
           {"link_down", "a--b", {}},
           {"port_flap", "a--b", {{"period", "20 ms"}, {"count", "3"}}},
           {"blackhole", "ctsw:0", {{"to", "10.0.0.0/31"}}},
           {"daemon_kill", "ctsw:0", {{"daemon", "bfdd"}}},
           {"daemon_stop", "ctsw:0", {}},
           {"daemon_hang", "ctsw:0", {}},
           {"switch_down", "ctsw:0", {}},
           {"icmp_ratelimit", "ctsw:0", {{"interval", "50"}}}}) {
    const FaultSpec spec = parse(kind, target, options);
    CAPTURE(kind);
    CHECK(to_text(spec.kind) == kind);
    CHECK(parse(kind, target, options_of(spec)) == spec);
  }
}

TEST_CASE("what is wrong with a fault is said, all at once") {
  CHECK(has(refusal("link_losy", "a->b"), "did you mean \"link_lossy\"?"));
  CHECK(has(refusal("", "a->b"), "unknown fault kind"));
  CHECK(has(refusal("link_lossy", ""), "needs a target"));
  CHECK(has(refusal("link_lossy", "a->b", {{"bukcet", "1/2"}}), "did you mean \"bucket\"?"));
  CHECK(has(refusal("link_lossy", "a->b", {{"|", "1"}}), "no option"));
  CHECK(has(refusal("link_down", "a--b", {{"rate", "1%"}}), "takes none"));
  CHECK(has(refusal("link_lossy", "a->b", {{"rate", "1%"}, {"rate", "2%"}}), "twice"));
  CHECK(has(refusal("delay", "a->b"), "needs --delay"));
  CHECK(has(refusal("port_flap", "a--b", {{"period", "1 s"}}), "needs --count"));
  CHECK(has(refusal("blackhole", "a"), "needs --to"));
  const std::string two = refusal("link_lossy", "a->b", {{"rate", "2"}, {"class", "64"}});
  CHECK(has(two, "--rate"));
  CHECK(has(two, "--class"));
  for (const char* share : {"0", "-1%", "101%", "1e-7", "nan", "inf", "1 %%", "", "%", "1kg"})
    CHECK_MESSAGE(has(refusal("link_lossy", "a->b", {{"rate", share}}), "--rate"), share);
  for (const char* bucket : {"", "3", "3/", "/64", "0/64", "65/64", "1/65537", "1/2/3", "-1/4"})
    CHECK_MESSAGE(has(refusal("link_lossy", "a->b", {{"bucket", bucket}}), "--bucket"), bucket);
  for (const char* delay : {"5", "0 s", "11 s", "-1 ms", "1 ps"})
    CHECK_MESSAGE(has(refusal("delay", "a->b", {{"delay", delay}}), "--delay"), delay);
  for (const char* rate : {"1%", "0 bps", "7 kbps", "101 Gbps"})
    CHECK_MESSAGE(has(refusal("link_degraded", "a->b", {{"rate", rate}}), "--rate"), rate);
  CHECK(has(refusal("port_flap", "a--b", {{"period", "1 ms"}, {"count", "1"}}), "--period"));
  CHECK(has(refusal("port_flap", "a--b", {{"period", "1 s"}, {"count", "10001"}}), "--count"));
  CHECK(has(refusal("daemon_kill", "a", {{"daemon", "bgp"}}), "did you mean \"bgpd\"?"));
  CHECK(has(
      refusal("link_degraded", "a->b", {{"rate", "1 Gbps"}, {"queue", "4 KiB"}, {"ecn", "8 KiB"}}),
      "no packet would be marked"));
}

TEST_CASE("targets: directions, cables, ports, nodes") {
  const Net net = make_net();
  const FaultTarget direction = find(net, parse("link_lossy", "ctsw:1->rtsw:0"));
  REQUIRE(direction.sites.size() == 1);
  CHECK(direction.entities == std::vector<std::string>{"ctsw:1->rtsw:0"});
  CHECK(direction.sites[0].netns == "weft-spec-ctsw-1");
  const FaultTarget cable = find(net, parse("link_lossy", "ctsw:1--rtsw:0"));
  REQUIRE(cable.sites.size() == 2);
  CHECK(cable.sites[0].netns != cable.sites[1].netns);
  CHECK(cable.sites[0].end.peer() == cable.sites[1].end);
  CHECK(find(net, parse("link_lossy", "rtsw:0--ctsw:1")).entities == cable.entities);
  const FaultTarget node = find(net, parse("switch_lossy", "ctsw:1"));
  CHECK(node.entities == std::vector<std::string>{"ctsw:1"});
  CHECK(node.sites.size() == 2);                                       // to both racks
  CHECK(find(net, parse("link_down", "ctsw:1/0")).sites.size() == 2);  // a port is its cable

  CHECK(has(not_found(net, parse("switch_lossy", "ctsw:7")), "ctsw:7"));
  CHECK(has(not_found(net, parse("link_lossy", "ctsw:1->ctsw:0")), "ctsw"));
  CHECK(has(not_found(net, parse("link_down", "ctsw:1->rtsw:0")), "a cable \"a--b\""));
  CHECK(has(not_found(net, parse("delay", "ctsw:1", {{"delay", "1 ms"}})), "a direction"));
  CHECK(has(not_found(net, parse("daemon_kill", "host:0")), "does not work on"));
  CHECK(has(not_found(net, parse("switch_down", "ctsw:1--rtsw:0")), "a switch"));
  CHECK(find(net, parse("icmp_ratelimit", "host:0")).entities.size() == 1);
}

TEST_CASE("destinations of a black hole") {
  const Net net = make_net();
  const auto of = [&](const char* to) {
    return find(net, parse("blackhole", "ctsw:0", {{"to", to}}));
  };
  CHECK(ipv4_text(of("10.0.0.2").destination) == "10.0.0.2");
  CHECK(of("10.0.0.2").prefix_length == 32);
  CHECK(ipv4_text(of("10.0.0.3/31").destination) == "10.0.0.2");
  CHECK(of("10.0.0.3/31").prefix_length == 31);
  CHECK(ipv4_text(of("nic:1").destination) == "10.0.0.2");
  CHECK(ipv4_text(of("host:1").destination) == "10.0.0.2");
  CHECK(of("rtsw:1").destination != 0);
  for (const char* to :
       {"10.0.0.2/0", "10.0.0.2/33", "10.0.0.2/", "10.0.0", "host:9", "10.0.0.2/x"})
    CHECK_MESSAGE(not_found(net, parse("blackhole", "ctsw:0", {{"to", to}})) != "found", to);
}

TEST_CASE("help names every option and kind") {
  for (std::size_t i = 0; i < fault_kind_count; ++i) {
    const std::string text = describe(static_cast<FaultKind>(i));
    CHECK(text.starts_with(to_text(static_cast<FaultKind>(i))));
    CHECK(text.find("on a") != std::string::npos);
  }
  for (const FaultOptionHelp& option : fault_option_help()) CHECK_FALSE(option.help.empty());
}

}  // namespace
}  // namespace weft::adapt::lab
