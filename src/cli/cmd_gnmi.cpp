#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "adapt/gnmi/subscriber.hpp"
#include "adapt/gnmi/target_file.hpp"
#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "base/file.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/telemetry_files.hpp"
#include "observe/telemetry/inventory.hpp"
#include "observe/telemetry/metric_rules.hpp"
#include "observe/telemetry/metrics.hpp"

namespace weft::cli {
namespace {

struct GnmiArgs {
  std::string targets;                        // CSV
  std::string fabric, rules;                  // none: samples instead of records
  std::string addresses;                      // CSV of what is named otherwise than in the fabric
  std::vector<std::string> paths, on_change;  // none: the usual ones
  std::string mode = "stream", encoding = "auto";
  std::string every = "10 s", silence = "30 s", duration;
};

namespace gnmi = adapt::gnmi;
namespace telemetry = observe::telemetry;
using adapt::live::Signals;

template <class Choice, std::size_t n>
Result<Choice> choose(const std::array<std::pair<std::string_view, Choice>, n>& choices,
                      const std::string& name, const char* option) {
  std::vector<std::string> known;
  for (const auto& [text, choice] : choices) {
    if (text == name) return choice;
    known.emplace_back(text);
  }
  return fail(Errc::unknown, {option, 0, 0},
              fmt::format("unknown name {}{}", quote(name), did_you_mean(name, known)),
              fmt::format("choose one of: {}", fmt::join(known, ", ")));
}

Result<gnmi::SubscriberOptions> read_options(const GnmiArgs& args) {
  using enum gnmi::Encoding;
  constexpr std::array<std::pair<std::string_view, gnmi::Mode>, 3> modes{
      {{"stream", gnmi::Mode::stream}, {"once", gnmi::Mode::once}, {"poll", gnmi::Mode::poll}}};
  constexpr std::array<std::pair<std::string_view, gnmi::Encoding>, 4> encodings{
      {{"auto", automatic}, {"proto", proto}, {"json_ietf", json_ietf}, {"json", json}}};
  gnmi::SubscriberOptions out;
  WEFT_TRY(out.mode, choose(modes, args.mode, "--mode"));
  WEFT_TRY(out.encoding, choose(encodings, args.encoding, "--encoding"));
  WEFT_TRY(out.sample_ns, read_span_ns(args.every, "--every"));
  WEFT_TRY(out.silence_ns, read_span_ns(args.silence, "--silence"));
  if (!args.paths.empty() || !args.on_change.empty()) out.subscriptions.clear();
  for (const std::string& path : args.on_change)
    out.subscriptions.push_back({path, gnmi::Trigger::on_change});
  for (const std::string& path : args.paths) out.subscriptions.push_back({path});
  return out;
}

// What records need: it stays where it is.
struct Meaning {
  model::Fabric fabric;
  telemetry::Inventory inventory;
  telemetry::MetricRules rules = telemetry::default_metric_rules();
  std::optional<telemetry::MetricReader> reader;

