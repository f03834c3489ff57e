#include "observe/detect/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"

namespace weft::observe::detect {
namespace {

using model::EventKind;

constexpr std::int64_t span_ns_max = std::int64_t{24} * 3600 * ns_per_s;
constexpr std::int64_t window_ns_min = 1'000'000;
constexpr double limit_max = 1e18;
constexpr std::size_t depth_max = 16;

template <std::size_t n>
std::vector<std::string> to_strings(const std::array<std::string_view, n>& names) {
  return {names.begin(), names.end()};
}

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < port::metric_count; ++i)
      out.emplace_back(to_text(static_cast<port::Metric>(i)));
    return out;
  }();
  return names;
}

std::int64_t read_ns(Reader& reader, std::string_view key, std::optional<std::int64_t> fallback,
                     std::int64_t least) {
  std::optional<Duration> other;
  if (fallback) other = Duration{*fallback * ps_per_ns};
  const bool is_given = reader.has(key);
  const std::int64_t ns = reader.duration(key, other).ps / ps_per_ns;
  if (!is_given || (ns >= least && ns <= span_ns_max)) return ns;
  reader.error(Errc::value, reader.where(key),
               fmt::format("\"{}\" is outside {} to 24 h", key, least == 0 ? "0 s" : "1 ms"),
               "write e.g. \"5 s\"");
  return least;
}

Part read_part(Reader& reader, std::string_view key, std::optional<Part> fallback) {
  static const std::vector<std::string> names = to_strings(part_names);
  std::optional<std::size_t> other;
  if (fallback) other = static_cast<std::size_t>(*fallback);
  return static_cast<Part>(reader.choice(key, names, other));
}

Kinds read_kinds(Reader& reader, std::string_view key) {
  Kinds out;
  for (const Token& name : reader.texts(key)) {
    if (const auto kind = model::event_kind(name.text))
      out.set(static_cast<std::size_t>(*kind));
    else
      reader.error(Errc::unknown, name.where,
                   fmt::format("unknown event kind {}{}", quote(name.text),
                               did_you_mean(name.text, model::event_kind_names())),
                   "use event kinds");
  }
  return out;
}

// The condition as steps in postfix order, each with how many results it takes.
struct Step {
  enum class Op : std::uint8_t { term, all, any, negation } op;
  std::size_t operand = 0;  // a term's index, or how many results
};

// Reads one rule's condition: terms, equal ones once, and steps.
class Condition {
 public:
  Condition(Rule& rule, Errors& errors) : rule_(rule), errors_(errors) {}

  void read(const Config& config) {
    node(config, 0, Sense::plain);
    if (rule_.terms.size() > terms_max)
      error(config.where,
            fmt::format("{} different terms, more than {}", rule_.terms.size(), terms_max),
            "split it into two rules");
  }

  // The truth table. The steps must be whole.
  std::vector<bool> table() const {
    std::vector<bool> out(std::size_t{1} << rule_.terms.size());
    std::vector<bool> stack;
    for (std::size_t holding = 0; holding < out.size(); ++holding)
      out[holding] = evaluate(holding, stack);
    return out;
  }

 private:
  enum class Sense : std::uint8_t { plain, negated };

  void error(const Where& where, std::string what, std::string hint, Errc code = Errc::value) {
    errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }

  void node(const Config& config, std::size_t depth, Sense sense) {
    static constexpr std::string_view choices = "all, any, not, count, rate, value, change, absent";
    if (config.kind != Config::Kind::map || config.fields.size() != 1 || depth > depth_max) {
      error(config.where,
            depth > depth_max ? "conditions are nested too deeply"
                              : "a condition must be one key with its value",
            fmt::format("write one of: {}", choices), Errc::parse);
      return;
    }
    const Config::Field& field = config.fields.front();
    if (field.key == "all") return list(field, Step::Op::all, depth, sense);
    if (field.key == "any") return list(field, Step::Op::any, depth, sense);
    if (field.key == "not") {
      node(field.value, depth + 1, sense == Sense::plain ? Sense::negated : Sense::plain);
      steps_.push_back({Step::Op::negation, 1});
      return;
    }
    const auto* const known = std::ranges::find(term_names, field.key);
    if (known != term_names.end())
      return term(field.value, static_cast<TermKind>(known - term_names.begin()), sense);
    std::vector<std::string> names = to_strings(term_names);
    names.insert(names.end(), {"all", "any", "not"});
    error(field.where,
          fmt::format("unknown condition {}{}", quote(field.key), did_you_mean(field.key, names)),
          fmt::format("write one of: {}", choices), Errc::unknown);
  }

