// A lossy link, from what it does to a job and to probes up to the case: the traces of the job's
// ranks and the probes are judged on their own, and triage joins what both say.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "observe/colltrace/dissent.hpp"
#include "observe/colltrace/records.hpp"
#include "observe/colltrace/test_edges.hpp"
#include "observe/localise/localise.hpp"
#include "operate/triage/report.hpp"
#include "operate/triage/triage.hpp"

using namespace weft;
using model::EventKind;
using observe::colltrace::test::Bad;
using observe::colltrace::test::EdgeRun;

namespace {

// What the localiser says of the probes, as the service notes it: again and again.
void add_probe_records(const EdgeRun& run, Timestamp at, model::RecordSet& out) {
  const observe::localise::Localiser localiser(run.fabric());
  const observe::localise::Report report = localiser.run(run.probes());
  REQUIRE(report.verdicts.size() == 1);
  const auto part =
      model::find_entity(run.fabric(), {name(run.fabric(), report.verdicts[0].entity), {}});
  REQUIRE(part.has_value());
  for (int i = 0; i < 4; ++i) {
    model::Record row{
        .entity = *part, .kind = EventKind::probe_loss, .source = model::Source::probe};
    row.t = row.until = row.received = {at.ns + i * ns_per_s};
    row.value = report.verdicts[0].loss;
    row.id = out.add_id(fmt::format("probe-{}", i));
    out.rows.push_back(row);
  }
}

model::RecordSet job_records(const EdgeRun& run) {
  observe::colltrace::JobBuilder builder;
  std::vector<std::string> files;
  for (std::size_t i = 0; i < run.traces().size(); ++i) files.push_back(fmt::format("{}.ring", i));
  REQUIRE(add_rings(run.traces(), files, builder).has_value());
  const observe::colltrace::Job job = builder.finish();
  const auto gpus = run.gpus();
  const auto network = judge_network(
      job, analyse(job, {}), {.fabric = run.fabric(), .gpus = gpus, .probes = &run.probes()});
  REQUIRE(network.has_value());
  return to_records(run.fabric(), job, "llama", *network);
}

}  // namespace

TEST_CASE("a lossy cable and a job that it slows are one case, which names both") {
  for (const Bad bad : {Bad::up, Bad::down, Bad::card}) {
    const EdgeRun run({.bad = bad, .shows_loss = 1}, 17);
    model::RecordSet records = job_records(run);
    REQUIRE(records.rows.size() == 1);
    const Timestamp at = records.rows[0].t;
    add_probe_records(run, at, records);
    // A cable elsewhere that goes down at the same time has nothing to do with it.
    for (const auto kind : {EventKind::link_down, EventKind::bgp_down}) {
      model::Record row{.entity = model::entity(model::LinkId(run.fabric().links_between(
                            *run.fabric().find_node({"rtsw:9", {}}),
                            *run.fabric().find_node({"ctsw:1", {}}))[0])),
                        .kind = kind};
      row.t = row.until = row.received = {at.ns + static_cast<int>(kind) * ns_per_s / 10};
      row.id = records.add_id(fmt::format("down-{}", static_cast<int>(kind)));
      records.rows.push_back(row);
    }
    using namespace operate::triage;
    const Context context(run.fabric(), default_rules(), {});
    std::vector<model::Case> cases;
    Triage triage(context, [&](model::Case c) { cases.push_back(std::move(c)); });
    for (const model::Record& row : records.rows) triage.add(records, row, row.id);
    triage.finish();
    int with_job = 0;
    for (const model::Case& c : cases) {
      const std::string text = to_json(
          run.fabric(), c, [&](std::uint64_t s) -> std::string_view { return records.ids[s]; });
      if (text.find("job:llama/") == std::string::npos) continue;
      ++with_job;
      CHECK(c.members.size() == 5);  // the job's and four of the probes
      const model::CableId cable = bad == Bad::card
                                       ? cable_of(run.fabric().out(run.bad_nic()).front())
                                       : cable_of(run.bad_link());
      const bool is_part = c.root == model::entity(cable) ||
                           (bad == Bad::card && c.root == model::entity(run.bad_nic()));
      CHECK_MESSAGE(is_part, text);
    }
    CHECK(with_job == 1);
    CHECK(cases.size() == 2);
  }
}

TEST_CASE("a job that is stalled is a case of the host that it waits for, and of no other") {
  const EdgeRun run({.operations = 1, .has_probes = false}, 17);
  const auto& fabric = run.fabric();
  std::vector<model::NodeId> gpus;
  for (const model::NodeId host : fabric.hosts()) gpus.push_back(fabric.gpus_of(host).front());
  using observe::colltrace::Finding;
  observe::colltrace::Job job;
  job.entries.emplace_back().created_ns = 1'798'000'000'000'000'000;
  const auto records_of = [&](std::vector<observe::colltrace::Verdict> verdicts) {
    model::RecordSet out;
    add_hang_records(fabric, job, {.verdicts = std::move(verdicts), .is_hang = true}, gpus, "llama",
                     {}, out);
    return out;
  };
  CHECK(records_of({{.finding = Finding::size, .ranks = {5}}}).rows.empty());      // the program
  CHECK(records_of({{.finding = Finding::stuck, .ranks = {4, 5}}}).rows.empty());  // either host
  CHECK(records_of({{.finding = Finding::dead, .ranks = {9999}}}).rows.empty());
  CHECK(records_of({{.finding = Finding::network, .groups = {0}}}).rows.empty());
  const model::RecordSet records = records_of({{.finding = Finding::stuck, .ranks = {5}}});
  REQUIRE(records.rows.size() == 1);
  using namespace operate::triage;
  const Context context(fabric, default_rules(), {});
  std::vector<model::Case> cases;
  Triage triage(context, [&](model::Case c) { cases.push_back(std::move(c)); });
  triage.add(records, records.rows[0], records.rows[0].id);
  triage.finish();
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].root == model::entity(fabric.hosts()[5]));
}

TEST_CASE("one proof of corruption is a case of its host, with what else is wrong with that") {
  const EdgeRun run({.operations = 1, .has_probes = false}, 17);
  observe::colltrace::HashSet hashes;
  std::string csv = "step,kind,group,seq,rank,hash,time\n";
  for (int rank = 0; rank < 8; ++rank)
    csv += fmt::format("3,weights,dp,1,{},{},1798000000000000000\n", rank, rank == 5 ? "bad" : "a");
  REQUIRE(read_hashes(csv, "hashes.csv", hashes).has_value());
  const auto found = find_dissent(hashes);
  REQUIRE(found.has_value());
  const auto hosts = run.fabric().hosts();
  const std::vector<model::NodeId> of_rank(hosts.begin(), hosts.begin() + 8);
  model::RecordSet records = to_records(run.fabric(), hashes, of_rank, "llama", *found);
  REQUIRE(records.rows.size() == 1);
  using namespace operate::triage;
  const Context context(run.fabric(), default_rules(), {});
  std::vector<model::Case> cases;
  Triage triage(context, [&](model::Case c) { cases.push_back(std::move(c)); });
  triage.add(records, records.rows[0], records.rows[0].id);
  triage.finish();
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].root == model::entity(hosts[5]));
  // Ranks of two hosts that cannot be told apart are no proof against either.
  hashes = {};
  REQUIRE(read_hashes("step,kind,group,seq,rank,hash\n3,weights,dp,1,4,a\n3,weights,dp,1,5,b\n",
                      "hashes.csv", hashes)
              .has_value());
  CHECK(to_records(run.fabric(), hashes, of_rank, "llama", *find_dissent(hashes)).rows.empty());
}
