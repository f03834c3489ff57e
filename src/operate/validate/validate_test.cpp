// Plans against what they promise, and verdicts against planted faults.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "base/text.hpp"
#include "model/formats/test_fabric.hpp"
#include "operate/validate/judge.hpp"
#include "operate/validate/superbench.hpp"

namespace weft::operate::validate {
namespace {

using model::Fabric;
using model::LinkId;
using model::NodeId;
using model::testing::make_fabric;

RoundOptions all_idle(const Fabric& fabric) {
  return {
      .is_idle = std::vector<bool>(fabric.hosts().size(), true), .is_reserved = {}, .state = {}};
}

// Every promise but coverage: paths lead from source to destination over live links and are
// shortest; no link, and no NIC's side, is used twice in a round. Returns crossings by link.
std::map<LinkId, std::uint32_t> check_rounds(const Fabric& fabric, const RoundOptions& options,
                                             const Rounds& rounds) {
  auto router = route::Router::create(fabric, {}, 1).value();
  router.set_state(options.state);
  const model::LiveView live(fabric, options.state);
  std::map<LinkId, std::uint32_t> count;
  std::set<std::pair<std::uint32_t, LinkId>> used;
  std::size_t wrong = 0;
  for (const Flow& flow : rounds.flows) {
    NodeId at = flow.src;
    for (const LinkId link : rounds.path(flow)) {
      wrong += fabric.from(link) != at || !live.usable(link) ? 1 : 0;
      wrong += used.emplace(flow.round, link).second ? 0 : 1;
      at = fabric.to(link);
      ++count[link];
    }
    route::Path shortest;
    REQUIRE(router.append_udp_path(flow.src, flow.dst, {50000, 4791}, shortest));
    wrong += at != flow.dst || shortest.size() != flow.path_size ? 1 : 0;
    const auto idle = [&](NodeId nic) {
      return options.is_idle[fabric.role_index(fabric.host_of(nic))];
    };
    wrong += idle(flow.src) && idle(flow.dst) ? 0 : 1;
  }
  CHECK(wrong == 0);
  return count;
}

constexpr const char* zone = "{generator: ai_zone, racks: 12, spines: 18}";
constexpr const char* region =
    "{generator: three_tier, pods: 8, racks: 192, oversubscription: 7}";  // 3,072 hosts

TEST_CASE("every link three times, in as few rounds as can be") {
  for (const char* yaml :
       {zone, region, "{generator: ai_zone, racks: 4, spines: 4, uplinks_per_spine: 2}",
        "{generator: rail_optimized, groups: 4, hosts_per_group: 8, spines: 4}",
        "{generator: hpn, pods: 1, segments: 3, hosts_per_segment: 4}"}) {
    CAPTURE(yaml);
    const Fabric fabric = make_fabric(yaml);
    const RoundOptions options = all_idle(fabric);
    const auto rounds = plan_rounds(fabric, options);
    REQUIRE(rounds.has_value());
    const auto count = check_rounds(fabric, options, *rounds);
    CHECK(rounds->count == rounds->least);
    CHECK(rounds->uncovered.empty());
    std::size_t links = 0, below = 0;
    for (const LinkId link : fabric.links())
      if (fabric.on_wire(link)) {
        ++links;
        const auto it = count.find(link);
        below += it == count.end() || it->second < 3 ? 1 : 0;
      }
    CHECK(links == rounds->covered);
    CHECK(below == 0);
  }
}

TEST_CASE("dead cables and busy hosts: what cannot be crossed is listed with its reason") {
  const Fabric fabric = make_fabric(region);
  Rng rng(5);
  RoundOptions options = all_idle(fabric);
  for (std::size_t c = 0; c < fabric.cable_count(); ++c)
    if (fabric.on_wire(forward(model::CableId(c))) && rng.uniform() < 0.02)
      options.state.set(forward(model::CableId(c)), {.health = model::Health::down});
  // Under sanitizers the second alone.
  for (std::uint64_t idle = 2 - test_effort(2); idle < 2; ++idle) {
    if (idle == 1)
      for (std::size_t h = 0; h < options.is_idle.size(); ++h)
        options.is_idle[h] = rng.uniform() < 0.3;
    const auto rounds = plan_rounds(fabric, options);
    REQUIRE(rounds.has_value());
    auto count = check_rounds(fabric, options, *rounds);
    MESSAGE(fmt::format("{} rounds, at least {}; {} flows, {} links covered, {} not", rounds->count,
                        rounds->least, rounds->flows.size(), rounds->covered,
                        rounds->uncovered.size()));
    CHECK(rounds->count <= rounds->least + 1);
    std::set<LinkId> listed;
    const model::LiveView live(fabric, options.state);
    for (const auto& gap : rounds->uncovered) {
      listed.insert(gap.link);
      CHECK(gap.crossings == count[gap.link]);
      const bool is_dead = !live.usable(gap.link) || !live.usable(reverse(gap.link));
      CHECK((gap.why == Gap::down) == is_dead);
    }
    for (const LinkId link : fabric.links())
      if (fabric.on_wire(link) && count[link] < 3) CHECK(listed.contains(link));
  }
}

TEST_CASE("no flow crosses a link that a running job may use") {
  const Fabric fabric = make_fabric(region);
  RoundOptions options = all_idle(fabric);
  // Two racks of one pod, half a rack of another pod, and a job inside one rack.
  const std::vector<NodeId> wide{fabric.hosts()[0], fabric.hosts()[1], fabric.hosts()[2],
                                 fabric.hosts()[3], fabric.hosts()[400]};
  const std::vector<NodeId> near{fabric.hosts()[800], fabric.hosts()[801]};
  options.is_reserved.assign(fabric.cable_count(), false);
  for (const auto* job : {&wide, &near}) {
    const std::vector<bool> reserved = cables_of_job(fabric, *job);
    for (std::size_t c = 0; c < reserved.size(); ++c)
      if (reserved[c]) options.is_reserved[c] = true;
    for (const NodeId host : *job) options.is_idle[fabric.role_index(host)] = false;
  }
  const auto rounds = plan_rounds(fabric, options);
  REQUIRE(rounds.has_value());
  const auto count = check_rounds(fabric, options, *rounds);
  auto router = route::Router::create(fabric, {}, 1).value();
  std::size_t shared = 0;
  route::Path path;
  for (const auto* job : {&wide, &near})
    for (const NodeId a : *job)
      for (const NodeId b : *job)
        for (std::uint16_t port = 50000; port < 50100; ++port) {
          if (a == b) continue;
          path.clear();
          REQUIRE(router.append_udp_path(fabric.nics_of(a)[port % 8],
                                         fabric.nics_of(b)[port / 8 % 8], {port, 4791}, path));
          for (const LinkId link : path) shared += count.contains(link) ? 1 : 0;
        }
  CHECK(shared == 0);
  // The job inside a rack leaves that rack's uplinks alone, but no host there is idle.
  CHECK(std::ranges::count(rounds->uncovered, Gap::no_idle_host, &Rounds::Uncovered::why) ==
        2 * 16);
}

TEST_CASE("source ports lead flows over their paths") {
  const Fabric fabric = make_fabric(zone);
  auto rounds = plan_rounds(fabric, all_idle(fabric)).value();
  auto router = route::Router::create(fabric, {}, 1).value();
  CHECK(choose_ports(router, rounds) == 0);
  for (const Flow& flow : rounds.flows) {
    route::Path path;
    REQUIRE(router.append_udp_path(flow.src, flow.dst, {flow.source_port, 4791}, path));
    CHECK(std::ranges::equal(path, rounds.path(flow)));
  }
  const std::string csv = to_csv(fabric, rounds);
  const auto again = read_csv(fabric, csv, "plan.csv");
  REQUIRE(again.has_value());
  CHECK(again->links == rounds.links);
  CHECK(again->count == rounds.count);
}

// Rates as the slowest of a flow's parts leaves them, with normal noise.
Measured measure(const Fabric& fabric, const Rounds& rounds, const std::map<LinkId, double>& links,
                 const std::map<NodeId, double>& hosts, double noise, Rng& rng) {
  Measured out;
  const auto share = [](const auto& of, auto key) {
    const auto it = of.find(key);
    return it == of.end() ? 1.0 : it->second;
  };
  for (std::uint32_t f = 0; f < rounds.flows.size(); ++f) {
    const Flow& flow = rounds.flows[f];
    double left =
        std::min(share(hosts, fabric.host_of(flow.src)), share(hosts, fabric.host_of(flow.dst)));
    for (const LinkId link : rounds.path(flow)) left = std::min(left, share(links, link));
    const double normal =
        std::sqrt(-2 * std::log(1 - rng.uniform())) * std::cos(6.283185307179586 * rng.uniform());
    out[f] = 392 * left * std::exp(noise * normal);  // of 400 Gbps, as perftest reports
  }
  return out;
}

TEST_CASE("hosts at -5 % and links at -30 % are found at 2 % noise, and nothing else") {
  const Fabric fabric = make_fabric(region);
  const auto rounds = plan_rounds(fabric, all_idle(fabric)).value();
  std::size_t right = 0, wrong = 0, planted = 0;
  for (std::uint64_t seed = 1; seed <= test_effort(3); ++seed) {
    Rng rng(seed);
    std::map<LinkId, double> links;
    std::map<NodeId, double> hosts;
    while (links.size() < 13) {
      const LinkId link(static_cast<std::uint32_t>(rng.below(fabric.link_count())));
      if (fabric.on_wire(link)) links[link] = 0.7;
    }
    for (const NodeId host : fabric.hosts())
      if (rng.uniform() < 0.01) hosts[host] = 0.95;
    const Verdicts found = judge(fabric, rounds, measure(fabric, rounds, links, hosts, 0.02, rng));
    planted += links.size() + hosts.size();
    for (const auto& link : found.links) ++(links.contains(link.link) ? right : wrong);
    for (const auto& host : found.hosts) ++(hosts.contains(host.host) ? right : wrong);
    CHECK(found.noise == approx(0.02).epsilon(0.1));
    CHECK(found.share == approx(0.98).epsilon(0.01));
  }
  MESSAGE(fmt::format("{} of {} found, {} wrong", right, planted, wrong));
  CHECK(static_cast<double>(right) >= 0.99 * static_cast<double>(planted));
  CHECK(static_cast<double>(wrong) <= 0.01 * static_cast<double>(right));
}

TEST_CASE("a host that is slow as a whole is named, and not its cables") {
  const Fabric fabric = make_fabric(zone);
  const auto rounds = plan_rounds(fabric, all_idle(fabric)).value();
  Rng rng(2);
  const NodeId host = fabric.hosts()[5];
  Measured measured = measure(fabric, rounds, {}, {{host, 0.6}}, 0.01, rng);
  measured.erase(0);
  const Verdicts found = judge(fabric, rounds, measured);
  CHECK(found.links.empty());
  REQUIRE(found.hosts.size() == 1);
  CHECK(found.hosts[0].host == host);
  CHECK(found.hosts[0].share == approx(0.6).epsilon(0.05));
  CHECK(found.missing == 1);
  CHECK(found.unjudged.empty());
}

TEST_CASE("a fabric that is slow as a whole is not sound, however alike its flows are") {
  const Fabric fabric = make_fabric(zone);
  const auto rounds = plan_rounds(fabric, all_idle(fabric)).value();
  const std::size_t flows = rounds.flows.size();
  for (const double left : {0.0, 0.12, 0.25, 0.8}) {
    Rng rng(4);
    std::map<NodeId, double> hosts;
    for (const NodeId host : fabric.hosts()) hosts[host] = left;
    const Verdicts found = judge(fabric, rounds, measure(fabric, rounds, {}, hosts, 0.01, rng));
    CHECK(found.below_plan);
    CHECK(found.low == flows);
    CHECK(!found.is_sound());
    REQUIRE(found.hosts.size() == fabric.hosts().size());
    // Of the plan; nothing is measured as 1e-6.
    CHECK(found.hosts[0].share == approx(0.98 * left).epsilon(0.02).scale(1e-3));
  }
  Rng rng(5);
  const Measured good = measure(fabric, rounds, {}, {}, 0.01, rng);
  CHECK(judge(fabric, rounds, good).is_sound());
  CHECK(judge(fabric, rounds, good, 0.99).below_plan);
}

TEST_CASE("hosts at half rate make a fabric unsound, also where most flows meet one") {
  const Fabric fabric = make_fabric(zone);
  const auto rounds = plan_rounds(fabric, all_idle(fabric)).value();
  const std::size_t count = fabric.hosts().size();
  for (std::size_t slow = 1; slow <= count / 2; ++slow) {
    Rng rng(slow);
    std::map<NodeId, double> hosts;
    for (std::size_t h = 0; h < slow; ++h) hosts[fabric.hosts()[h * count / slow]] = 0.5;
    const Measured measured = measure(fabric, rounds, {}, hosts, 0.01, rng);
    const auto low = std::ranges::count_if(
        rounds.flows, [&](const Flow& flow) {  // without the noise, which is far from the limit
          return hosts.contains(fabric.host_of(flow.src)) ||
                 hosts.contains(fabric.host_of(flow.dst));
        });
    const Verdicts found = judge(fabric, rounds, measured);
    CAPTURE(slow);
    CHECK(found.low == static_cast<std::size_t>(low));
    CHECK(!found.is_sound());
  }
}

TEST_CASE("slow flows that no link and no host explains are listed") {
  const Fabric fabric = make_fabric(zone);
  const auto rounds = plan_rounds(fabric, all_idle(fabric)).value();
  Rng rng(6);
  Measured measured = measure(fabric, rounds, {}, {}, 0.01, rng);
  measured[7] = 100;
  const Verdicts found = judge(fabric, rounds, measured);
  CHECK(found.odd == std::vector<std::uint32_t>{7});
  CHECK(found.low == 1);
  CHECK(!found.below_plan);
  CHECK(!found.is_sound());
  CHECK(judge(fabric, rounds, measured, 0.25).is_sound());  // 100 of 400
}

TEST_CASE("the one other host of a rack is not accused with a slow one") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 6, spines: 4}");
  REQUIRE(fabric.hosts().size() == 12);
  const auto rounds = plan_rounds(fabric, all_idle(fabric)).value();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    const NodeId host = fabric.hosts()[seed % 12];
    const Verdicts found =
        judge(fabric, rounds, measure(fabric, rounds, {}, {{host, 0.93}}, 0.01, rng));
    REQUIRE(found.hosts.size() == 1);
    CHECK(found.hosts[0].host == host);
    CHECK(found.links.empty());
  }
}

