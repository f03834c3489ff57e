#include "plan/why/why.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/generate/host.hpp"
#include "plan/report/finding.hpp"
#include "plan/run/jobs.hpp"
#include "plan/run/setup.hpp"

namespace weft::plan::why {
namespace {

using model::JobOutcome;
using model::Scenario;

const Config* find_key(const Scenario& scenario, std::string_view section, std::string_view key) {
  const Config& map = scenario.section(section);
  return map.kind == Config::Kind::map ? map.find(key) : nullptr;
}

std::string text_of(const Scenario& scenario, std::string_view section, std::string_view key,
                    const std::string& fallback) {
  const Config* value = find_key(scenario, section, key);
  return value != nullptr && value->kind == Config::Kind::scalar ? value->text : fallback;
}

bool is_packet(const Scenario& scenario) {
  const Config& engine = scenario.section("engine");
  return engine.kind == Config::Kind::scalar ? engine.text == "packet"
                                             : text_of(scenario, "engine", "name", "") == "packet";
}

class Changes {
 public:
  explicit Changes(const Scenario& scenario) : scenario_(scenario) {}

  Result<std::vector<Change>> list() {
    const bool has_generator = find_key(scenario_, "fabric", "generator") != nullptr;
    const bool is_alone = text_of(scenario_, "engine", "contention", "true") == "false";
    if (!is_packet(scenario_) && !is_alone)
      WEFT_TRY_STATUS(add("no contention", {{"engine.contention", Config::scalar("false")}}));
    const std::string scheme = text_of(scenario_, "routing", "scheme", "ecmp");
    const bool converges = find_key(scenario_, "routing", "convergence") != nullptr;
    if ((scheme == "ecmp" || scheme == "e_ecmp") && !converges)  // which sprayed paths do not model
      WEFT_TRY_STATUS(add("spray", {{"routing.scheme", Config::scalar("spray")}}));
    WEFT_TRY_STATUS(add_more_qps(scheme));
    if (!scenario_.section("faults").items.empty())
      WEFT_TRY_STATUS(add("no faults", {{"faults", Config::list()}}));
    WEFT_TRY_STATUS(add_no_slow_ranks());
    WEFT_TRY_STATUS(add_fitted());
    if (has_generator) {
      WEFT_TRY_STATUS(add_faster_links());
      if (text_of(scenario_, "fabric", "latency", "") != "0 s")
        WEFT_TRY_STATUS(add("no latency", {{"fabric.latency", Config::scalar("0 s")}}));
    }
    return std::move(out_);
  }

 private:
  using Keys = std::vector<std::pair<std::string, Config>>;

  // Plain ECMP hardly hashes the QP, so it becomes e_ecmp, too.
  Status add_more_qps(const std::string& scheme) {
    if (scheme != "ecmp" && scheme != "e_ecmp" && scheme != "te" && scheme != "flowlet") return {};
    const Config* given = find_key(scenario_, "routing", "qps");
    std::int64_t qps = 1;
    if (given != nullptr) {
      WEFT_TRY(qps, parse_count({given->text, given->where}));
    }
    if (qps < 1 || qps > 1024) return {};  // 1 to 4,096 are valid
    Keys keys;
    if (scheme == "ecmp") keys.emplace_back("routing.scheme", Config::scalar("e_ecmp"));
    keys.emplace_back("routing.qps", Config::scalar(std::to_string(4 * qps)));
    return add("QPs x 4", std::move(keys));
  }

  // The jobs without a key, and how many had it.
  std::pair<Config, std::size_t> jobs_without(std::string_view key) const {
    Config jobs = scenario_.section("jobs");
    std::size_t count = 0;
    for (Config& job : jobs.items)
      count += std::erase_if(job.fields, [&](const auto& field) { return field.key == key; });
    return {std::move(jobs), count};
  }

  // Where all faults are slow ranks, "no faults" says the same.
  Status add_no_slow_ranks() {
    const auto& given = scenario_.section("faults").items;
    Config rest = Config::list();
    for (const Config& fault : given) {
      const Config* kind = fault.kind == Config::Kind::map ? fault.find("kind") : nullptr;
      if (kind == nullptr || (kind->text != "gpu_slow" && kind->text != "host_slow"))
        rest.items.push_back(fault);
    }
    auto [jobs, measured] = jobs_without("compute_times");
    const bool some_faults = !rest.items.empty() && rest.items.size() != given.size();
    if (measured == 0 && !some_faults) return {};
    Keys keys;
    if (measured > 0) keys.emplace_back("jobs", std::move(jobs));
    if (rest.items.size() != given.size()) keys.emplace_back("faults", std::move(rest));
    return add("no slow ranks", std::move(keys));
  }

