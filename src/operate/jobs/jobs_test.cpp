#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "base/test_approx.hpp"
#include "model/scenario/scenario.hpp"
#include "operate/jobs/effects.hpp"

namespace weft::operate::jobs {
namespace {

using Hosts = std::vector<std::uint32_t>;

//   ctsw:0 .. ctsw:3      4 NICs of 400 Gbps under each rack's 4 uplinks of 400 Gbps
constexpr std::string_view zone =
    "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 2, spines: 4, "
    "link: 400 Gbps}\n";

struct Site {
  explicit Site(std::string_view jobs = "") {
    auto file = model::parse_scenario(std::string(zone) + std::string(jobs), "zone.yaml", {});
    REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().text()));
    scenario = std::move(file->variants.front());
    auto read = plan::read_setup(scenario);
    REQUIRE(read.has_value());
    setup = std::make_unique<plan::Setup>(*std::move(read));
    names = std::make_unique<NodeNames>(setup->fabric);
  }
  std::vector<RunningJob> squeue(std::string_view text) const {
    auto jobs = read_squeue(text, *names, "squeue");
    REQUIRE_MESSAGE(jobs.has_value(), (jobs ? "" : jobs.error().text()));
    return *std::move(jobs);
  }
  std::vector<RunningJob> pods(std::string_view json) const {
    const std::vector<std::string> gpus{"nvidia.com/gpu"};
    auto jobs = read_pods(json, *names, gpus, "pods");
    REQUIRE_MESSAGE(jobs.has_value(), (jobs ? "" : jobs.error().text()));
    return *std::move(jobs);
  }
  Effects effects(const std::vector<RunningJob>& running, const std::string& part,
                  const std::vector<std::string>& suspects = {}) const {
    const auto entity = [&](const std::string& name) {
      const auto found = model::find_entity(setup->fabric, {name, {}});
      REQUIRE_MESSAGE(found.has_value(), name);
      return *found;
    };
    std::vector<model::Entity> bad;
    for (const std::string& name : suspects) bad.push_back(entity(name));
    const Config& described = scenario.section("jobs");
    auto out = effects_of({*setup, described, 1}, running, {}, bad, entity(part));
    REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
    return *std::move(out);
  }
  model::Scenario scenario;
  std::unique_ptr<plan::Setup> setup;
  std::unique_ptr<NodeNames> names;
};

// `value` with what a pod has; `more` goes into its labels.
std::string pod(std::string_view name, std::string_view node, std::string_view labels,
                std::string_view phase = "Running", std::string_view resource = "nvidia.com/gpu") {
  return JsonObject()
      .add("metadata",
           JsonObject()
               .add("namespace", "ml")
               .add("name", name)
               .add("labels", JsonText{labels})
               .add("ownerReferences", JsonText{R"([{"kind":"ReplicaSet","name":"server"}])"}))
      .add("spec",
           JsonObject()
               .add("nodeName", node)
               .add("containers", JsonText{R"([{"resources":{}},{"resources":{"limits":{")" +
                                           std::string(resource) + R"(":"8"}}}])"}))
      .add("status", JsonObject().add("phase", phase).add("startTime", "2026-11-23T20:00:00Z"))
      .text();
}
std::string pod_list(std::initializer_list<std::string> pods) {
  JsonList items;
  for (const std::string& one : pods) items.add(JsonText{one});
  return JsonObject().add("kind", "List").add("items", items).text();
}

