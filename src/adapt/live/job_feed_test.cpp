// A scheduler's program that is asked again and again, and fails at times.
#include "adapt/live/job_feed.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/test_folder.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::adapt::live {
namespace {

using namespace std::chrono_literals;

Result<JobFeedSettings> feed_settings(const std::string& yaml) {
  const auto config = parse_yaml(yaml, "serve.yaml");
  REQUIRE(config.has_value());
  return read_job_feed(*config);
}

bool happens(const std::function<bool()>& so) {
  for (int i = 0; i < 3'000; ++i, std::this_thread::sleep_for(10ms))
    if (so()) return true;
  return false;
}

TEST_CASE("what the configuration may say, and what is asked unless told") {
  const auto slurm = feed_settings("{from: slurm, environment: [SLURM_CONF=/etc/x]}");
  REQUIRE(slurm.has_value());
  CHECK(slurm->program.argv.front() == "/usr/bin/squeue");
  CHECK(slurm->program.argv.back() == "--format=%A|%u|%S|%N|%j");
  CHECK(slurm->program.environment ==
        std::vector<std::string>{"SLURM_TIME_FORMAT=%s", "SLURM_CONF=/etc/x"});
  CHECK(slurm->every == 30s);
  const auto pods = feed_settings("{from: kubernetes, every: 5 s, resources: [example.com/npu]}");
  REQUIRE(pods.has_value());
  CHECK(pods->program.argv.front() == "/usr/bin/kubectl");
  CHECK(pods->resources == std::vector<std::string>{"example.com/npu"});
  for (const char* bad : {"{}", "{from: pbs}", "{from: slurm, run: squeue}",
                          "{from: slurm, every: 0 s}", "{from: slurm, evry: 1 s}"})
    CHECK_MESSAGE(!feed_settings(bad).has_value(), bad);
}

TEST_CASE("jobs follow the scheduler; the last list stays while it does not answer, for a time") {
  const TestFolder folder;
  const std::string list = folder.path() + "/list";
  const auto say = [&](const std::string& text) {
    std::ofstream(list + ".new") << text;
    std::filesystem::rename(list + ".new", list);
  };
  say("1|ann|1795464000|host[0-1]|train\n");
  auto settings = feed_settings("{from: slurm, every: 20 ms, run: [/bin/cat, " + list + "]}");
  REQUIRE(settings.has_value());
  const model::Fabric fabric = model::testing::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2}");
  const JobFeed feed(*settings, operate::jobs::NodeNames(fabric));
  REQUIRE(happens([&] { return !feed.state().is_stale; }));
  CHECK(feed.state().jobs->front().hosts == std::vector<std::uint32_t>{0, 1});
  say("");
  CHECK(happens([&] { return feed.state().jobs->empty(); }));
  say("2|ann|1795464000|host1|next\n");
  CHECK(happens([&] { return feed.state().jobs->size() == 1; }));
  say("squeue: error: cannot be reached\n");
  CHECK(happens([&] { return feed.state().failures > 0; }));
  CHECK(feed.state().jobs->front().id == "2");
  CHECK(feed.state().error.find("1 of 5 cells") != std::string::npos);
  std::filesystem::remove(list);
  CHECK(happens([&] { return feed.state().error.find("No such file") != std::string::npos; }));
  CHECK(happens([&] { return feed.state().is_stale; }));
  say("");
  CHECK(happens([&] { return !feed.state().is_stale && feed.state().error.empty(); }));
}

}  // namespace
}  // namespace weft::adapt::live