  explicit Meaning(model::Fabric its) : fabric(std::move(its)), inventory(fabric) {}
  Meaning(const Meaning&) = delete;
  Meaning& operator=(const Meaning&) = delete;
};

Result<std::unique_ptr<Meaning>> load_meaning(const Common& common, const GnmiArgs& args) {
  if (args.fabric.empty()) return nullptr;
  WEFT_TRY(model::Fabric fabric, load_fabric(common, args.fabric));
  auto out = std::make_unique<Meaning>(std::move(fabric));
  WEFT_TRY(out->inventory, load_inventory(out->fabric, args.addresses));
  WEFT_TRY(out->rules, load_metric_rules(args.rules));
  out->reader.emplace(
      out->inventory, out->rules,
      telemetry::MetricReader::Options{.source = model::Source::gnmi, .id_prefix = "g"});
  return out;
}

void print_samples(const std::vector<port::Sample>& samples, const Common& common) {
  for (const port::Sample& one : samples) {
    if (common.json)
      fmt::print("{}\n", to_json(one));
    else
      fmt::print("{} {} {} {}[{}] = {}\n", to_text(one.t), one.device,
                 one.component.empty() ? "-" : one.component, to_text(one.metric), one.index,
                 one.value);
  }
}

void print_records(const std::vector<port::Sample>& samples, Timestamp received, Meaning& meaning) {
  meaning.reader->take(samples, received);
  const model::RecordSet set = meaning.reader->take_records();
  for (const model::Record& row : set.rows) fmt::print("{}\n", to_json(meaning.fabric, set, row));
}

// Exit status: a target that never said all it had is work that failed.
int finish(const gnmi::GnmiSubscriber& subscriber, const Meaning* meaning, const Common& common) {
  int status = done;
  for (const gnmi::TargetReport& target : subscriber.targets()) {
    for (const std::string& path : target.refused)
      if (!common.quiet)
        fmt::print(stderr, "weft: note: {} does not have {}\n", target.device, path);
    if (target.decoded.samples > 0) continue;
    status = work_failed;
    fmt::print(stderr, "weft: error: {} sent no samples: {}\n", target.device,
               target.last_error.empty() ? "it sent no known paths" : target.last_error);
  }
  if (common.quiet) return status;
  if (meaning != nullptr) fmt::print(stderr, "{}", telemetry::to_text(meaning->reader->counts()));
  constexpr std::size_t rows_shown = 20;
  const auto rows = subscriber.misread().rows();
  for (std::size_t i = 0; i < std::min(rows.size(), rows_shown); ++i)
    fmt::print(stderr, "weft: note: {} values not used, {}: {}\n", rows[i].count,
               to_text(rows[i].why), rows[i].path);
  if (rows.size() > rows_shown)
    fmt::print(stderr, "weft: note: and {} more paths\n", rows.size() - rows_shown);
  return status;
}

Result<int> run_gnmi(const Common& common, const GnmiArgs& args) {
  if (args.targets.empty())
    return fail(Errc::parse, {"--targets", 0, 0}, "no targets given",
                "specify a CSV file with columns device and address");
  WEFT_TRY(const gnmi::SubscriberOptions options, read_options(args));
  WEFT_TRY(const std::string text, read_file(args.targets));
  WEFT_TRY(const std::vector<gnmi::Target> targets, gnmi::read_targets(text, args.targets));
  WEFT_TRY(const auto meaning, load_meaning(common, args));
  WEFT_TRY(Signals signals, Signals::open());
  adapt::live::SystemClock clock;
  port::Instant end{std::numeric_limits<std::int64_t>::max()};
  if (!args.duration.empty()) {
    WEFT_TRY(const std::int64_t span, read_span_ns(args.duration, "--duration"));
    end = clock.now() + span;
  }
  WEFT_TRY(gnmi::GnmiSubscriber subscriber, gnmi::GnmiSubscriber::open(targets, options, clock));
  constexpr std::size_t samples_max = 10'000;
  while (!subscriber.done() && clock.now() < end && signals.take() != Signals::Seen::stop) {
    const auto samples = subscriber.take(samples_max, std::min(end, clock.now() + turn_ns));
    if (meaning)
      print_records(samples, clock.wall(), *meaning);
    else
      print_samples(samples, common);
    std::fflush(stdout);
  }
  return finish(subscriber, meaning.get(), common);
}

int gnmi_command(const Common& common, const GnmiArgs& args) {
  const auto status = run_gnmi(common, args);
  return status ? *status : report(status.error());
}

}  // namespace

void add_gnmi(Commands& commands) {
  const auto [command, args] = commands.add<GnmiArgs>(
      "gnmi", "Subscribe to device telemetry (gNMI); print records or samples", gnmi_command);
  command.add_option("--targets", args.targets,
                     "CSV: device, address and credentials (see docs/gnmi.md)");
  command.add_option("--fabric", args.fabric,
                     "Scenario or fabric file; prints records instead of samples");
  command.add_option("--rules", args.rules, "YAML merged over the default sample rules");
  command.add_option("--addresses", args.addresses, "CSV with names that are not in the fabric");
  command.add_option("--mode", args.mode, "stream, once or poll");
  command.add_option("--encoding", args.encoding, "auto, proto, json_ietf or json");
  command.add_option("--every", args.every, "Sample interval");
  command.add_option("--silence", args.silence,
                     "A target silent for this long is reported unreachable");
  command.add_option("--duration", args.duration, "How long to run; default: until stopped");
  command.add_option("--path", args.paths, "Path to sample (SAMPLE) instead of the default paths");
  command.add_option("--on-change", args.on_change, "Path to subscribe to on change (ON_CHANGE)");
}

}  // namespace weft::cli