TEST_CASE("jobs as squeue lists them") {
  const Site site;
  const auto jobs = site.squeue(
      "4711|alice|1795464000|host[3,0-1]|llama|of May\n\n"
      "  4712 | bob | N/A | cpu[1-2],host4.example.org | prep \n"
      "4713_7|eve|0||pending\n");
  REQUIRE(jobs.size() == 3);
  CHECK(jobs[0].id == "4711");
  CHECK(jobs[0].name == "llama|of May");
  CHECK(jobs[0].user == "alice");
  CHECK(to_text(*jobs[0].since) == "2026-11-23T20:00:00Z");
  CHECK(jobs[0].hosts == Hosts{3, 0, 1});
  CHECK(jobs[1].hosts == Hosts{4});
  CHECK(jobs[1].strangers == std::vector<std::string>{"cpu1", "cpu2"});
  CHECK_FALSE(jobs[1].since.has_value());
  CHECK(jobs[2].hosts.empty());
  CHECK(to_json(jobs[0], *site.names).text() ==
        R"({"id":"4711","name":"llama|of May","user":"alice","since":"2026-11-23T20:00:00Z",)"
        R"("host_count":3,"hosts":"host[3,0-1]","racks":[)"
        R"({"rack":"rack:1","host_count":1,"parts":"host:3,nic:[6-7]"},)"
        R"({"rack":"rack:0","host_count":2,"parts":"host:[0-1],nic:[0-3]"}]})");
  const auto bad = read_squeue("1|a|2|host0|x\nsqueue: error\n2|a|0|host[3|x\n", *site.names, "s");
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().text().find("s:2") != std::string::npos);
  CHECK(bad.error().text().find("s:3") != std::string::npos);
}

TEST_CASE("nodes that the scheduler calls something else") {
  Site site;
  REQUIRE(site.names->add_csv("node,host\ngpu-a,host:5\ngpu-b,host6\n", "nodes.csv").has_value());
  CHECK(site.squeue("1|a|0|gpu-b,gpu-a.cluster|x").front().hosts == Hosts{6, 5});
  const Status bad = site.names->add_csv("node,host\ngpu-a,host:1\nx,host:99\n", "nodes.csv");
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().text().find("named twice") != std::string::npos);
  CHECK(bad.error().text().find("nodes.csv:3") != std::string::npos);
}

TEST_CASE("jobs as the labels of pods name them, hosts in the order of their indexes") {
  const Site site;
  const auto jobs = site.pods(pod_list({
      pod("train-b", "host3",
          R"({"jobset.sigs.k8s.io/jobset-name":"train","batch.kubernetes.io/job-name":"train-1",)"
          R"("jobset.sigs.k8s.io/job-global-index":"1",)"
          R"("batch.kubernetes.io/job-completion-index":"0"})"),
      pod("train-a", "host2",
          R"({"jobset.sigs.k8s.io/jobset-name":"train","jobset.sigs.k8s.io/job-global-index":"0",)"
          R"("batch.kubernetes.io/job-completion-index":"10"})"),
      pod("train-c", "host7.site",
          R"({"jobset.sigs.k8s.io/jobset-name":"train","jobset.sigs.k8s.io/job-global-index":"0",)"
          R"("batch.kubernetes.io/job-completion-index":"9"})"),
      pod("torch-worker-0", "host1",
          R"({"training.kubeflow.org/job-name":"torch",)"
          R"("training.kubeflow.org/replica-index":"0"})"),
      pod("torch-master-0", "host0",
          R"({"training.kubeflow.org/job-name":"torch",)"
          R"("training.kubeflow.org/replica-index":"0"})"),
      pod("server-x", "host4", "{}"),
      pod("web", "host5", "{}", "Running", "cpu"),
      pod("waits", "host6", "{}", "Pending"),
  }));
  REQUIRE(jobs.size() == 3);
  CHECK(jobs[0].id == "ml/server");
  CHECK(jobs[0].hosts == Hosts{4});
  CHECK(jobs[1].id == "ml/torch");
  CHECK(jobs[1].hosts == Hosts{0, 1});
  CHECK(jobs[2].id == "ml/train");
  CHECK(jobs[2].hosts == Hosts{7, 2, 3});
  CHECK(to_text(*jobs[2].since) == "2026-11-23T20:00:00Z");
  const auto bad = read_pods("{\"error\": 1}", *site.names, {}, "pods");
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().text().find("items") != std::string::npos);
}

