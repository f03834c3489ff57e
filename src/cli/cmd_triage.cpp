#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "adapt/live/system_clock.hpp"
#include "adapt/sim/score.hpp"
#include "base/file.hpp"
#include "base/line_reader.hpp"
#include "base/plural.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/telemetry_files.hpp"
#include "model/events/episode.hpp"
#include "model/events/record.hpp"
#include "observe/telemetry/message_miner.hpp"
#include "observe/telemetry/syslog_reader.hpp"
#include "operate/triage/diff.hpp"
#include "operate/triage/learner.hpp"
#include "operate/triage/report.hpp"
#include "operate/triage/triage.hpp"

namespace weft::cli {
namespace {

struct TriageArgs {
  std::vector<std::string> inputs;   // files; "-" is standard input
  std::vector<std::string> records;  // more of them, always records
  std::string format = "records";    // of the inputs
  std::string inventory, catalogue;  // for raw syslog; empty: none
  std::string reference;             // the year of its stamps; empty: now
  std::string fabric, rules, diff, maintenance, lateness, truth;
  std::string relations, diff_relations;  // learned ones; empty: none
  std::string learn;                      // file to write relations to, instead of cases
  std::uint32_t ports_per_card = 0;       // 0: as the rules say
  bool show_rules = false, propose = false;
};

namespace sim = adapt::sim;
namespace telemetry = observe::telemetry;
namespace triage = operate::triage;

constexpr std::size_t piece_rows = 8192;
constexpr std::size_t pieces_ahead = 64;  // that an input is looked at before its first record
constexpr std::uint64_t prune_every = 65'536;

// One file in order of receipt, read a piece ahead by a thread of its own where more than one may
// be used. So many pieces are sorted and merged that disorder within half a million records does
// not matter; where they overlap by more than the lateness, the whole file is taken first.
class RecordInput {
 public:
  static Result<std::unique_ptr<RecordInput>> open(const model::Fabric& fabric,
                                                   const std::string& path, std::launch policy,
                                                   std::int64_t lateness_ns) {
    WEFT_TRY(LineReader lines, LineReader::open(path));
    auto out = std::make_unique<RecordInput>(fabric, std::move(lines), policy, lateness_ns);
    WEFT_TRY_STATUS(out->settle());
    return out;
  }
  RecordInput(const model::Fabric& fabric, LineReader lines, std::launch policy,
              std::int64_t lateness_ns)
      : lines_(std::move(lines)),
        stream_(std::in_place, fabric, *lines_),
        policy_(policy),
        lateness_ns_(lateness_ns) {
    prefetch();
  }
  // Records that are there already.
  explicit RecordInput(model::RecordSet set) {
    if (set.rows.empty()) return;
    take(std::move(set));
    std::swap(current_, waiting_.front());
    waiting_.clear();
  }

  // nullptr at the end.
  const model::Record* head() const { return current_ ? &current_->head() : nullptr; }
  const model::RecordSet& set() const { return current_->set; }
  Status pop() {
    released_ns_ = head()->received.ns;
    if (++current_->at == current_->set.rows.size()) current_.reset();
    return settle();
  }
  // Records that came behind later ones which had been let go already; only at the end.
  std::uint64_t misplaced() const { return misplaced_; }
  const std::string& file() const { return lines_->file(); }
  // Only at the end.
  model::RecordCounts counts() const { return stream_ ? stream_->counts() : model::RecordCounts{}; }
  Errors refused() const { return stream_ ? stream_->refused() : Errors{}; }

 private:
  struct Piece {
    model::RecordSet set;  // its rows by time of receipt
    std::size_t at = 0;
    std::uint64_t number = 0;  // as the file has them
    const model::Record& head() const { return set.rows[at]; }
  };
  static bool is_after(const std::unique_ptr<Piece>& a, const std::unique_ptr<Piece>& b) {
    return std::pair(a->head().received, a->number) > std::pair(b->head().received, b->number);
  }