TEST_CASE("a link whose flows have no results is not passed over") {
  const Fabric fabric = make_fabric(zone);
  const auto rounds = plan_rounds(fabric, all_idle(fabric)).value();
  Rng rng(3);
  const Measured whole = measure(fabric, rounds, {}, {}, 0.01, rng);
  CHECK(judge(fabric, rounds, whole).unjudged.empty());
  const LinkId dead = *std::ranges::find_if(
      rounds.links, [&](LinkId l) { return fabric.is_switch(fabric.from(l)); });
  Measured measured = whole;
  for (std::uint32_t f = 0; f < rounds.flows.size(); ++f)
    if (const auto path = rounds.path(rounds.flows[f]); std::ranges::find(path, dead) != path.end())
      measured.erase(f);
  std::vector<LinkId> expected;
  for (const LinkId link : fabric.links()) {
    std::size_t planned = 0, done = 0;
    for (std::uint32_t f = 0; f < rounds.flows.size(); ++f) {
      const auto path = rounds.path(rounds.flows[f]);
      const auto times = static_cast<std::size_t>(std::ranges::count(path, link));
      planned += times;
      done += measured.contains(f) ? times : 0;
    }
    if (planned > 0 && done < 2) expected.push_back(link);
  }
  CHECK(std::ranges::find(expected, dead) != expected.end());
  CHECK(judge(fabric, rounds, measured).unjudged == expected);
}