  void list(const Config::Field& field, Step::Op op, std::size_t depth, Sense sense) {
    if (field.value.kind != Config::Kind::list || field.value.items.empty()) {
      error(field.value.where, fmt::format("\"{}\" needs a list of conditions", field.key),
            "write one condition per line, each after a dash", Errc::parse);
      return;
    }
    for (const Config& item : field.value.items) node(item, depth + 1, sense);
    steps_.push_back({op, field.value.items.size()});
  }

  void term(const Config& config, TermKind kind, Sense sense) {
    const std::string name(term_names[static_cast<std::size_t>(kind)]);
    Reader reader(config, name, errors_);
    Term out{.kind = kind};
    read_signals(reader, out);
    read_sources(reader, out);
    if (kind == TermKind::count) read_count(reader, out);
    if (kind == TermKind::rate || kind == TermKind::value || kind == TermKind::change)
      read_limit(reader, out);
    out.window_ns = kind == TermKind::absent
                        ? read_ns(reader, "for", {}, window_ns_min)
                        : read_ns(reader, "within", rule_.within_ns, window_ns_min);
    if (kind == TermKind::value) out.for_ns = read_ns(reader, "for", 0, 0);
    reader.finish();
    if (sense == Sense::plain && kind != TermKind::absent)
      for (std::size_t i = 0; i < model::event_kind_count; ++i)
        if (out.signals[i]) rule_.members.set(i);
    const auto same = std::ranges::find(rule_.terms, out);
    steps_.push_back({Step::Op::term, static_cast<std::size_t>(same - rule_.terms.begin())});
    if (same == rule_.terms.end()) rule_.terms.push_back(out);
  }

  void read_signals(Reader& reader, Term& term) {
    const bool takes_kinds = term.kind != TermKind::value && term.kind != TermKind::change;
    const bool takes_metric = term.kind != TermKind::count && term.kind != TermKind::absent;
    if (takes_kinds && reader.has("kind")) {
      const Kinds kinds = read_kinds(reader, "kind");
      for (std::size_t i = 0; i < kinds.size(); ++i) term.signals.set(i, kinds[i]);
    }
    if (takes_metric && reader.has("metric")) read_metric(reader, term);
    const bool is_double =
        takes_kinds && takes_metric && reader.has("kind") && reader.has("metric");
    if (is_double ||
        (!(takes_kinds && reader.has("kind")) && !(takes_metric && reader.has("metric"))))
      reader.error(Errc::value, reader.where(), "a term needs exactly one input",
                   takes_kinds && takes_metric ? "use \"kind\" or \"metric\""
                   : takes_kinds               ? "use \"kind\""
                                               : "use \"metric\"");
  }

  static void read_metric(Reader& reader, Term& term) {
    const auto metric = static_cast<port::Metric>(reader.choice("metric", metric_names(), 0));
    term.signals.set(index(signal(metric)));
    const bool is_growing = is_counter(metric);
    if (is_growing == (term.kind == TermKind::rate)) return;
    reader.error(Errc::value, reader.where("metric"),
                 fmt::format("{} is {}", to_text(metric),
                             is_growing ? "a counter: its absolute value is meaningless"
                                        : "not a counter: it has no rate"),
                 is_growing ? "use \"rate\"" : "use \"value\" or \"change\"");
  }

  static void read_sources(Reader& reader, Term& term) {
    for (const Token& name : reader.texts("source")) {
      if (const auto known = model::source(name.text))
        term.sources.set(static_cast<std::size_t>(*known));
      else
        reader.error(Errc::unknown, name.where,
                     fmt::format("unknown source {}{}", quote(name.text),
                                 did_you_mean(name.text, model::source_names())),
                     fmt::format("give one of: {}", fmt::join(model::source_names(), ", ")));
    }
  }