// Four uplinks carry what four NICs send; three take 4/3 of the time. Jobs inside a rack send
// nothing upwards.
TEST_CASE("what a drain costs: closed forms, and who is not concerned") {
  const Site site;
  const auto running = site.squeue("1|a|0|host[0-3]|wide\n2|b|0|host[4-5]|narrow\n");
  const Effects cable = site.effects(running, "rtsw:0--ctsw:0");
  CHECK(cable.method == repair::Impact::Method::bounded);
  REQUIRE(cable.jobs.size() == 1);
  CHECK(running[cable.jobs[0].job].id == "1");
  const double sent_s = 64.0 * (1 << 20) * 8 / 400e9, way_s = 4 * 500e-9;  // a link 500 ns
  CHECK(cable.jobs[0].impact.slowdown ==
        approx((sent_s * 4 / 3 + way_s) / (sent_s + way_s)).epsilon(1e-6));
  CHECK_FALSE(cable.jobs[0].impact.is_stalled);
  CHECK(cable.jobs[0].at_part.empty());
  CHECK(cable.unaffected == 1);

  const Effects rack = site.effects(running, "rtsw:2");
  REQUIRE(rack.jobs.size() == 1);
  CHECK(running[rack.jobs[0].job].id == "2");
  CHECK(rack.jobs[0].impact.is_stalled);
  CHECK(rack.jobs[0].at_part == Hosts{4, 5});
  CHECK(rack.jobs[0].spares ==
        std::vector<std::pair<std::uint32_t, std::uint32_t>>{{4, 6}, {5, 7}});
}

TEST_CASE("spare hosts: near, free, and not themselves in doubt") {
  const Site site;
  const auto running = site.squeue("1|a|0|host[0,2,4]|x\n2|b|0|host6|y\n");
  const auto spare = [&](const std::vector<std::string>& suspects) {
    const Effects effects = site.effects(running, "host:0", suspects);
    REQUIRE(effects.jobs.size() == 1);
    CHECK(effects.jobs[0].at_part == Hosts{0});
    return effects.jobs[0].spares.empty() ? -1 : static_cast<int>(effects.jobs[0].spares[0].second);
  };
  CHECK(spare({}) == 1);
  CHECK(spare({"host:1"}) == 3);
  CHECK(spare({"rtsw:0", "rtsw:1"}) == 5);
  CHECK(spare({"host:1", "host:3", "host:5", "host:7"}) == -1);
  const Effects alone = site.effects(site.squeue("9|c|0|host1|z"), "host:1");
  REQUIRE(alone.jobs.size() == 1);  // it sends nothing to anybody, and is gone all the same
  CHECK(alone.jobs[0].impact.is_stalled);
}

TEST_CASE("a job that the scenario describes by name is simulated where it runs") {
  const Site site(
      "jobs: [{name: llama, collective: all_reduce, gpus: 4, bytes: 64 MiB, algorithm: ring},\n"
      "       {name: idle, collective: all_reduce, gpus: 2, bytes: 1 MiB}]\n"
      "routing: {scheme: spray}\n");
  const auto running = site.squeue("77|a|0|host[4,6]|llama\n");
  const Effects effects = site.effects(running, "rtsw:2");
  CHECK(effects.method == repair::Impact::Method::simulated);
  REQUIRE(effects.jobs.size() == 1);
  CHECK(effects.jobs[0].impact.is_stalled);
  CHECK(effects.jobs[0].at_part == Hosts{4});
  CHECK(site.effects(running, "rtsw:0").unaffected == 1);
  // A second one that nobody described, and one that does not fit: only a bound is left.
  for (const char* other : {"78|b|0|host7|bert\n", "78|b|0|host7,elsewhere|idle\n"}) {
    const auto both = site.squeue(std::string("77|a|0|host[4,6]|llama\n") + other);
    CHECK(site.effects(both, "rtsw:2").method == repair::Impact::Method::bounded);
  }
}

}  // namespace
}  // namespace weft::operate::jobs
