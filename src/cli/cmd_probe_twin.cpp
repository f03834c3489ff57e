// `weft probe --twin`: the fabric of the file, simulated, answers; its faults are the truth.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "adapt/sim/twin.hpp"
#include "base/file.hpp"
#include "base/line_reader.hpp"
#include "base/plural.hpp"
#include "cli/cli.hpp"
#include "cli/probe_args.hpp"
#include "model/events/episode.hpp"
#include "observe/probe/plan_file.hpp"
#include "plan/run/setup.hpp"

namespace weft::cli {
namespace {

namespace probe = observe::probe;
namespace sim = adapt::sim;
using model::LinkId;
using model::NodeId;

// What good links lose at most, each its own share of it.
constexpr double good_loss_max = 1e-5;
constexpr double window_default_s = 10;
constexpr std::int64_t twin_windows_max = 1'000'000;

struct TwinTimes {
  std::int64_t window_ns = 0, end_ns = 0;
};

Result<TwinTimes> read_times(const ProbeArgs& args) {
  TwinTimes out;
  WEFT_TRY(out.window_ns, read_span_ns(args.window, "--window"));
  const std::string& text = args.duration.empty() ? args.window : args.duration;
  WEFT_TRY(out.end_ns, read_span_ns(text, "--duration"));
  if (out.window_ns < 1'000'000 || out.end_ns < out.window_ns ||
      out.end_ns / out.window_ns > twin_windows_max)
    return fail(Errc::value, {"--duration", 0, 0},
                fmt::format("{} in windows of {}", text, args.window),
                "use windows of 1 ms or more, and 1 to 1,000,000 of them");
  return out;
}

// Probes by a plan while the fabric goes from state to state.
class TwinRun {
 public:
  TwinRun(const plan::Setup& setup, route::Router& router, std::vector<probe::PlanLine> lines,
          std::uint64_t seed)
      : setup_(setup),
        router_(router),
        lines_(std::move(lines)),
        seed_(seed),
        twin_(setup.fabric, 1, seed) {}

  // The rows of each window as JSON lines, where they are wanted.
  void run(const TwinTimes& times, bool prints) {
    for (std::int64_t start = 0; start < times.end_ns; start += times.window_ns) {
      const std::int64_t end = std::min(start + times.window_ns, times.end_ns);
      for (std::int64_t at = start; at < end;) {
        enter(at);
        const std::int64_t next = std::min(end, next_change_ns());
        observe(start, {(next - at) * ps_per_ns}, prints);
        at = next;
      }
    }
  }

  std::uint64_t sent() const { return sent_; }
  std::uint64_t lost() const { return lost_; }
  std::size_t flows() const { return lines_.size(); }

 private:
  std::int64_t next_change_ns() const {
    return next_ < setup_.changes.size() ? setup_.changes[next_].at.ps / ps_per_ns : INT64_MAX;
  }

  // The state at that time; routing knows it at once.
  void enter(std::int64_t at_ns) {
    bool is_new = plan_.flows.empty();
    while (next_change_ns() <= at_ns) {
      state_ = &setup_.changes[next_++].state;
      is_new = true;
    }
    if (!is_new) return;
    router_.set_state(*state_);
    set_losses();
    make_plan();
  }

  void set_losses() {
    const model::LiveView live(setup_.fabric, *state_);
    const Rng good = Rng(seed_).stream("good links");
    for (const LinkId link : setup_.fabric.links()) {
      const double own = good.stream(link.value).uniform() * good_loss_max;
      const double fault = live.usable(link) ? state_->link(link).loss : 1;
      twin_.set_loss(link, 1 - (1 - own) * (1 - fault));
    }
  }

  // Each flow on the way that the hash gives it now; on its planned one where there is none.
  void make_plan() {
    plan_ = {};
    for (const probe::PlanLine& line : lines_) {
      const double window_s = line.window_s > 0 ? line.window_s : window_default_s;
      sim::TwinFlow flow{.src = line.src, .dst = line.dst, .sport = line.source_port};
      flow.per_s = static_cast<double>(line.probes) / window_s;
      const route::UdpPorts there{line.source_port, line.target_port};
      add_path(line.src, line.dst, there, line.forward, flow.forward_first, flow.forward_size);
      add_path(line.dst, line.src, {there.dst, there.src}, line.back, flow.back_first,
               flow.back_size);
      plan_.flows.push_back(flow);
    }
  }
  void add_path(NodeId src, NodeId dst, const route::UdpPorts& ports, const route::Path& planned,
                std::uint32_t& first, std::uint16_t& size) {
    route::Path path;
    if (!router_.append_udp_path(src, dst, ports, path)) path = planned;
    first = static_cast<std::uint32_t>(plan_.links.size());
    size = static_cast<std::uint16_t>(path.size());
    plan_.links.insert(plan_.links.end(), path.begin(), path.end());
  }

