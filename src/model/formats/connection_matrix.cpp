#include "model/formats/connection_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/whole_number.hpp"

namespace weft::model {
namespace {

using StartUnit = ConnectionMatrixOptions::StartUnit;

// "trigger id 1 oneshot": by which memory is reserved for no more lines than a file can hold.
constexpr std::size_t line_bytes_least = 20;
constexpr std::uint32_t trigger_max = FlowSet::none - 1;

struct Word {
  std::string_view text;
  std::uint16_t column = 1;  // lines are short enough
};

// Words of one line.
class Words {
 public:
  explicit Words(std::string_view line) : line_(line) {}

  // At the end, an empty one behind the last.
  Word next() {
    while (at_ < line_.size() && is_blank(line_[at_])) ++at_;
    const std::size_t begin = at_;
    while (at_ < line_.size() && !is_blank(line_[at_])) ++at_;
    return {line_.substr(begin, at_ - begin), static_cast<std::uint16_t>(begin + 1)};
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t'; }
  std::string_view line_;
  std::size_t at_ = 0;
};

// The keys of a flow's line.
enum Key : std::size_t { id_key, start_key, trigger_key, size_key, done_key, key_count };
const std::vector<std::string> key_names{"id", "start", "trigger", "size", "send_done_trigger"};
using Values = std::array<Word, key_count>;  // empty where a key is missing

// The row of that trigger in rows that ascend by trigger, or nullptr.
template <class Row>
const Row* find_trigger(const std::vector<Row>& rows, std::uint32_t trigger) {
  if (rows.empty()) return nullptr;
  const std::size_t guess = trigger - rows.front().trigger;  // most files count them up
  if (guess < rows.size() && rows[guess].trigger == trigger) return &rows[guess];
  const auto found = std::ranges::lower_bound(rows, trigger, {}, &Row::trigger);
  return found != rows.end() && found->trigger == trigger ? &*found : nullptr;
}

class MatrixReader {
 public:
  MatrixReader(const Fabric& fabric, LineReader& lines, const ConnectionMatrixOptions& options)
      : fabric_(fabric), lines_(lines), options_(options) {}

  Result<FlowSet> read() {
    while (errors_.size() < errors_max && lines_.next()) read_line();
    if (lines_.error() != nullptr) errors_.push_back(*lines_.error());
    if (errors_.empty()) check_counts();
    if (errors_.empty()) check_triggers();
    if (errors_.empty()) join_triggers();
    if (errors_.empty()) refuse_circle();
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(set_);
  }

 private:
  // A count that the file promises.
  struct Head {
    std::optional<std::uint32_t> count;
    std::uint32_t line = 0;
  };
  // Where those words of a flow stand that can turn out wrong only at the end.
  struct Place {
    std::uint32_t line = 0;
    std::uint16_t trigger_column = 0, done_column = 0;
  };
  struct Fire {
    std::uint32_t trigger, flow;
    friend auto operator<=>(const Fire&, const Fire&) = default;
  };
  struct Declared {
    std::uint32_t trigger, line;
    friend auto operator<=>(const Declared&, const Declared&) = default;
  };

  void refuse(Errc code, const Where& where, std::string what, std::string hint) {
    if (errors_.size() < errors_max)
      errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }
  Where where(const Word& word) const { return lines_.where(word.column); }
  Where where(std::uint32_t line, std::uint32_t column = 1) const {
    return {lines_.file(), line, column};
  }

  void read_line() {
    Words words(lines_.line());
    const Word first = words.next();
    if (first.text.empty() || first.text.front() == '#') return;
    if (first.text.front() >= '0' && first.text.front() <= '9') return read_flow(first, words);
    if (first.text == "trigger") return read_trigger(words);
    if (first.text == "Nodes") return read_nodes(words);
    if (first.text == "Connections") {
      read_head(connections_, words);
      reserve(set_.flows, connections_);
      return reserve(places_, connections_);
    }
    if (first.text == "Triggers") {
      read_head(triggers_, words);
      reserve(fires_, triggers_);
      return reserve(declared_, triggers_);
    }
    if (first.text == "Failures" || first.text == "failure")
      return refuse(Errc::unsupported, where(first), "failures are not read from this format",
                    "write them under faults: in the fabric file");
    refuse(Errc::parse, where(first), fmt::format("a line cannot begin with {}", quote(first.text)),
           "write flows as \"0->1 id 1 start 0 size 2000000\"");
  }

