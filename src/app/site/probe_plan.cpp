#include "app/site/probe_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "adapt/live/command_template.hpp"
#include "base/file.hpp"
#include "base/json_line.hpp"
#include "base/text.hpp"
#include "observe/probe/targets.hpp"

namespace weft::app {
namespace {

using model::NodeId;

constexpr std::size_t at_once_max = 16;  // sweeps and copies
constexpr std::int64_t once_ns = 60 * ns_per_s;
constexpr std::string_view sweep_rounds = "2";
constexpr std::string_view mark = "plan ";       // names of its processes begin so
constexpr std::int64_t again_ns = 5 * ns_per_s;  // after a failure

// As CommandDeviceState has it: "host-3" of "host:3".
std::string host_form(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, ':', '-');
  return out;
}

}  // namespace

Result<NodeAddresses> read_addresses(const model::Fabric& fabric, const std::string& path) {
  NodeAddresses out;
  if (path.empty()) {
    for (const NodeId nic : fabric.nics()) out.emplace(nic, ipv4_text(fabric.address(nic)));
    return out;
  }
  WEFT_TRY(const auto rows, observe::probe::read_address_rows(fabric, path));
  for (const auto& [node, address] : rows) out.emplace(node, ipv4_text(address));
  return out;
}

Result<std::vector<NodeId>> probe_hosts(const model::Fabric& fabric, const SiteProbes& probes) {
  std::vector<NodeId> out;
  if (probes.hosts.empty()) {
    for (const NodeId host : fabric.hosts())
      if (!fabric.nics_of(host).empty()) out.push_back(host);
    return out;
  }
  for (const std::string& name : probes.hosts) {
    WEFT_TRY(const NodeId host, fabric.find_node({name, {"probes.hosts", 0, 0}}));
    if (fabric.nics_of(host).empty())
      return fail(Errc::unknown, {"probes.hosts", 0, 0},
                  fmt::format("{} is not a host with NICs", quote(name)), "name hosts");
    out.push_back(host);
  }
  return out;
}

std::vector<NodeId> sweep_targets(const model::Fabric& fabric, const std::vector<NodeId>& nics,
                                  NodeId nic, std::size_t most) {
  const auto rack = [&](NodeId node) { return fabric.enclosing(node, model::ScopeKind::rack); };
  const auto self = std::ranges::find(nics, nic);
  const auto first = static_cast<std::size_t>(self - nics.begin());
  std::vector<NodeId> far, all;
  for (std::size_t i = 1; i < nics.size(); ++i) {
    const NodeId other = nics[(first + i) % nics.size()];
    if (fabric.host_of(other) == fabric.host_of(nic)) continue;
    all.push_back(other);
    if (rack(other) != rack(nic)) far.push_back(other);
  }
  const std::vector<NodeId>& from = far.empty() ? all : far;
  if (from.size() <= most) return from;
  std::vector<NodeId> out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(from[i * from.size() / most]);
  return out;
}

ProbePlan::ProbePlan(const Site& site, const model::Fabric& fabric, NodeAddresses addresses,
                     std::vector<NodeId> hosts, std::string program, Supervisor& supervisor,
                     port::Clock& clock)
    : site_(site),
      probes_(*site.probes),
      fabric_(fabric),
      addresses_(std::move(addresses)),
      hosts_(std::move(hosts)),
      program_(std::move(program)),
      supervisor_(supervisor),
      clock_(clock) {
  for (const NodeId host : hosts_)
    for (const NodeId nic : fabric_.nics_of(host)) nics_.push_back(nic);
}

std::string ProbePlan::there(const std::string& file) const {
  if (file.empty() || probes_.copy.empty()) return std::filesystem::absolute(file).string();
  return probes_.folder + "/" + std::filesystem::path(file).filename().string();
}

std::vector<std::string> ProbePlan::at(NodeId host, std::vector<std::string> arguments) const {
  const std::string name(fabric_.name(host));
  std::vector<std::string> out;
  if (!site_.lab.empty()) {
    out = {program_, "lab", "exec", name, "--name", site_.lab, "--", program_};
  } else if (probes_.at.empty()) {
    out = {probes_.program.empty() ? program_ : probes_.program};
  } else {
    const std::array<adapt::live::Placeholder, 2> values{
        {{"device", name}, {"host", host_form(name)}}};
    // Names begin with a letter: nothing that could be taken for an option.
    out = adapt::live::fill_argv(probes_.at, values).value_or(probes_.at);
    out.push_back(probes_.program);
  }
  out.insert(out.end(), arguments.begin(), arguments.end());
  return out;
}