  void observe(std::int64_t window_start_ns, Duration length, bool prints) {
    const sim::Observation seen = twin_.observe(plan_, Timestamp{window_start_ns}, length);
    for (const model::Evidence& row : seen.evidence.rows) {
      if (row.leg == model::Leg::forward) sent_ += row.sent;
      lost_ += row.lost;
      if (prints && row.sent > 0)
        fmt::print("{}\n", model::to_json(setup_.fabric, seen.evidence, row));
    }
  }

  const plan::Setup& setup_;
  route::Router& router_;
  std::vector<probe::PlanLine> lines_;
  std::uint64_t seed_;
  sim::Twin twin_;
  sim::TwinPlan plan_;
  model::State healthy_;
  const model::State* state_ = &healthy_;
  std::size_t next_ = 0;
  std::uint64_t sent_ = 0, lost_ = 0;
};

// What the file's faults do to links and nodes, as episodes.
class Truth {
 public:
  explicit Truth(const model::Fabric& fabric) : fabric_(fabric) {}

  std::string lines(const plan::Setup& setup) {
    for (const auto& change : setup.changes) {
      const Timestamp at{change.at.ps / ps_per_ns};
      std::map<Key, double> now;
      for (const auto& [link, condition] : change.state.troubled_links())
        note(fabric_.name(link), "link_down", condition, now);
      for (const auto& [node, condition] : change.state.troubled_nodes())
        note(fabric_.name(node), "switch_down", condition, now);
      std::erase_if(open_, [&](const auto& entry) {
        const auto still = now.find(entry.first);
        const bool ends = still == now.end() || still->second != entry.second.second;
        if (ends) close(entry.first, entry.second, at);
        return ends;
      });
      for (const auto& [key, rate] : now) open_.emplace(key, std::pair(at, rate));
    }
    for (const auto& [key, since] : open_) close(key, since, model::still_open);
    return out_;
  }

 private:
  using Key = std::pair<std::string, std::string>;  // entity, kind
  using Since = std::pair<Timestamp, double>;       // and the loss

  static void note(const std::string& name, const char* down, const model::Condition& condition,
                   std::map<Key, double>& now) {
    if (condition.health == model::Health::down) now.emplace(Key{name, down}, 1.0);
    if (condition.loss > 0) now.emplace(Key{name, "loss"}, condition.loss);
  }
  void close(const Key& key, const Since& since, Timestamp end) {
    model::Episode episode{.id = fmt::format("f{}", ++count_),
                           .kind = key.second,
                           .entities = {key.first},
                           .start = since.first,
                           .end = end,
                           .attrs = {}};
    if (key.second == "loss") episode.attrs = {{"rate", fmt::format("{}", since.second)}};
    out_ += model::to_json(episode) + "\n";
  }

  const model::Fabric& fabric_;
  std::map<Key, Since> open_;
  std::size_t count_ = 0;
  std::string out_;
};

Result<std::vector<probe::PlanLine>> read_lines(const ProbeArgs& args,
                                                const model::Fabric& fabric) {
  if (args.plan.empty())
    return fail(Errc::value, {"--twin", 0, 0}, "the twin needs a probe plan",
                "make one: weft probe plan --fabric F --crossings 1000 --json > plan.jsonl");
  WEFT_TRY(LineReader lines, LineReader::open(args.plan));
  WEFT_TRY(std::vector<probe::PlanLine> plan, probe::read_plan(fabric, lines));
  if (plan.empty())
    return fail(Errc::value, {args.plan, 0, 0}, "the plan is empty", "add flows to the plan");
  return plan;
}

Status run_twin(const Common& common, const ProbeArgs& args) {
  if (args.fabric.empty())
    return fail(Errc::value, {"--twin", 0, 0}, "the twin needs a fabric", "add --fabric");
  WEFT_TRY(const TwinTimes times, read_times(args));
  WEFT_TRY(const model::LoadOptions options, common.load_options(fabric_file_keys()));
  WEFT_TRY(const model::ScenarioFile file, model::load_scenario(args.fabric, options));
  const model::Scenario& scenario = file.variants.front();
  WEFT_TRY(const plan::Setup setup, plan::read_setup(scenario));
  WEFT_TRY(route::Router router, route::Router::create(setup.fabric, setup.routing, scenario.seed));
  WEFT_TRY(std::vector<probe::PlanLine> lines, read_lines(args, setup.fabric));
  if (!args.truth.empty())
    WEFT_TRY_STATUS(write_file(args.truth, Truth(setup.fabric).lines(setup)));
  TwinRun run(setup, router, std::move(lines), scenario.seed);
  run.run(times, common.json);
  if (!common.json)
    fmt::print("{} of {}: {} lost\n", counted(run.sent(), "probe"), counted(run.flows(), "flow"),
               run.lost());
  return {};
}

}  // namespace

int probe_twin_command(const Common& common, const ProbeArgs& args) {
  const Status status = run_twin(common, args);
  return status ? done : report(status.error());
}

}  // namespace weft::cli