  void prefetch() {
    ahead_ = std::async(policy_, [this] { return stream_->next(piece_rows); });
  }
  void take(model::RecordSet set) {
    std::ranges::stable_sort(set.rows, {}, &model::Record::received);
    const std::int64_t first = set.rows.empty() ? newest_ns_ : set.rows.front().received.ns;
    if (first < newest_ns_ - lateness_ns_) is_mixed_ = true;
    for (const model::Record& row : set.rows) {
      if (row.received.ns >= released_ns_ - lateness_ns_) break;
      ++misplaced_;
    }
    if (!set.rows.empty()) newest_ns_ = std::max(newest_ns_, set.rows.back().received.ns);
    waiting_.push_back(std::make_unique<Piece>(std::move(set), 0, pieces_++));
    std::ranges::push_heap(waiting_, is_after);
  }
  // Fills up, and makes the piece the current one that has the next record.
  Status settle() {
    while (ahead_.valid() && (is_mixed_ || waiting_.size() < pieces_ahead)) {
      WEFT_TRY(model::RecordSet set, ahead_.get());
      if (set.rows.empty()) break;
      prefetch();
      take(std::move(set));
    }
    if (waiting_.empty() || (current_ && !is_after(current_, waiting_.front()))) return {};
    std::ranges::pop_heap(waiting_, is_after);
    std::swap(current_, waiting_.back());
    if (waiting_.back())
      std::ranges::push_heap(waiting_, is_after);
    else
      waiting_.pop_back();
    return {};
  }

  std::optional<LineReader> lines_;
  std::optional<model::RecordStream> stream_;
  std::launch policy_ = std::launch::deferred;
  std::future<Result<model::RecordSet>> ahead_;
  std::unique_ptr<Piece> current_;               // none: at the end
  std::vector<std::unique_ptr<Piece>> waiting_;  // a heap, the next record on top
  std::int64_t lateness_ns_ = 0;
  std::int64_t newest_ns_ = INT64_MIN / 2, released_ns_ = INT64_MIN / 2;
  std::uint64_t pieces_ = 0, misplaced_ = 0;
  bool is_mixed_ = false;
};

// Raw syslog, as the catalogue and the inventory of --inventory and --catalogue understand it; what
// they do not goes to `unknown`, if there is one.
Result<model::RecordSet> read_syslog(const Common& common, const TriageArgs& args,
                                     const model::Fabric& fabric, std::size_t input,
                                     telemetry::MessageMiner* unknown = nullptr) {
  const std::string& path = args.inputs[input];
  WEFT_TRY(const telemetry::Inventory inventory, load_inventory(fabric, args.inventory));
  WEFT_TRY(const telemetry::Catalogue catalogue, load_catalogue(args.catalogue));
  Timestamp reference = adapt::live::SystemClock().wall();
  if (!args.reference.empty()) {
    WEFT_TRY(reference, parse_timestamp({args.reference, {"--reference", 0, 0}}));
  }
  telemetry::SyslogReader reader(inventory, catalogue,
                                 {.id_prefix = input == 0 ? "s" : fmt::format("s{}-", input + 1),
                                  .reference = reference,
                                  .unknown = unknown});
  WEFT_TRY_STATUS(telemetry::read_syslog_file(path, reader));
  if (!common.quiet) fmt::print(stderr, "{}", telemetry::to_text(reader.counts()));
  return reader.take_records();
}

// Rows of the catalogue for the messages of the inputs that are in none.
Status propose(const Common& common, const TriageArgs& args, const model::Fabric& fabric) {
  if (args.format != "syslog")
    return fail(Errc::value, {}, "--propose reads raw syslog", "add --format syslog");
  telemetry::MessageMiner miner;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    WEFT_TRY_STATUS(read_syslog(common, args, fabric, i, &miner));
  }
  const auto proposals = miner.proposals();
  if (common.json)
    for (const telemetry::Proposal& p : proposals) fmt::print("{}\n", to_json(p));
  else
    fmt::print("{}", telemetry::to_yaml(proposals));
  if (miner.dropped() > 0 && !common.quiet)
    fmt::print(stderr, "weft: note: {} messages are in no proposal: too many kinds, or no key\n",
               miner.dropped());
  return {};
}

// Ids of the records that cases may still hold, by serial.
class Ids {
 public:
  std::uint64_t next() const { return first_ + ids_.size(); }
  void add(const std::string& id) { ids_.push_back(id); }
  std::string_view of(std::uint64_t serial) const { return ids_[serial - first_]; }
  void forget_before(std::uint64_t serial) {
    for (; first_ < serial && !ids_.empty(); ++first_) ids_.pop_front();
  }