  template <class T>
  T number(const Word& word, std::string_view what, T least, T most) {
    const auto value = whole_number<T>(word.text);
    if (value && *value >= least && *value <= most) return *value;
    refuse(value ? Errc::value : Errc::parse, where(word),
           word.text.empty() ? fmt::format("{} is missing", what)
                             : fmt::format("{} is {}, which is not an integer from {} to {}", what,
                                           quote(word.text), least, most),
           "write digits only");
    return least;
  }

  void refuse_more(Words& words) {
    const Word more = words.next();
    if (!more.text.empty())
      refuse(Errc::parse, where(more), fmt::format("unexpected word {}", quote(more.text)),
             "remove it");
  }

  void read_head(Head& head, Words& words) {
    if (head.count)
      refuse(Errc::parse, lines_.where(), "duplicate count", "remove one of the lines");
    head.line = lines_.where().line;
    head.count = number<std::uint32_t>(words.next(), "the count", 0, flow_count_max);
    refuse_more(words);
  }

  // Growing would hold the rows twice.
  template <class Row>
  void reserve(std::vector<Row>& rows, const Head& head) const {
    const std::uint64_t lines = lines_.size_hint() / line_bytes_least + 1;
    rows.reserve(std::min<std::uint64_t>(*head.count, lines));
  }

  void read_nodes(Words& words) {
    read_head(nodes_, words);
    const bool by_gpu = !fabric_.gpus().empty();
    const auto ends = by_gpu ? fabric_.gpus() : fabric_.nics();
    if (*nodes_.count > ends.size())
      return refuse(Errc::value, where(nodes_.line),
                    fmt::format("{} nodes, but the fabric has {} {}", *nodes_.count, ends.size(),
                                by_gpu ? "GPUs" : "NICs"),
                    "use a larger fabric: node i is its i-th end");
    nics_.clear();
    for (const NodeId end : ends.first(*nodes_.count))
      nics_.push_back(by_gpu ? fabric_.nic_of(end) : end);
  }

  void read_flow(const Word& ends, Words& words) {
    if (set_.flows.size() >= flow_count_max)
      return refuse(Errc::value, where(ends), fmt::format("more than {} flows", flow_count_max),
                    "split the file");
    FlowSet::Flow flow;
    read_ends(ends, flow);
    const Values values = read_values(words);
    read_id(values[id_key]);
    read_size(values[size_key], flow);
    Place place{.line = lines_.line_number(),
                .trigger_column = values[trigger_key].column,
                .done_column = values[done_key].column};
    if (values[start_key].text.empty() == values[trigger_key].text.empty())
      refuse(Errc::parse, where(ends), "a flow needs either a start or a trigger",
             "write e.g. \"start 0\" or \"trigger 1\"");
    flow.start = start(values[start_key]);
    if (const Word& word = values[trigger_key]; !word.text.empty())
      flow.after = number<std::uint32_t>(word, "the trigger", 0, trigger_max);
    if (const Word& word = values[done_key]; !word.text.empty())
      fires_.push_back({number<std::uint32_t>(word, "the trigger", 0, trigger_max),
                        static_cast<std::uint32_t>(set_.flows.size())});
    set_.flows.push_back(flow);
    places_.push_back(place);
  }

  // "3->17".
  void read_ends(const Word& ends, FlowSet::Flow& flow) {
    constexpr std::string_view arrow = "->";
    const std::size_t cut = ends.text.find(arrow);
    if (cut == std::string_view::npos)
      return refuse(Errc::parse, where(ends), fmt::format("{} has no endpoints", quote(ends.text)),
                    "write e.g. \"0->1\"");
    const std::size_t behind = cut + arrow.size();
    const Word dst{ends.text.substr(behind), static_cast<std::uint16_t>(ends.column + behind)};
    flow.src = node({ends.text.substr(0, cut), ends.column});
    flow.dst = node(dst);
    if (flow.src.valid() && flow.src == flow.dst)
      refuse(Errc::value, where(dst), "source and destination are the same NIC",
             "specify two different ones");
  }

