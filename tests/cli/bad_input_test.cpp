// Wrong input: exit status 2, the place and what to do on standard error, nothing anywhere else.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "run_weft.hpp"

using namespace weft;
using cli_test::Outcome;
using cli_test::Scratch;

namespace {

constexpr const char* zone =
    "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 8, spines: 4}\n";
constexpr const char* job = "jobs: [{name: j, collective: all_reduce, gpus: 32, bytes: 64 MiB}]\n";

// "weft: error: PLACE: what; what to do", where the place is FILE:LINE:COLUMN.
void check_message(const Outcome& outcome, const std::string& place, const std::string& text) {
  INFO("got: ", outcome.err.substr(0, 500));
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  const bool placed = std::ranges::any_of(split(outcome.err, '\n'), [&](std::string_view line) {
    return line.starts_with("weft: error: " + place + ": ") && line.find("; ") != line.npos;
  });
  CHECK_MESSAGE(placed, "no message at ", place);
  CHECK_MESSAGE(outcome.err.find(text) != std::string::npos, "nothing says: ", text);
}

void check_scenario(const std::string& yaml, const std::string& place, const std::string& text) {
  CAPTURE(yaml.substr(0, 300));
  const Scratch scratch;
  scratch.write("s.yaml", yaml);
  check_message(scratch.run({"run", "s.yaml", "--out", "out"}), place, text);
  CHECK_FALSE(scratch.has("out"));
}

void check_job(const std::string& keys, const std::string& place, const std::string& text) {
  check_scenario(zone + std::string("jobs:\n  - {name: j, collective: all_reduce, ") + keys + "}\n",
                 place, text);
}

void check_flow(const std::string& row, const std::string& place, const std::string& text) {
  CAPTURE(row);
  const Scratch scratch;
  scratch.write("f.yaml", zone);
  scratch.write("f.csv", "id,src,dst,bytes,after,via\na,0,17,64 MB,,\n" + row + "\n");
  check_message(scratch.run({"flows", "--fabric", "f.yaml", "--flows", "f.csv"}), place, text);
}

void check_usage(const std::vector<std::string>& arguments, const std::string& text) {
  CAPTURE(fmt::format("{}", fmt::join(arguments, " ")));
  const Scratch scratch;
  scratch.write("s.yaml", std::string(zone) + job);
  const Outcome outcome = scratch.run(arguments);
  INFO("got: ", outcome.err.substr(0, 500));
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.starts_with("weft: error: "));
  CHECK(outcome.err.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("no command writes over a file that it is given to read") {
  const Scratch scratch;
  scratch.write("in", zone);
  scratch.write("other", zone);
  std::filesystem::create_symlink("in", scratch.path() + "/link");
  std::filesystem::create_hard_link(scratch.path() + "/in", scratch.path() + "/hard");
  const std::string whole = scratch.path() + "/in";
  const std::vector<std::pair<std::vector<std::string>, std::string>> calls{
      {{"snapshot", "export", "in", "--out", whole}, "--out"},
      {{"serve", "--fabric", "in", "--health", "link"}, "--health"},
      {{"validate", "plan", "--fabric", "in", "--out", "./in"}, "--out"},
      {{"validate", "plan", "--fabric", "in", "-o", "hard"}, "--out"},
      {{"triage", "in", "--learn", "in"}, "--learn"},
      {{"replay", "other", "--records", "in", "--page", "hard"}, "--page"},
      {{"straggler", "link", "--ideal", "in"}, "--ideal"},
      {{"explain", "in", "--svg", "in"}, "--svg"},
      {{"export", "in", "--to", "yaml", "-o", "in"}, "--out"},
      {{"sli", "other", "--fabric", "in", "--openslo", "in"}, "--openslo"}};
  for (const auto& [arguments, option] : calls) {
    CAPTURE(fmt::format("{}", fmt::join(arguments, " ")));
    check_message(scratch.run(arguments), option, "name another file");
    CHECK(scratch.read("in") == zone);
  }
  // The same file read twice, and one written anew, are no harm.
  CHECK(scratch.run({"explain", "in", "--svg", "other"}).status == 0);
  CHECK(scratch.read("other").starts_with("<svg"));
}

TEST_CASE("a count is not negative") {
  const Scratch scratch;
  scratch.write("s.yaml", std::string(zone) + job);
  const std::vector<std::vector<std::string>> calls{
      {"place", "--fabric", "s.yaml", "--gpus"},
      {"place", "--fabric", "s.yaml", "--gpus", "8", "--batch"},
      {"run", "s.yaml", "--threads"}};
  for (const std::vector<std::string>& call : calls) {
    std::vector<std::string> arguments = call;
    arguments.back() += "=-4";
    CAPTURE(fmt::format("{}", fmt::join(arguments, " ")));
    const Outcome outcome = scratch.run(arguments);
    CHECK(outcome.status == 2);
    CHECK(outcome.err.contains(call.back()));
    CHECK(outcome.err.contains("-4 is negative"));
  }
}

TEST_CASE("an option that would be ignored is refused") {
  const Scratch scratch;
  scratch.write("s.yaml", std::string(zone) + job);
  scratch.write("plan.jsonl", "");
  scratch.write("d.csv", "");
  const std::vector<std::pair<std::string, std::string>> calls{
      {"probe --twin --fabric s.yaml --plan plan.jsonl --count 3", "--count"},
      {"probe --twin --fabric s.yaml --plan plan.jsonl --one-way", "--one-way"},
      {"explain s.yaml --svg f.svg --prices p.csv", "--prices"},
      {"explain s.yaml --svg f.svg --json", "--json"},
      {"place --fabric s.yaml --gpus 8 --gpu banana", "--gpu"},
      {"place --fabric s.yaml --gpus 8 --batch 3", "--batch"},
      {"place --fabric s.yaml --gpus 8 -o ranks", "--rankfile"},
      {"te s.yaml --only-hit", "--fail"},
      {"te w.csv --demands d.csv --load 0.5", "--load"}};
  for (const auto& [call, option] : calls) {
    CAPTURE(call);
    std::vector<std::string> arguments;
    for (const std::string_view word : split(call, ' ')) arguments.emplace_back(word);
    const Outcome outcome = scratch.run(arguments);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK_MESSAGE(outcome.err.contains(option), outcome.err);
  }
}

TEST_CASE("a flow between tenants has one family, and an end that is a tenant's") {
  const Scratch scratch;
  scratch.write(
      "t.yaml",
      "tenants: [{name: shop, addresses: [10.20.0.0/24], interfaces: [\"tap-shop-*\"]}]\n");
  const auto error = [&](const char* flow) {
    const Outcome outcome = scratch.run({"tenants", "t.yaml", "--flow", flow});
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK(error("10.20.0.5,fd00::1,443/tcp").contains("two addresses of one family"));
  CHECK(error("8.8.8.8,9.9.9.9,22/tcp").contains("neither end belongs to a tenant"));
  CHECK(scratch.run({"tenants", "t.yaml", "--flow", "10.20.0.5,10.20.0.6,443/tcp"}).status == 0);
  CHECK(scratch.run({"tenants", "t.yaml", "--to", "tokens"})
            .err.contains("no tenant has identities"));
}

TEST_CASE("a number is finite") {
  const Scratch scratch;
  scratch.write("s.yaml", std::string(zone) + job);
  const std::vector<std::vector<std::string>> calls{
      {"scale", "s.yaml", "--capacity"},
      {"scale", "s.yaml", "--capacity", "1", "--at"},
      {"te", "s.yaml", "--load"},
      {"regions", "s.yaml", "--effort"},
      {"probe", "plan", "--fabric", "s.yaml", "--rate-max"},
      {"forecast", "s.yaml", "--level"},
      {"spares", "s.yaml", "--years"},
      {"localise", "s.yaml", "--loss"}};
  for (const std::vector<std::string>& call : calls)
    for (const char* value : {"nan", "-nan", "inf", "-inf"}) {
      std::vector<std::string> arguments = call;
      arguments.back() += fmt::format("={}", value);
      CAPTURE(fmt::format("{}", fmt::join(arguments, " ")));
      const Outcome outcome = scratch.run(arguments);
      CHECK(outcome.status == 2);
      CHECK(outcome.out.empty());
      CHECK(outcome.err.contains(call.back()));
    }
}

TEST_CASE("every command applies --set or refuses it") {
  const Scratch scratch;
  scratch.write("s.yaml", std::string(zone) + job);
  scratch.write("l.csv", "src,dst,capacity\nA,B,10 Gbps\n");
  scratch.write("empty", "");
  // What reads a scenario or a fabric, up to there: the key that --set adds is unknown.
  const std::map<std::string, std::string> reading{{"run", "s.yaml"},
                                                   {"flows", "--fabric s.yaml --flows empty"},
                                                   {"perf", "all_reduce --fabric s.yaml"},
                                                   {"trace", "empty --fabric s.yaml"},
                                                   {"sweep", "s.yaml"},
                                                   {"failures", "s.yaml"},
                                                   {"infer", "s.yaml"},
                                                   {"why", "s.yaml"},
                                                   {"replay", "s.yaml --from empty"},
                                                   {"explain", "s.yaml"},
                                                   {"export", "s.yaml --to yaml"},
                                                   {"place", "--fabric s.yaml --gpus 8"},
                                                   {"spares", "s.yaml"},
                                                   {"life", "s.yaml"},
                                                   {"advise", "s.yaml"},
                                                   {"rehearse", "s.yaml"},
                                                   {"storm", "--fabric s.yaml --out o"},
                                                   {"sli", "empty --fabric s.yaml"},
                                                   {"localise", "empty --fabric s.yaml"},
                                                   {"triage", "empty --fabric s.yaml"},
                                                   {"te", "s.yaml"},
                                                   {"store", "accept s.yaml --store s.db"}};
  // What needs more than files to come that far; no use of --set is left unread there either.
  const std::set<std::string> live{"agent", "colltrace", "discover", "gnmi", "lab",     "poll",
                                   "traps", "probe",     "serve",    "up",   "validate"};
  const std::string help = scratch.run({"--help"}).out;
  std::size_t found = 0;
  for (const std::string_view line : split(help, '\n')) {
    if (!line.starts_with("  ") || line.starts_with("  -") || line.starts_with("   ")) continue;
    const std::string command(line.substr(2, line.find(' ', 2) - 2));
    CAPTURE(command);
    ++found;
    if (live.contains(command)) continue;
    std::vector<std::string> arguments{command};
    if (const auto known = reading.find(command); known != reading.end()) {
      for (const std::string_view part : split(known->second, ' ')) arguments.emplace_back(part);
      arguments.insert(arguments.end(), {"--set", "no.such=1"});
      const Outcome outcome = scratch.run(arguments);
      INFO(outcome.err);
      CHECK(outcome.status == 2);
      CHECK(outcome.err.contains("unknown key \"no\""));
      continue;
    }
    CHECK_FALSE(scratch.run({command, "--help"}).out.contains("--set"));
    CHECK(scratch.run({command, "--set", "no.such=1"}).status == 2);
  }
  CHECK(found > 45);
  check_usage({"te", "l.csv", "--set", "no.such=1"}, "--set: it does not apply to a backbone");
  check_usage({"--set", "no.such=1", "init"}, "--set: it does not apply to weft init");
  check_usage({"version", "--set", "no.such=1"}, "--set: it does not apply to weft version");
  check_usage({"init", "--json"}, "--json: it does not apply to weft init");
  check_usage({"export", "zone.yaml", "--to", "dot", "--json"},
              "--json: it does not apply to weft export");
  check_usage({"triage", "r.jsonl", "--fabric", "zone.yaml", "--reference", "2026-01-01T00:00:00Z"},
              "--reference: it applies to raw syslog alone");
  // A section that the command leaves out.
  check_usage({"place", "--fabric", "s.yaml", "--gpus", "8", "--set", "jobs.0.bytes=1 B"},
              "--set jobs.0.bytes: this command does not read \"jobs\"");
}

TEST_CASE("--set of a sub-command, and in front of a file") {
  // Sub-commands beside one that reads a scenario: refused before anything is looked at,
  // wherever the option stands.
  for (const char* sub : {"store backup new.tar --store s.db",
                          "store restore b.tar --store new.tar", "store info b.tar", "lab down",
                          "lab heal all", "validate run --plan p.csv --out new.tar"}) {
    CAPTURE(sub);
    std::vector<std::string> arguments{"--set", "no.such=1"};
    for (const std::string_view part : split(sub, ' ')) arguments.emplace_back(part);
    const std::string name = arguments[2] + " " + arguments[3];
    check_usage(arguments, "--set: it does not apply to weft " + name);
    std::ranges::rotate(arguments, arguments.begin() + 2);
    check_usage(arguments, "--set: it does not apply to weft " + name);
  }
  // What stands behind it is the file, not another key.
  check_usage({"explain", "--set", "no.such=1", "s.yaml"}, "unknown key \"no\"");
}

TEST_CASE("wrong quantities are refused where they stand") {
  check_job("gpus: 8, bytes: 64", "s.yaml:3:55", "has no unit");
  check_job("gpus: 8, bytes: NaN", "s.yaml:3:55", "not a number");
  check_job("gpus: 8, bytes: nan B", "s.yaml:3:55", "not a number");
  check_job("gpus: 8, bytes: 1e30", "s.yaml:3:55", "has no unit");
  check_job("gpus: 8, bytes: 1e30 B", "s.yaml:3:55", "out of range");
  check_job("gpus: 8, bytes: -1 B", "s.yaml:3:55", "negative");
  check_job("gpus: 8.5, bytes: 1 B", "s.yaml:3:45", "not a whole number");
  check_job("gpus: 1, bytes: 1 B", "s.yaml:3:45", "not within 2");
  check_job("gpus: 8, repeat: 0, bytes: 1 B", "s.yaml:3:56", "not within 1");
  const std::string rest = std::string("}\n") + job;
  check_scenario("fabric: {generator: ai_zone, racks: 0" + rest, "s.yaml:1:37", "not within 1");
  check_scenario("fabric: {generator: ai_zone, racks: -1" + rest, "s.yaml:1:37", "negative");
  check_scenario("fabric: {generator: ai_zone, racks: 900000" + rest, "s.yaml:1:9", "more than");
}

TEST_CASE("a section or key that is missing, unknown or given twice") {
  check_scenario(job, "s.yaml:1:1", "\"fabric:\" is missing");
  check_scenario(zone, "s.yaml:1:1", "has no jobs");
  check_scenario(std::string(zone) + job + "routing: {qsp: 4}\n", "s.yaml:3:11",
                 "did you mean \"qps\"");
  check_scenario(std::string(zone) + job + "routing: {scheme: minimal}\n", "s.yaml:3:10",
                 "not a dragonfly");
  check_scenario(std::string(zone) + job + "compare: {a: {}, a: {}}\n", "s.yaml:3:18",
                 "duplicate key");
  check_job("gpus: 8, bytes: 1 B, late: [{rank: 8, by: 1 ms}]", "s.yaml:3:74", "not within 0 .. 7");
  check_job("gpus: 8, bytes: 1 B, late: [{rank: 1, by: 1 s}, {rank: 1, by: 2 s}]", "s.yaml:3:94",
            "duplicate entry for rank 1 in late");
}

TEST_CASE("a model that is not there is the one error: its plan's keys are no mistakes") {
  const Scratch scratch;
  scratch.write("s.yaml", zone + std::string("jobs: [{name: t, model: lama3-8b, parallel: {tp: 8}, "
                                             "batch: 32, zero: 3}]\n"));
  const Outcome outcome = scratch.run({"run", "s.yaml"});
  check_message(outcome, "s.yaml:2:25", "did you mean \"llama3-8b\"?");
  CHECK(std::ranges::count(outcome.err, '\n') == 1);
}

TEST_CASE("a job that the fabric cannot hold, a fault on nothing, a fabric that names itself") {
  check_job("gpus: 65, bytes: 1 MiB", "s.yaml:3:45", "64 of 64 are free");
  check_scenario(std::string(zone) + job + "faults: [{kind: link_down, link: rtsw:0--ctsw:9}]\n",
                 "s.yaml:3:34", "choose an index from 0 to 3");
  check_scenario("fabric: {file: s.yaml}\n" + std::string(job), "s.yaml:1:16", "each other");
}

TEST_CASE("a fabric with a link to nowhere, and one in two parts") {
  //  nic:0   nic:1 | nic:2   nic:3
  //      \   /     |     \   /
  //      tor:0     |     tor:1
  const std::string head =
      "fabric:\n"
      "  rate: 400 Gbps\n"
      "  nodes: [{role: nic, count: 4}, {role: tor, count: 2}]\n"
      "  links:\n"
      "    - nic:0..1--tor:0\n";
  const Scratch scratch;
  scratch.write("bad.yaml", head + "    - nic:2..3--tor:2\n");
  check_message(scratch.run({"explain", "bad.yaml"}), "bad.yaml:6:7", "the last one is \"tor:1\"");

  scratch.write("parts.yaml", head + "    - nic:2..3--tor:1\n");
  scratch.write("f.csv", "id,src,dst,bytes\nnear,nic:0,nic:1,1 MB\nfar,nic:1,nic:2,1 MB\n");
  const Outcome outcome = scratch.run({"flows", "--fabric", "parts.yaml", "--flows", "f.csv"});
  CHECK(outcome.status == 1);
  CHECK(outcome.out.find("2 flows, 1 finished") != std::string::npos);
  CHECK(outcome.err.find("flow far (nic:1 to nic:2) did not finish") != std::string::npos);
}

TEST_CASE("deep and long files end in a message, at once") {
  constexpr std::size_t size = 10'000'000;
  check_scenario(std::string(size, '['), "s.yaml:1:1000001", "more than 1000000 values");
  const std::size_t deep = size / 20;
  check_scenario(std::string(deep, '['), "s.yaml:1:51", "nested deeper");  // also a map in each
  check_scenario(std::string(deep, '[') + std::string(deep, ']'), "s.yaml:1:101", "nested deeper");
  std::string block;
  while (block.size() < size) block += "- ";
  check_scenario(block, "s.yaml:1:201", "nested deeper");
}

TEST_CASE("broken flows") {
  check_flow("b,17,0", "f.csv:3:1", "3 cells");
  check_flow("b,17,0,64,,", "f.csv:3:8", "no unit");
  check_flow("b,17,0,1e30 B,,", "f.csv:3:8", "out of range");
  check_flow("b,17,99,1 MB,,", "f.csv:3:6", "from 0 to 63");
  check_flow("b,17,0,1 MB,zz,", "f.csv:3:13", "no flow has the id");
  check_flow("b,17,0,1 MB,b,", "f.csv:3:13", "in a cycle");
  check_flow("b,17,0,1 MB,c,\nc,17,0,1 MB,b,", "f.csv:3:13", "in a cycle");
  check_flow("a,17,0,1 MB,,", "f.csv:3:1", "duplicate id");
  check_flow("b,17,0,1 MB,,ctsw:9", "f.csv:3:14", "from 0 to 3");
}

TEST_CASE("flows without a way are listed, and the exit status says so") {
  const Scratch scratch;
  scratch.write("f.yaml",
                std::string(zone) + "faults: [{kind: switch_down, role: ctsw, count: 4}]\n");
  scratch.write("f.csv", "id,src,dst,bytes\nstuck,0,17,1 MB\nnear,0,8,1 MB\n");
  const Outcome outcome = scratch.run({"flows", "--fabric", "f.yaml", "--flows", "f.csv"});
  CHECK(outcome.status == 1);
  CHECK(outcome.out.find("2 flows, 1 finished") != std::string::npos);
  CHECK(outcome.err.find("flow stuck (nic:0 to nic:17) did not finish") != std::string::npos);
  CHECK(outcome.err.find("flow near") == std::string::npos);
}

TEST_CASE("wrong options") {
  check_usage({"bogus"}, "unknown command \"bogus\"");
  check_usage({"runn", "s.yaml"}, "did you mean \"run\"");
  check_usage({"run"}, "scenario is required");
  check_usage({"run", "s.yaml", "s.yaml"}, "not expected");
  check_usage({"run", "."}, "is a directory");
  check_usage({"run", "s.yaml", "--seed", "-1"}, "negative");
  check_usage({"run", "s.yaml", "--seed", "99999999999999999999"}, "out of range");
  check_usage({"run", "s.yaml", "--set", "routing"}, "no \"=\"");
  check_usage({"run", "s.yaml", "--set", "routing.qps=0"}, "not within 1");
  check_usage({"export", "s.yaml", "--to", "yamll"}, "did you mean \"yaml\"");
  check_usage({"sweep", "s.yaml"}, "the scenario has no \"sweep:\"");
  check_usage({"triage", "s.yaml", "--show-rules"}, "excludes");
  check_usage({"examples", "--all", ".", "--json"}, "excludes");
  check_usage({"perf", "allreduce"}, "did you mean \"all_reduce\"");
  check_usage({"perf", "all_reduce", "-b", "1G", "-e", "1M"}, "no sizes");
  check_usage({"perf", "all_reduce", "-f", "-2"}, "negative");
  check_usage({"perf", "all_reduce", "-f", "nan"}, "not a number");
  check_usage({"perf", "all_reduce", "-f", "2", "-i", "1M"}, "excludes");
  check_usage({"perf", "all_reduce", "-i", "0"}, "makes no progress");
  check_usage({"perf", "all_reduce", "-n", "0"}, "not in range");
  check_usage({"perf", "all_reduce", "-n", "9"}, "8 of 8 are free");
  check_usage({"perf", "all_reduce", "--channels", "2"}, "inside one host");
  check_usage({"perf", "all_reduce", "--compare", "none"}, "No such file");
  check_usage({"perf", "all_reduce", "--compare", "/dev/zero"}, "larger than");
}