std::vector<std::string> ProbePlan::copy_of(NodeId host, const std::string& file) const {
  const std::string name(fabric_.name(host));
  const std::array<adapt::live::Placeholder, 4> values{
      {{"device", name},
       {"host", host_form(name)},
       {"file", std::filesystem::absolute(file).string()},
       {"folder", probes_.folder}}};
  return adapt::live::fill_argv(probes_.copy, values).value_or(probes_.copy);
}

ProcessSpec ProbePlan::once(std::string name, std::vector<std::string> argv) const {
  return {.name = fmt::format("{}{}: {}", mark, generation_, name),
          .argv = std::move(argv),
          .output = ProcessSpec::Output::text,
          .feed = {},
          .life = ProcessSpec::Life::once,
          .patience_ns = once_ns};
}

// A sweep learns the paths of the source ports that the plan will use, while probers still hold
// those of the last plan: the two halves of the range take turns.
std::string ProbePlan::ports() const {
  const std::int64_t count = (probes_.port_last - probes_.port_first + 1) / 2;
  const std::int64_t first = probes_.port_first + (state_.made % 2 == 0 ? 0 : count);
  return fmt::format("{}-{}", first, first + count - 1);
}

void ProbePlan::start_responders() {
  if (!probes_.responders) return;
  for (const NodeId host : hosts_) {
    std::vector<std::string> arguments{"respond", "--key", there(probes_.key)};
    for (const NodeId nic : fabric_.nics_of(host)) arguments.push_back(addresses_[nic]);
    supervisor_.start({.name = fmt::format("respond {}", fabric_.name(host)),
                       .argv = at(host, std::move(arguments))});
  }
}

void ProbePlan::renew(std::string reason, std::vector<std::string> down) {
  Renewal renewal{std::move(reason), std::move(down), clock_.now()};
  if (phase_ == Phase::idle)
    begin(std::move(renewal));
  else
    next_ = std::move(renewal);
}

void ProbePlan::begin(Renewal renewal) {
  now_ = std::move(renewal);
  down_ = now_->down;
  state_.is_busy = true;
  ++generation_;
  running_ = 0;
  paths_.clear();
  if (!has_files_ && !probes_.copy.empty()) {
    phase_ = Phase::copying_files;
    queue_copies({site_.fabric, probes_.key, probes_.addresses});
  } else if (probes_.paths == SiteProbes::Paths::learned) {
    phase_ = Phase::sweeping;
    queue_sweeps();
  } else {
    phase_ = Phase::planning;
    plan();
  }
  step();
}

void ProbePlan::queue_copies(const std::vector<std::string>& files) {
  for (const NodeId host : hosts_)
    for (const std::string& file : files)
      if (!file.empty())
        queue_.push_back(
            once(fmt::format("copy {} to {}", std::filesystem::path(file).filename().string(),
                             fabric_.name(host)),
                 copy_of(host, file)));
}

// Of probes, and of their answers where there are any.
void ProbePlan::queue_sweeps() {
  for (const NodeId nic : nics_) {
    queue_sweep(nic, false);
    if (!probes_.one_way) queue_sweep(nic, true);
  }
}

void ProbePlan::queue_sweep(NodeId nic, bool of_answers) {
  std::vector<std::string> arguments{"probe",     "--sweep",
                                     "--json",    "--quiet",
                                     "--key",     there(probes_.key),
                                     "--fabric",  there(site_.fabric),
                                     "--from",    std::string(fabric_.name(nic)),
                                     "--bind",    addresses_[nic],
                                     "--ports",   ports(),
                                     "--count",   std::string(sweep_rounds),
                                     "--rate",    fmt::format("{:g}", probes_.sweep_rate),
                                     "--ttl-max", fmt::format("{}", probes_.ttl_max)};
  if (of_answers) arguments.emplace_back("--answers");
  if (!probes_.addresses.empty()) {
    arguments.emplace_back("--addresses");
    arguments.push_back(there(probes_.addresses));
  }
  for (const NodeId target :
       sweep_targets(fabric_, nics_, nic, static_cast<std::size_t>(probes_.targets)))
    arguments.push_back(addresses_[target]);
  queue_.push_back(
      once(fmt::format("sweep from {}{}", fabric_.name(nic), of_answers ? ", answers" : ""),
           at(fabric_.host_of(nic), std::move(arguments))));
}

void ProbePlan::step() {
  for (; running_ < at_once_max && !queue_.empty(); ++running_) {
    supervisor_.start(std::move(queue_.front()));
    queue_.pop_front();
  }
  if (phase_ != Phase::idle || generation_ == 0) return;
  const bool has_failed = !state_.problem.empty();
  if (clock_.now() - made_at_ > (has_failed ? again_ns : probes_.renew_ns))
    renew(has_failed ? state_.reason : "the plan was old", down_);
}