TEST_CASE("results that cannot be those of the plan are refused") {
  const Fabric fabric = make_fabric(zone);
  const auto rounds = plan_rounds(fabric, all_idle(fabric)).value();
  const auto code = [&](const Measured& measured) {
    return check_results(fabric, rounds, measured, "r.csv").error().code;
  };
  CHECK(check_results(fabric, rounds, {{0, 391}}, "r.csv").has_value());
  CHECK(code({}) == Errc::infeasible);
  CHECK(code({{static_cast<std::uint32_t>(rounds.flows.size()), 1}}) == Errc::unknown);
  CHECK(code({{0, 391'000}}) == Errc::value);  // Mbps
}

// Rates as SuperBench's ib-traffic names them, for the pairs that a script lists.
std::string run_script(const std::string& script) {
  std::vector<std::string> hosts;
  std::string out = R"({"node": "host-0", "gpu-copy/x": 3, "y": null)", nic;
  std::size_t line = 0;
  bool is_hosts = false;
  for (const std::string_view row : split(script, '\n')) {
    if (row.starts_with("cat > ")) {
      is_hosts = row.starts_with("cat > hosts.ini");
      nic = row.starts_with("cat > nic") ? row.substr(6, row.find('.') - 6) : "";
      line = 0;
    } else if (row == "END") {
      is_hosts = false;
      nic.clear();
    } else if (is_hosts && row != "[all]") {
      hosts.emplace_back(row);
    } else if (!nic.empty()) {
      std::size_t pair = 0;
      for (const std::string_view one : split(row, ';')) {
        const auto ends = split(one, ',');
        const std::string server = hosts.at(std::stoul(std::string(ends.at(0)))),
                          client = hosts.at(std::stoul(std::string(ends.at(1))));
        const bool has_failed = server == "host-11";
        out += fmt::format(R"(, "ib-traffic:{}/ib_write_bw_8388608_cpu-to-cpu_{}_{}:{}_{}:0": {})",
                           nic, line, pair++, server, client,
                           has_failed           ? -1
                           : client == "host-3" ? 20
                                                : 48.75);
      }
      ++line;
    }
  }
  return out + "}\n{\"node\": \"host-1\"}\n";
}

TEST_CASE("SuperBench: its metrics are the flows of the plan, and other hosts are refused") {
  const Fabric fabric =
      make_fabric("{generator: ai_zone, racks: 4, hosts_per_rack: 4, gpus_per_host: 2, spines: 4}");
  const auto rounds = plan_rounds(fabric, all_idle(fabric)).value();
  const std::string script = superbench_script(fabric, rounds);
  CHECK(script.find("[all]\nhost-0\nhost-1\nhost-10\n") != std::string::npos);
  CHECK(script.find("ib_dev: ${DEV}1, direction: cpu-to-cpu") != std::string::npos);
  const std::string results = run_script(script);
  const auto measured = read_superbench(fabric, rounds, results, "s.jsonl");
  REQUIRE_MESSAGE(measured.has_value(), (measured ? "" : measured.error().text()));
  std::size_t to_failed = 0;
  for (std::uint32_t f = 0; f < rounds.flows.size(); ++f) {
    const End src = end_of(fabric, rounds.flows[f].src), dst = end_of(fabric, rounds.flows[f].dst);
    const bool is_listed = src.nic == dst.nic && dst.host != "host-11";
    to_failed += src.nic == dst.nic && !is_listed;
    REQUIRE(measured->contains(f) == is_listed);
    if (is_listed) CHECK(measured->at(f) == (src.host == "host-3" ? 160 : 390));
  }
  CHECK(to_failed > 0);
  CHECK(measured->size() + to_failed + left_out_of_superbench(fabric, rounds) ==
        rounds.flows.size());
  const auto refused = [&](std::string text, std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
    return read_superbench(fabric, rounds, text, "s.jsonl").error();
  };
  CHECK(refused(results, ":host-", ":most-").code == Errc::infeasible);
  CHECK(refused(results, "nic0/ib_write_bw_8388608_cpu-to-cpu_0", "nic0/ib_write_bw_1_c_99").code ==
        Errc::unknown);
  CHECK(refused(results, "}", "").code == Errc::parse);
  CHECK(read_superbench(fabric, rounds, "{}", "s.jsonl").error().code == Errc::value);
}

TEST_CASE("files: results of the tools, and refusals with their place") {
  CHECK(
      read_measured(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate\n"
                    " 65536      2243700          0.00               391.92               0.7475\n",
                    "0.txt") == 391.92);
  CHECK(
      read_measured("  1073741824  268435456  float  none  -1  22010  48.78  48.78  0  22100  48.5 "
                    " 48.5  N/A\n",
                    "0.txt") == approx(8 * 48.78));
  CHECK(read_measured(" #bytes  #iterations  BW peak[MB/sec]  BW average[MB/sec]  MsgRate[Mpps]\n"
                      " 65536  2243700  0.00  46720.5  0.7475\n",
                      "0.txt")
            .error()
            .code == Errc::value);
  CHECK(read_measured("Couldn't connect to host-1:18515\n", "7.txt").error().where.file == "7.txt");
  const Fabric fabric = make_fabric(zone);
  const auto refusal = [&](std::string_view text) {
    const auto rounds = read_csv(fabric, text, "p.csv");
    REQUIRE(!rounds.has_value());
    return rounds.error().text();
  };
  CHECK(
      refusal("flow,round,src,dst,path\n0,0,nic:0,nic:16,nic:0->rtsw:0\n").starts_with("p.csv:2:"));
  CHECK(refusal("flow,round,src,dst,path\n0,0,host:0,nic:16,x\n").find("not a NIC") !=
        std::string::npos);
  CHECK(refusal("flow,round,src,dst,path\n3,0,nic:0,nic:16,x\n").find("numbered") !=
        std::string::npos);
  CHECK(read_measured_csv("flow,gbps\n1,2\n1,3\n", "m.csv").error().where.line == 3);
  RoundOptions nobody = all_idle(fabric);
  nobody.is_idle.assign(nobody.is_idle.size(), false);
  CHECK(plan_rounds(fabric, nobody).error().code == Errc::infeasible);
  const Fabric torus = make_fabric("{generator: torus, dimensions: [3, 2], gpus_per_host: 2}");
  CHECK(plan_rounds(torus, all_idle(torus)).error().code == Errc::infeasible);
}

}  // namespace
}  // namespace weft::operate::validate