  void read_count(Reader& reader, Term& term) {
    term.at_least = static_cast<std::uint32_t>(reader.count("at_least", 1, 1, group_events_max));
    if (reader.has("distinct")) term.distinct = read_part(reader, "distinct", Part::port);
    if (!reader.has("share_of_ports")) return check_distinct(reader, term);
    term.share_of_ports = reader.number("share_of_ports", 1.0, 1e-6, 1);
    if (reader.has("at_least") || (term.distinct && term.distinct != Part::port))
      reader.error(Errc::value, reader.where("share_of_ports"),
                   "share_of_ports counts ports and is itself the minimum",
                   "remove \"at_least\" and \"distinct\"");
    if (rule_.per != Part::card && rule_.per != Part::device && rule_.per != Part::host)
      reader.error(Errc::value, reader.where("share_of_ports"),
                   fmt::format("a {} has no ports to take a share of", to_text(rule_.per)),
                   "use it with \"per: card\", \"per: device\" or \"per: host\"");
    if (rule_.per != Part::host)
      term.distinct = Part::port;
    else
      term.distinct = Part::nic;
  }

  void check_distinct(Reader& reader, const Term& term) const {
    if (!term.distinct || term.at_least <= 1) return;
    const bool is_one = *term.distinct == rule_.per || *term.distinct == Part::device ||
                        *term.distinct == Part::host || rule_.per == Part::port ||
                        rule_.per == Part::nic;
    if (is_one)
      reader.error(Errc::value, reader.where("at_least"),
                   fmt::format("can never be true: a {} belongs to one {}", to_text(rule_.per),
                               to_text(*term.distinct)),
                   "count smaller components, or group by larger ones with \"per\"");
  }

  static void read_limit(Reader& reader, Term& term) {
    if (reader.has("above") == reader.has("below")) {
      reader.error(Errc::value, reader.where(), "a limit must be either \"above\" or \"below\"",
                   "give one of them");
      return;
    }
    term.side = reader.has("above") ? Side::above : Side::below;
    const std::string_view key = term.side == Side::above ? "above" : "below";
    term.limit = reader.number(key, {}, -limit_max, limit_max);
    if (term.kind != TermKind::rate) return;
    if (term.side == Side::below ? term.limit <= 0 : term.limit < 0)
      reader.error(Errc::value, reader.where(key),
                   fmt::format("can {} be false: no rate is below 0",
                               term.side == Side::below ? "never" : "not"),
                   "use a larger limit");
  }

  bool evaluate(std::size_t holding, std::vector<bool>& stack) const {
    stack.clear();
    for (const Step& step : steps_) {
      if (step.op == Step::Op::term) {
        stack.push_back((holding >> step.operand & 1) != 0);
        continue;
      }
      const auto first = stack.end() - static_cast<std::ptrdiff_t>(step.operand);
      bool result = false;
      if (step.op == Step::Op::all) result = std::find(first, stack.end(), false) == stack.end();
      if (step.op == Step::Op::any) result = std::find(first, stack.end(), true) != stack.end();
      if (step.op == Step::Op::negation) result = !*first;
      stack.erase(first, stack.end());
      stack.push_back(result);
    }
    return stack.front();
  }

  Rule& rule_;
  Errors& errors_;
  std::vector<Step> steps_;
};

void check_truth(Reader& reader, const Rule& rule) {
  // In silence nothing holds but absence, which a group that was never seen does not even have.
  if (rule.truth.front())
    reader.error(Errc::value, reader.where("when"), "is true when nothing has happened",
                 "add a condition on something that does happen");
  if (std::ranges::find(rule.truth, true) == rule.truth.end())
    reader.error(Errc::value, reader.where("when"), "can never be true: it contradicts itself",
                 "check what it both requires and excludes");
}

// Entities that lie in no group, or are smaller than it.
bool holds_part(Part whole, Part part) {
  if (whole == part) return true;
  switch (whole) {
    case Part::device:
    case Part::host:
      return true;
    case Part::card:
      return part == Part::port;
    default:
      return false;
  }
}

void read_record(Reader& reader, Rule& rule, Errors& errors) {
  const Config none;
  const Config* child = reader.child("record");
  if (child == nullptr)
    reader.error(Errc::value, reader.where(), "a detection needs a record to emit",
                 "add e.g. \"record: {kind: card_fail}\"");
  Reader record(child == nullptr ? none : *child, "record", errors);
  if (child != nullptr)
    rule.kind = static_cast<EventKind>(record.choice("kind", model::event_kind_names(), {}));
  rule.entity = read_part(record, "entity", rule.per);
  if (!holds_part(rule.entity, rule.per))
    record.error(Errc::value, record.where("entity"),
                 fmt::format("no {} contains a {}", to_text(rule.entity), to_text(rule.per)),
                 "report the group itself, or the device that contains it");
  record.finish();
}