bool ProbePlan::take(const std::string& name, int status, std::string text) {
  if (!name.starts_with(mark)) return false;
  if (!name.starts_with(fmt::format("{}{}: ", mark, generation_)) || phase_ == Phase::idle)
    return true;  // of a renewal that failed meanwhile
  --running_;
  if (phase_ == Phase::sweeping) {
    paths_ += text;  // status 1: no target answered; its links are then missing in the plan
  } else if (phase_ == Phase::planning) {
    // Status 1: some links are crossed less often than asked; it says which.
    if (status != 0 && status != 1) {
      finish(fmt::format("{} failed with status {}", name, status));
      return true;
    }
    plan_ = std::move(text);
  } else if (status != 0) {
    finish(fmt::format("{} failed with status {}", name, status));
    return true;
  }
  step();
  if (running_ == 0 && queue_.empty()) advance();
  return true;
}

void ProbePlan::advance() {
  switch (phase_) {
    case Phase::idle:
      return;
    case Phase::copying_files:
      has_files_ = true;
      begin(*std::exchange(now_, std::nullopt));
      return;
    case Phase::sweeping:
      phase_ = Phase::planning;
      return plan();
    case Phase::planning: {
      const std::string file = site_.state + "/plan.jsonl";
      if (const Status written = write_file(file, plan_); !written)
        return finish(written.error().text());
      phase_ = Phase::copying_plan;
      if (!probes_.copy.empty()) queue_copies({file});
      if (queue_.empty()) advance();
      return;
    }
    case Phase::copying_plan:
      start_probers(plan_);
      return;
  }
}

void ProbePlan::plan() {
  std::vector<std::string> argv{
      program_,   "probe",        "plan",        "--json",
      "--fabric", site_.fabric,   "--crossings", fmt::format("{}", probes_.crossings),
      "--window", probes_.window, "--ports",     ports()};
  if (probes_.flows > 0) {
    argv.emplace_back("--flows");
    argv.push_back(fmt::format("{}", probes_.flows));
  }
  if (probes_.routes >= 0) {
    argv.emplace_back("--routes");
    argv.push_back(fmt::format("{}", probes_.routes));
  }
  if (!now_->down.empty()) {
    argv.emplace_back("--down");
    argv.push_back(fmt::format("{}", fmt::join(now_->down, ",")));
  }
  if (probes_.paths == SiteProbes::Paths::learned) {
    const std::string file = site_.state + "/paths.jsonl";
    if (paths_.empty()) return finish("no sweep was answered: do responders run?");
    if (const Status written = write_file(file, paths_); !written)
      return finish(written.error().text());
    argv.emplace_back("--learned");
    argv.push_back(file);
  }
  queue_.push_back(once("probe plan", std::move(argv)));
}

void ProbePlan::start_probers(const std::string& lines) {
  const std::string file = site_.state + "/plan.jsonl";
  std::set<std::string> sources;
  state_.flows = 0;
  for (const std::string_view line : split(lines, '\n')) {
    if (line.empty()) continue;
    ++state_.flows;
    if (const auto row = JsonLine::parse(line, {file, 0, 0}))
      sources.insert(row->node().member("src").text().value_or(""));
  }
  for (const NodeId host : hosts_) {
    const std::string name(fabric_.name(host)), process = "probe " + name;
    const bool has_flows = std::ranges::any_of(fabric_.nics_of(host), [&](NodeId nic) {
      return sources.contains(std::string(fabric_.name(nic)));
    });
    if (!has_flows) {
      supervisor_.stop(process);
      continue;
    }
    std::vector<std::string> arguments{
        "probe",        "--plan",    there(file),     "--fabric",         there(site_.fabric),
        "--from",       name,        "--key",         there(probes_.key), "--window",
        probes_.window, "--timeout", probes_.timeout, "--late",           probes_.late,
        "--json"};
    if (probes_.one_way) arguments.emplace_back("--one-way");
    if (!probes_.addresses.empty()) {
      arguments.emplace_back("--addresses");
      arguments.push_back(there(probes_.addresses));
    }
    supervisor_.start({.name = process,
                       .argv = at(host, std::move(arguments)),
                       .output = ProcessSpec::Output::lines,
                       .feed = "evidence"});
  }
  ++state_.made;
  state_.at = clock_.wall();
  state_.took_s = static_cast<double>(clock_.now() - now_->since) / ns_per_s;
  finish("");
}

void ProbePlan::finish(std::string problem) {
  state_.problem = std::move(problem);
  state_.reason = now_->reason;
  state_.is_busy = false;
  made_at_ = clock_.now();
  phase_ = Phase::idle;
  now_.reset();
  queue_.clear();
  if (next_) begin(*std::exchange(next_, std::nullopt));
}

void ProbePlan::stop() {
  next_.reset();
  queue_.clear();
  generation_ = 0;
  phase_ = Phase::idle;
}

}  // namespace weft::app