 private:
  std::uint64_t first_ = 0;
  std::deque<std::string> ids_;
};

Result<triage::Rules> load_rules(const TriageArgs& args, const std::string& path) {
  triage::Rules rules = triage::default_rules();
  if (!path.empty()) {
    WEFT_TRY(const Config config, load_yaml(path));
    WEFT_TRY(rules, triage::read_rules(config));
  }
  if (args.ports_per_card > 0) rules.cards.ports = args.ports_per_card;
  if (args.lateness.empty()) return rules;
  WEFT_TRY(const Duration lateness, parse_duration({args.lateness, {"--lateness", 0, 0}}));
  if (lateness.ps < 0 || lateness > 604'800_s)
    return fail(Errc::value, {"--lateness", 0, 0}, "must be from 0 s to 7 d",
                "write e.g. \"30 s\"");
  rules.timing.lateness_ns = lateness.ps / ps_per_ns;
  return rules;
}

Result<triage::LearnedRelations> load_relations(const std::string& path,
                                                const triage::Rules& rules) {
  if (path.empty()) return triage::LearnedRelations();
  WEFT_TRY(const Config config, load_yaml(path));
  return triage::LearnedRelations::read(config, rules);
}

Result<std::unique_ptr<triage::Context>> make_context(const model::Fabric& fabric,
                                                      const TriageArgs& args,
                                                      const std::string& rules_path,
                                                      const std::string& relations_path) {
  WEFT_TRY(const triage::Rules rules, load_rules(args, rules_path));
  WEFT_TRY(triage::LearnedRelations relations, load_relations(relations_path, rules));
  auto context = std::make_unique<triage::Context>(fabric, rules, std::move(relations));
  if (args.maintenance.empty()) return context;
  WEFT_TRY(LineReader lines, LineReader::open(args.maintenance));
  WEFT_TRY(const auto episodes, model::read_episodes(lines));
  auto windows = triage::Maintenance::create(context->parts, context->suspects, episodes);
  if (!windows) {
    Error error = std::move(windows).error();
    error.where.file = args.maintenance;
    return std::unexpected(std::move(error));
  }
  context->maintenance = *std::move(windows);
  return context;
}

// All inputs through one or two sets of rules.
class RecordReplay {
 public:
  RecordReplay(const Common& common, const TriageArgs& args, const model::Fabric& fabric)
      : common_(common), args_(args), fabric_(fabric) {}

  Status run() {
    WEFT_TRY(const auto context, make_context(fabric_, args_, args_.rules, args_.relations));
    if (!args_.learn.empty()) return learn(*context);
    std::unique_ptr<triage::Context> other;
    if (is_diff()) {
      WEFT_TRY(other,
               make_context(fabric_, args_, args_.diff.empty() ? args_.rules : args_.diff,
                            args_.diff_relations.empty() ? args_.relations : args_.diff_relations));
    }
    WEFT_TRY_STATUS(open_inputs(context->rules.timing.lateness_ns));
    triage::Triage first(*context, [this](model::Case c) { take(std::move(c)); });
    std::optional<triage::Triage> second;
    if (other) second.emplace(*other, [this](model::Case c) { after_.push_back(std::move(c)); });
    WEFT_TRY_STATUS(feed(first, second));
    first.finish();
    if (second) second->finish();
    tell_counts(first.counts());
    WEFT_TRY_STATUS(refuse_rubbish(first.counts().records.unplaced));
    WEFT_TRY_STATUS(print());
    return refuse_disorder();
  }

 private:
  bool is_diff() const { return !args_.diff.empty() || !args_.diff_relations.empty(); }
  // Cases as JSON leave at once, so that months of input need no more memory than hours.
  bool is_streamed() const { return common_.json && !is_diff() && args_.truth.empty(); }

  // Writes down which kinds of events lead to which in the inputs.
  Status learn(const triage::Context& context) {
    WEFT_TRY_STATUS(open_inputs(context.rules.timing.lateness_ns));
    triage::Learner learner(context.parts, context.rules);
    std::uint64_t records = 0;
    for (RecordInput* input = next_input(); input != nullptr; input = next_input(), ++records) {
      learner.add(input->set(), *input->head());
      WEFT_TRY_STATUS(input->pop());
    }
    tell_input_counts();
    WEFT_TRY_STATUS(refuse_rubbish());
    WEFT_TRY_STATUS(refuse_disorder());
    const auto relations = learner.learn();
    WEFT_TRY_STATUS(write_file(
        args_.learn,
        triage::to_yaml(
            relations,
            fmt::format("Learned by weft triage --learn from {} records, {} of them faults.",
                        records, learner.event_count()))));
    if (!common_.quiet)
      fmt::print(stderr, "weft: note: {} relations in {}\n", relations.size(), args_.learn);
    return {};
  }

  void take(model::Case c) {
    if (is_streamed())
      fmt::print("{}\n", json_of(c));
    else
      before_.push_back(std::move(c));
  }
  std::string json_of(const model::Case& c) const {
    return triage::to_json(fabric_, c, [this](std::uint64_t serial) { return ids_.of(serial); });
  }

  Status open_inputs(std::int64_t lateness_ns) {
    const auto policy = common_.threads == 1 ? std::launch::deferred : std::launch::async;
    if (args_.format == "syslog")
      for (std::size_t i = 0; i < args_.inputs.size(); ++i) {
        WEFT_TRY(model::RecordSet set, read_syslog(common_, args_, fabric_, i));
        inputs_.push_back(std::make_unique<RecordInput>(std::move(set)));
      }
    for (const auto* paths : {args_.format == "syslog" ? nullptr : &args_.inputs, &args_.records})
      if (paths != nullptr)
        for (const std::string& path : *paths) {
          WEFT_TRY(inputs_.emplace_back(), RecordInput::open(fabric_, path, policy, lateness_ns));
        }
    return {};
  }

  // The input whose next record was received first; of several the first named.
  RecordInput* next_input() {
    RecordInput* best = nullptr;
    for (const auto& input : inputs_)
      if (input->head() != nullptr &&
          (best == nullptr || input->head()->received < best->head()->received))
        best = input.get();
    return best;
  }

  Status feed(triage::Triage& first, std::optional<triage::Triage>& second) {
    for (RecordInput* input = next_input(); input != nullptr; input = next_input()) {
      const model::Record& record = *input->head();
      const bool is_kept = first.add(input->set(), record, ids_.next());
      const bool is_kept_too = second && second->add(input->set(), record, ids_.next());
      if (is_kept || is_kept_too) ids_.add(input->set().ids[record.id]);
      if (is_streamed() && ids_.next() >= prune_at_) {
        prune_at_ = ids_.next() + prune_every;
        ids_.forget_before(std::min(first.oldest_serial(), ids_.next()));
      }
      WEFT_TRY_STATUS(input->pop());
    }
    return {};
  }

  // An input of which nothing is a record is the wrong file; so is one with lines that are none,
  // where the records between them, `unplaced`, speak of nothing that the fabric has.
  Status refuse_rubbish(std::uint64_t unplaced = 0) const {
    std::uint64_t records = 0;
    for (const auto& input : inputs_) records += input->counts().lines;
    for (const auto& input : inputs_)
      if (const auto counts = input->counts();
          counts.malformed > 0 && (counts.lines == 0 || records == unplaced))
        return std::unexpected(combine(input->refused()));
    return {};
  }

  // Where not even the records looked at ahead were enough to put an input in order.
  Status refuse_disorder() const {
    Errors errors;
    for (const auto& input : inputs_)
      if (input->misplaced() > 0)
        errors.push_back(
            {Errc::value,
             {input->file(), 0, 0},
             fmt::format("{} behind more than {} that were received later",
                         counted(input->misplaced(), "record"), piece_rows * pieces_ahead),
             "name the files one by one: several are merged by time",
             {}});
    return errors.empty() ? Status{} : std::unexpected(combine(std::move(errors)));
  }

  static void note(std::uint64_t count, const char* what) {
    if (count > 0)
      fmt::print(stderr, "weft: note: {} {} {}\n", counted(count, "record"),
                 count == 1 ? "is" : "are", what);
  }

  void tell_input_counts() const {
    if (common_.quiet) return;
    std::uint64_t malformed = 0, duplicates = 0, unknown_kinds = 0;
    for (const auto& input : inputs_) {
      malformed += input->counts().malformed;
      for (const Error& error : input->refused())
        fmt::print(stderr, "weft: note: not a record: {}\n", error.text());
      duplicates += input->counts().duplicates;
      unknown_kinds += input->counts().unknown_kinds;
    }
    note(malformed, "malformed and ignored");
    note(duplicates, "repeated (same id) and counted once");
    note(unknown_kinds, "of an unknown kind");
  }

  void tell_counts(const triage::Triage::Counts& counts) const {
    if (common_.quiet) return;
    tell_input_counts();
    note(counts.records.unplaced, "refer to entities that are not in the fabric, or to none");
    note(counts.records.wrong_clocks, "have a wrong clock and were placed by time of receipt");
    note(counts.queue.late, "came too late and were ignored");
    note(counts.queue.ahead, "are too far in the future and were ignored");
    note(counts.cases.dismissed, "are not enough for a case");
  }

  Status print() const {
    if (!args_.truth.empty()) return print_score();
    if (is_diff()) {
      const auto changes = triage::diff(before_, after_);
      fmt::print("{}", common_.json ? triage::diff_json(fabric_, before_, after_, changes)
                                    : triage::diff_table(fabric_, before_, after_, changes));
    } else if (!common_.json) {
      fmt::print("{}", triage::to_table(fabric_, before_));
    }
    return {};
  }

  Status print_score() const {
    WEFT_TRY(LineReader truth_lines, LineReader::open(args_.truth + "/truth.jsonl"));
    WEFT_TRY(const auto truth, model::read_episodes(truth_lines));
    WEFT_TRY(LineReader label_lines, LineReader::open(args_.truth + "/labels.jsonl"));
    WEFT_TRY(const sim::StormLabels labels, sim::read_labels(label_lines));
    std::vector<sim::ScoredCase> cases;
    for (const model::Case& c : before_) {
      sim::ScoredCase& out = cases.emplace_back();
      out = {c.id, std::string(model::to_text(c.kind)), model::root_name(fabric_, c), {}};
      for (const auto& member : c.members) out.members.emplace_back(ids_.of(member.serial));
    }
    WEFT_TRY(const sim::Score score, sim::score_cases(truth, labels, cases));
    fmt::print("{}", common_.json ? sim::to_json(score) : sim::to_table(score));
    if (!common_.json && !common_.quiet)
      for (const std::string& line : score.wrong) fmt::print(stderr, "weft: note: {}\n", line);
    return {};
  }

  const Common& common_;
  const TriageArgs& args_;
  const model::Fabric& fabric_;
  std::vector<std::unique_ptr<RecordInput>> inputs_;
  Ids ids_;
  std::uint64_t prune_at_ = prune_every;
  std::vector<model::Case> before_, after_;
};

Status refuse_syslog_options(const TriageArgs& args) {
  if (args.format == "syslog") return {};
  for (const auto& [option, value] : {std::pair("--inventory", &args.inventory),
                                      {"--reference", &args.reference},
                                      {"--catalogue", &args.catalogue}})
    if (!value->empty())
      return fail(Errc::value, {option, 0, 0}, "it applies to raw syslog alone",
                  "add --format syslog, or leave it out");
  return {};
}

Status run_triage(const Common& common, const TriageArgs& args) {
  if (args.show_rules) {
    fmt::print("{}", triage::default_rules_text());
    return {};
  }
  if (args.inputs.empty() || args.fabric.empty())
    return fail(Errc::parse, {}, "inputs and --fabric are required",
                "use weft triage RECORDS --fabric F");
  WEFT_TRY_STATUS(refuse_syslog_options(args));
  WEFT_TRY(const model::Fabric fabric, load_fabric(common, args.fabric));
  if (args.propose) return propose(common, args, fabric);
  return RecordReplay(common, args, fabric).run();
}

}  // namespace

void add_triage(Commands& commands) {
  const auto [command, args] = commands.add<TriageArgs>(
      "triage", "Group recorded events into cases, each with its root cause", run_triage);
  command.add_option("inputs", args.inputs, "Records: JSON lines; - for standard input");
  command.add_option("--format", args.format, "Type of the inputs: records, or raw syslog")
      ->check(CLI::IsMember({"records", "syslog"}))
      ->capture_default_str();
  command.add_option("--records", args.records, "Additional records, alongside raw syslog");
  command.add_option("--inventory", args.inventory,
                     "CSV for raw syslog: address,device[,interface][,zone]");
  command.add_option("--reference", args.reference,
                     "Approximate time of the raw syslog, for timestamps without a year (now)");
  command.add_option("--catalogue", args.catalogue, "YAML with additional raw syslog messages");
  command.add_option("--fabric", args.fabric, "Scenario or fabric file");
  command.add_option("--rules", args.rules, "YAML file merged over the default rules");
  command.add_option("--diff", args.diff, "Second rules file: show which cases change");
  command.add_option("--relations", args.relations, "Learned relations to use with the rules");
  command.add_option("--diff-relations", args.diff_relations,
                     "Second relations file: show which cases change");
  command.add_option("--maintenance", args.maintenance, "Maintenance windows: JSON lines");
  command.add_option("--lateness", args.lateness,
                     "How far a record may lag behind the newest, e.g. \"30 s\"");
  command.add_option("--truth", args.truth, "Directory of a storm: score the cases instead");
  command
      .add_option("--learn", args.learn,
                  "Learn relations from the inputs and write them to this file, instead of cases")
      ->excludes("--diff", "--diff-relations", "--relations", "--truth");
  command.add_option("--ports-per-card", args.ports_per_card, "Ports per line card")
      ->check(CLI::Range(1, 4096));
  command
      .add_flag("--propose", args.propose,
                "Propose catalogue rows for the messages of raw syslog that are in none")
      ->excludes("--diff", "--diff-relations", "--learn", "--truth");
  Commands::add_lone_flag(command, "--show-rules", args.show_rules, "Print the default rules");
}

}  // namespace weft::cli