void read_suppress(Reader& reader, Rule& rule) {
  rule.suppress = read_kinds(reader, "suppress");
  if (rule.suppress[static_cast<std::size_t>(rule.kind)])
    reader.error(Errc::value, reader.where("suppress"),
                 fmt::format("suppresses its own record: {}", to_text(rule.kind)),
                 "remove that kind from the list, or emit another one");
  rule.wait_ns = read_ns(reader, "wait", rule.suppress.any() ? rule.within_ns : 0, 0);
  if (rule.wait_ns > rule.within_ns)
    reader.error(Errc::value, reader.where("wait"), "\"wait\" is longer than \"within\"",
                 "use at most the value of \"within\"");
}

Rule read_rule(const Config& config, Errors& errors) {
  Reader reader(config, "detection", errors);
  Rule out;
  out.name = reader.text("name", {});
  out.per = read_part(reader, "per", {});
  read_record(reader, out, errors);
  out.within_ns = read_ns(reader, "within", {}, window_ns_min);
  out.hold_ns = read_ns(reader, "hold", 0, 0);
  read_suppress(reader, out);
  if (const Config* when = reader.child("when"); when != nullptr) {
    const std::size_t before = errors.size();
    Condition condition(out, errors);
    condition.read(*when);
    if (errors.size() == before) {
      out.truth = condition.table();
      check_truth(reader, out);
    }
  } else {
    reader.error(Errc::value, reader.where(), "a detection needs a condition", "add \"when:\"");
  }
  reader.finish();
  out.members |= out.suppress;
  return out;
}

void add_rules(const Config& list, Rules& rules, Errors& errors) {
  if (list.kind != Config::Kind::list && list.kind != Config::Kind::null) {
    errors.push_back({Errc::parse,
                      list.where,
                      "\"detections\" is not a list",
                      "write one detection per dash",
                      {}});
    return;
  }
  const auto own = static_cast<std::ptrdiff_t>(rules.size());
  for (const Config& row : list.items) {
    Rule rule = read_rule(row, errors);
    const auto is_same = [&](const Rule& other) { return other.name == rule.name; };
    if (std::any_of(rules.begin() + own, rules.end(), is_same))
      errors.push_back({Errc::value,
                        row.where,
                        fmt::format("duplicate detection {}", quote(rule.name)),
                        "give each a unique name",
                        {}});
    rules.push_back(std::move(rule));
  }
}

void drop(Reader& reader, Rules& built_in) {
  std::vector<std::string> names;
  for (const Rule& rule : built_in) names.push_back(rule.name);
  for (const Token& name : reader.texts("without")) {
    if (std::ranges::find(names, name.text) == names.end())
      reader.error(Errc::unknown, name.where,
                   fmt::format("unknown built-in detection {}{}", quote(name.text),
                               did_you_mean(name.text, names)),
                   fmt::format("choose from: {}", fmt::join(names, ", ")));
    std::erase_if(built_in, [&](const Rule& rule) { return rule.name == name.text; });
  }
}

Result<Rules> read(const Config& config, Rules built_in) {
  Errors errors;
  Rules out;
  Reader reader(config, "rules", errors);
  if (!reader.flag("builtin", true)) built_in.clear();
  drop(reader, built_in);
  if (const Config* list = reader.child("detections")) add_rules(*list, out, errors);
  reader.finish();
  std::erase_if(built_in, [&](const Rule& rule) {
    return std::ranges::find(out, rule.name, &Rule::name) != out.end();
  });
  out.insert(out.begin(), std::move_iterator(built_in.begin()), std::move_iterator(built_in.end()));
  if (out.size() > rules_max)
    reader.error(Errc::value, config.where,
                 fmt::format("{} detections, more than {}", out.size(), rules_max), "remove some");
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace

Rules default_rules() {
  const auto config = parse_yaml(default_rules_text(), "default rules");
  WEFT_CHECK(config.has_value());
  auto rules = read(*config, {});
  WEFT_CHECK(rules.has_value());
  return *std::move(rules);
}

Result<Rules> read_rules(const Config& config) { return read(config, default_rules()); }

}  // namespace weft::observe::detect