  // All jobs in the order that sends the fewest bytes between zones and racks, where the fabric
  // has room for it.
  Status add_fitted() {
    Config jobs = scenario_.section("jobs");
    bool is_new = false;
    for (Config& job : jobs.items) {
      if (job.kind != Config::Kind::map) return {};
      is_new = is_new || job.find("place") == nullptr || job.find("place")->text != "fitted";
      std::erase_if(job.fields, [](const auto& field) {
        return field.key == "ranks" || field.key == "rank_file";
      });
      job.at_or_add("place") = Config::scalar("fitted");
    }
    if (!is_new || jobs.items.empty()) return {};
    WEFT_TRY(const Setup setup, read_setup(scenario_));
    if (!read_jobs(setup, jobs, scenario_.seed)) return {};
    return add("fitted order", {{"jobs", std::move(jobs)}});
  }

  // NICs and, where they have rates of their own, uplinks and cables between routers.
  Status add_faster_links() {
    Keys keys;
    for (const char* key : {"link", "uplink", "torus_link", "local_link", "global_link"}) {
      const Config* value = find_key(scenario_, "fabric", key);
      const bool is_link = std::string_view(key) == "link";
      if (value == nullptr && !is_link) continue;
      Rate rate = nic_rate();
      if (value != nullptr) {
        WEFT_TRY(rate, parse_rate({value->text, value->where}));
      }
      if (rate.bps == 0) return {};  // of a host file: not known here
      keys.emplace_back(fmt::format("fabric.{}", key), Config::scalar(to_text(rate + rate)));
    }
    return add("links x 2", std::move(keys));
  }
  Rate nic_rate() const {
    const std::string host = text_of(scenario_, "fabric", "host", "h100");
    const auto names = model::host_preset_names();
    return std::ranges::find(names, host) == names.end() ? Rate{}
                                                         : model::host_preset(host, 1, 1).nic_rate;
  }

  Status add(const std::string& name, Keys keys) {
    Change change{name, {}, scenario_};
    change.scenario.name = change.name;
    for (auto& [path, value] : keys) {
      if (value.kind == Config::Kind::scalar)
        change.keys += fmt::format("{}{}={}", change.keys.empty() ? "" : ", ", path, value.text);
      if (path == "faults")
        change.keys += fmt::format(
            "{}{}", change.keys.empty() ? "" : ", ",
            value.items.empty() ? "faults=[]" : "faults: without gpu_slow and host_slow");
      if (path == "jobs")
        change.keys = name == "fitted order" ? "jobs.*.place=fitted" : "jobs.*.compute_times=null";
      WEFT_TRY_STATUS(change.scenario.set(path, value));
    }
    out_.push_back(std::move(change));
    return {};
  }

  const Scenario& scenario_;
  std::vector<Change> out_;
};

// The best change, or that none helps.
std::string advice(const Answer& answer, std::size_t job) {
  const Answer::Gain* best = nullptr;
  for (const Answer::Gain& gain : answer.gains)
    if (!std::isnan(gain.speed[job]) && (best == nullptr || gain.speed[job] > best->speed[job]))
      best = &gain;
  if (best == nullptr) return "";
  if (best->speed[job] < 1.01) return ". Nothing tried makes it 1 % faster";
  return fmt::format(". Most is gained with: {} ({:.2f}x)", best->name, best->speed[job]);
}

// The scenario stands alone for the user: what is wrong in it names no variant.
void drop_variant(Error& error, std::string_view prefix) {
  if (error.what.starts_with(prefix)) error.what.erase(0, prefix.size());
  for (Error& more : error.more) drop_variant(more, prefix);
}

}  // namespace

Result<std::vector<Change>> changes(const Scenario& scenario) { return Changes(scenario).list(); }

Result<Answer> explain(const Scenario& scenario, const RunOptions& options) {
  WEFT_TRY(const std::vector<Change> list, changes(scenario));
  model::ScenarioFile file;
  file.variants.push_back(scenario);
  for (const Change& change : list) file.variants.push_back(change.scenario);
  RunOptions with_links = options;
  with_links.link_waits = true;
  auto ran = run_scenario(file, with_links);
  if (!ran) {
    drop_variant(ran.error(), fmt::format("variant \"{}\": ", scenario.name));
    return std::unexpected(std::move(ran.error()));
  }
  model::Outcome outcome = *std::move(ran);
  Answer answer;
  const auto& jobs = outcome.variants.front().jobs;
  for (std::size_t c = 0; c < list.size(); ++c) {
    Answer::Gain gain{list[c].name, list[c].keys, {}};
    for (std::size_t j = 0; j < jobs.size(); ++j)
      gain.speed.push_back(model::time_of(jobs[j]) /
                           model::time_of(outcome.variants[c + 1].jobs[j]));
    answer.gains.push_back(std::move(gain));
  }
  answer.base = std::move(outcome.variants.front());
  for (std::size_t j = 0; j < answer.base.jobs.size(); ++j) {
    const JobOutcome& job = answer.base.jobs[j];
    std::string finding = report::finding(job);
    if (const std::string links = report::busiest_links(answer.base); !links.empty())
      finding += "; " + links;
    answer.findings.push_back(finding + (job.unfinished ? "" : advice(answer, j)));
  }
  return answer;
}

}  // namespace weft::plan::why