  NodeId node(const Word& word) {
    if (!nodes_.count) {
      refuse(Errc::parse, where(word), "flow before the number of nodes",
             "begin the file with, e.g., \"Nodes 128\"");
      return {};
    }
    const auto index = whole_number<std::uint32_t>(word.text);
    if (!index || *index >= *nodes_.count) {
      refuse(Errc::value, where(word),
             fmt::format("{} is not one of the {} nodes", quote(word.text), *nodes_.count),
             "nodes are numbered from 0");
      return {};
    }
    if (*index >= nics_.size()) return {};  // the count was refused already
    if (!nics_[*index].valid())
      refuse(Errc::value, where(word), fmt::format("gpu:{} has no NIC to send through", *index),
             "choose another node");
    return nics_[*index];
  }

  Values read_values(Words& words) {
    Values values;
    for (Word key = words.next(); !key.text.empty(); key = words.next()) {
      const Word value = words.next();
      const auto known = std::ranges::find(key_names, key.text);
      if (known == key_names.end()) {
        refuse_key(key);
        continue;
      }
      Word& slot = values[static_cast<std::size_t>(known - key_names.begin())];
      if (!slot.text.empty())
        refuse(Errc::parse, where(key), fmt::format("duplicate \"{}\"", key.text),
               "remove one of them");
      if (value.text.empty())
        refuse(Errc::parse, where(value), fmt::format("\"{}\" has no value", key.text),
               "write a number after it");
      slot = value;
    }
    return values;
  }

  void refuse_key(const Word& key) {
    if (key.text == "recv_done_trigger" || key.text == "prio")
      return refuse(Errc::unsupported, where(key), fmt::format("\"{}\" is not supported", key.text),
                    "only send_done_trigger releases flows, and all flows have the same priority");
    refuse(Errc::unknown, where(key),
           fmt::format("unknown word {}{}", quote(key.text), did_you_mean(key.text, key_names)),
           fmt::format("known words: {}", fmt::join(key_names, ", ")));
  }

  void read_id(const Word& id) {
    number<std::uint32_t>(id, "the id", 0, UINT32_MAX);
    if (!index_.add(id.text))
      refuse(Errc::value, where(id), fmt::format("duplicate id {}", quote(id.text)),
             "give every flow a unique id");
  }

  void read_size(const Word& size, FlowSet::Flow& flow) {
    if (size.text == "0")
      return refuse(Errc::value, where(size), "some programs read a size of 0 as an endless flow",
                    "set a size of at least one byte");
    flow.size = Bytes{number<std::int64_t>(size, "the size", 1, INT64_MAX)};
  }

  Time start(const Word& word) {
    if (word.text.empty() || word.text == "0") return {};
    if (const auto zero = parse_number({word.text, {}}); zero && *zero == 0) return {};
    constexpr std::array<std::string_view, 4> units{"", "ps", "ns", "us"};
    const auto unit = units[static_cast<std::size_t>(options_.start_unit)];
    if (unit.empty()) {
      refuse(Errc::value, where(word),
             fmt::format("the start {} has no unit: some programs read it as ps, some as us, and "
                         "some ignore it",
                         quote(word.text)),
             "specify the unit with --start-unit ps, ns or us");
      return {};
    }
    auto span = parse_duration({fmt::format("{} {}", word.text, unit), where(word)});
    if (span) return Time{span->ps};
    errors_.push_back(std::move(span).error());
    return {};
  }

  void read_trigger(Words& words) {
    const Word key = words.next();
    if (key.text != "id")
      return refuse(Errc::parse, where(key), "the trigger has no id",
                    "write e.g. \"trigger id 1 oneshot\"");
    const auto trigger = number<std::uint32_t>(words.next(), "the trigger", 0, trigger_max);
    const Word kind = words.next();
    if (kind.text == "barrier" || kind.text == "multishot")
      return refuse(
          Errc::unsupported, where(kind),
          fmt::format("trigger {} is of type {}: a flow can wait only for one other flow, once",
                      trigger, kind.text),
          "use oneshot triggers");
    if (kind.text != "oneshot")
      return refuse(Errc::unknown, where(kind),
                    fmt::format("unknown trigger type {}", quote(kind.text)), "write oneshot");
    refuse_more(words);
    declared_.push_back({trigger, lines_.line_number()});
  }

  void check_counts() {
    if (!nodes_.count || !connections_.count)
      return refuse(Errc::parse, where(1),
                    fmt::format("\"{}\" is missing", nodes_.count ? "Connections" : "Nodes"),
                    "begin the file with \"Nodes N\" and \"Connections C\"");
    if (*connections_.count != set_.flows.size())
      refuse(Errc::value, where(connections_.line),
             fmt::format("the header declares {} connections, but the file has {}",
                         *connections_.count, set_.flows.size()),
             "check whether the file is truncated");
    if (triggers_.count.value_or(0) != declared_.size())
      refuse(Errc::value, where(triggers_.count ? triggers_.line : declared_.front().line),
             fmt::format("the header declares {} triggers, but the file has {}",
                         triggers_.count.value_or(0), declared_.size()),
             "check whether the file is truncated, or correct \"Triggers\"");
  }

  // Each is declared once and fired at most once.
  void check_triggers() {
    std::ranges::sort(fires_);
    std::ranges::sort(declared_);
    for (std::size_t i = 1; i < declared_.size(); ++i)
      if (declared_[i].trigger == declared_[i - 1].trigger)
        refuse(Errc::value, where(declared_[i].line),
               fmt::format("trigger {} is declared twice", declared_[i].trigger),
               "give every trigger a unique id");
    for (std::size_t i = 0; i < fires_.size(); ++i) {
      const Place& place = places_[fires_[i].flow];
      if (find_trigger(declared_, fires_[i].trigger) == nullptr)
        refuse(Errc::unknown, where(place.line, place.done_column),
               fmt::format("trigger {} is not declared", fires_[i].trigger),
               fmt::format("add the line \"trigger id {} oneshot\"", fires_[i].trigger));
      if (i > 0 && fires_[i].trigger == fires_[i - 1].trigger)
        refuse(Errc::value, where(place.line, place.done_column),
               fmt::format("trigger {} is already fired by flow {}", fires_[i].trigger,
                           set_.ids[fires_[i - 1].flow]),
               "let only one flow fire it");
    }
  }

  // From the trigger that a flow waits for to the flow that fires it.
  void join_triggers() {
    for (std::size_t i = 0; i < set_.flows.size(); ++i) {
      std::uint32_t& after = set_.flows[i].after;
      if (after == FlowSet::none) continue;
      if (const Fire* fire = find_trigger(fires_, after); fire != nullptr) {
        after = fire->flow;
        continue;
      }
      refuse(Errc::unknown, where(places_[i].line, places_[i].trigger_column),
             fmt::format("no flow fires trigger {}", after),
             fmt::format("add \"send_done_trigger {}\" to the flow that must finish first", after));
    }
  }

  void refuse_circle() {
    const std::uint32_t flow = find_circle(set_);
    if (flow == FlowSet::none) return;
    refuse(Errc::infeasible, where(places_[flow].line, places_[flow].trigger_column),
           circle_text(set_, flow), "let one of them start by itself");
  }

  const Fabric& fabric_;
  LineReader& lines_;
  const ConnectionMatrixOptions& options_;
  Head nodes_, connections_, triggers_;
  std::vector<NodeId> nics_;  // by node
  FlowSet set_;               // until the triggers are joined, `after` is a trigger
  FlowIdIndex index_{set_.ids};
  std::vector<Place> places_;  // by flow
  std::vector<Fire> fires_;
  std::vector<Declared> declared_;
  Errors errors_;
};

}  // namespace

bool is_connection_matrix(std::string_view text) {
  LineReader lines(text, {});
  while (lines.next()) {
    const std::string_view word = Words(lines.line()).next().text;
    if (!word.empty() && word.front() != '#') return word == "Nodes";
  }
  return false;
}

Result<FlowSet> read_connection_matrix(const Fabric& fabric, LineReader& lines,
                                       const ConnectionMatrixOptions& options) {
  return MatrixReader(fabric, lines, options).read();
}

}  // namespace weft::model
