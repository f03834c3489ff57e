// AICB's physical workload: what one rank communicates, a line each, as CSV.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/csv.hpp"
#include "base/text.hpp"
#include "workload/trace/simai_grid.hpp"
#include "workload/trace/trace.hpp"

namespace weft::workload {
namespace {

using model::CollectiveOp;
using model::Operation;

constexpr std::uint64_t aicb_operations_max = 10'000'000;

enum class Act : std::uint8_t { collective, shift, counterpart, compute, mark };

struct Type {
  std::string_view name;
  Act act;
  CollectiveOp op = CollectiveOp::all_reduce;
};
constexpr std::array<Type, 13> types{{
    {"all_reduce", Act::collective, CollectiveOp::all_reduce},
    {"all_gather", Act::collective, CollectiveOp::all_gather},
    {"all_gather_into_tensor", Act::collective, CollectiveOp::all_gather},
    {"reduce_scatter", Act::collective, CollectiveOp::reduce_scatter},
    {"reduce_scatter_tensor", Act::collective, CollectiveOp::reduce_scatter},
    {"all_to_all", Act::collective, CollectiveOp::all_to_all},
    {"broadcast", Act::collective, CollectiveOp::broadcast},
    {"reduce", Act::collective, CollectiveOp::broadcast},  // the same tree, the other way
    {"barrier", Act::collective, CollectiveOp::all_reduce},
    {"isend", Act::shift, CollectiveOp::send_recv},
    {"irecv", Act::counterpart, CollectiveOp::send_recv},
    {"computation", Act::compute},
    {"epoch_end", Act::mark},
}};

struct GroupName {
  std::string_view name;
  SimaiGroup group;
};
constexpr std::array<GroupName, 9> groups{{
    {"tp_group", SimaiGroup::tp},
    {"dp_group", SimaiGroup::dp},
    {"pp_group", SimaiGroup::pp},
    {"ep_group", SimaiGroup::ep},
    {"ep_dp_group", SimaiGroup::dp_ep},
    {"embedding_group", SimaiGroup::ends},
    {"all", SimaiGroup::all},
    {"all_nodes", SimaiGroup::all},
    {"ep_tp_group", SimaiGroup::tp},
}};

struct Row {
  const Type* type;
  std::optional<SimaiGroup> group;
  std::uint64_t size = 0;  // of the group; 0: not given
  std::uint64_t bytes = 0;
  std::uint64_t count = 1;
  std::optional<double> elapsed_ms;
  std::string stage;
  Where where;
};

enum Column : std::size_t {
  comm_type,
  comm_group,
  msg_size,
  stage,
  dst,
  src,
  additional,
  elapsed,
  algbw,
  busbw,
  count,
  comm_group_size
};
const std::array<std::string, 11> required{"comm_type", "comm_group", "msg_size",   "stage",
                                           "dst",       "src",        "additional", "_elapsed_time",
                                           "algbw",     "busbw",      "count"};
const std::array<std::string, 1> optional_columns{"comm_group_size"};

bool is_none(std::string_view text) { return text.empty() || text == "None" || text == "-1"; }

std::string_view without(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

template <class Names>
std::string list_of(const Names& rows) {
  std::string out;
  for (const auto& row : rows) out += fmt::format("{}{}", out.empty() ? "" : ", ", row.name);
  return out;
}

// Before the header some files name the ranks of the first pipeline stage, in brackets.
std::string_view rank_line(std::string_view text) {
  if (!text.starts_with('[')) return {};
  return text.substr(0, std::min(text.find('\n'), text.size()));
}

class AicbParser {
 public:
  explicit AicbParser(const TraceFile& file) : file_(file) {}

  Result<std::vector<Row>> parse() {
    std::string_view text = file_.content;
    if (const std::string_view head = rank_line(text); !head.empty())
      text.remove_prefix(std::min(head.size() + 1, text.size())), skipped_ = 1;
    CsvReader csv(text, file_.path);
    if (auto status = csv.header(required, optional_columns); !status)
      return std::unexpected(shifted(std::move(status).error()));
    std::vector<Row> rows;
    while (errors_.size() < errors_max && csv.next()) {
      if (rows.size() == aicb_operations_max) {
        error(csv.where(), fmt::format("more than {} lines", aicb_operations_max),
              "split the file");
        break;
      }
      if (auto row = read(csv)) rows.push_back(std::move(*row));
    }
    if (csv.error() != nullptr) errors_.push_back(shifted(*csv.error()));
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return rows;
  }

 private:
  Error shifted(Error error) const {
    error.where.line += skipped_;
    for (Error& more : error.more) more.where.line += skipped_;
    return error;
  }
  void error(Where where, std::string what, std::string hint) {
    errors_.push_back(
        shifted({Errc::value, std::move(where), std::move(what), std::move(hint), {}}));
  }

  std::uint64_t number(const Token& token, std::string_view what, std::uint64_t most) {
    std::uint64_t value = 0;
    const char* const end = token.text.data() + token.text.size();
    const auto [stop, fault] = std::from_chars(token.text.data(), end, value);
    if (fault == std::errc{} && stop == end && value <= most) return value;
    error(token.where,
          fmt::format("{} is {}, which is not an integer up to {}", what, quote(token.text), most),
          "correct the number");
    return 0;
  }

  std::optional<Row> read(const CsvReader& csv) {
    const std::size_t before = errors_.size();
    const Token kind = csv.cell(comm_type);
    Row row{.type = find(types, without(kind.text, "CommType.")), .where = csv.where()};
    row.where.line += skipped_;
    if (row.type == nullptr) {
      error(kind.where, fmt::format("unknown comm_type {}", quote(kind.text)),
            "known: " + list_of(types));
      return std::nullopt;
    }
    row.stage = csv.cell(stage).text;
    row.count = is_none(csv.cell(count).text) ? 1 : number(csv.cell(count), "count", 1'000'000);
    const Token time = csv.cell(elapsed);
    if (!is_none(time.text)) row.elapsed_ms = read_time(time);
    if (row.type->act != Act::compute && row.type->act != Act::mark) read_message(csv, row);
    return errors_.size() == before ? std::optional(std::move(row)) : std::nullopt;
  }

  std::optional<double> read_time(const Token& token) {
    const auto value = parse_number(token);
    if (value && *value >= 0 && *value <= 1e12) return *value;
    error(token.where, fmt::format("_elapsed_time is {}", quote(token.text)),
          "write milliseconds (0 or more), or None");
    return std::nullopt;
  }

  void read_message(const CsvReader& csv, Row& row) {
    const Token name = csv.cell(comm_group);
    const GroupName* group = find(groups, without(name.text, "CommGroup."));
    if (group == nullptr) {
      // A barrier without a group is one of all ranks.
      if (!is_none(name.text))
        return error(name.where, fmt::format("unknown comm_group {}", quote(name.text)),
                     "known: " + list_of(groups));
      row.group = SimaiGroup::all;
    } else {
      row.group = group->group;
    }
    const Token bytes = csv.cell(msg_size);
    row.bytes = is_none(bytes.text) ? 0 : number(bytes, "msg_size", simai_bytes_max);
    const Token size = csv.cell(comm_group_size);
    if (!is_none(size.text)) row.size = number(size, "comm_group_size", simai_ranks_max);
    if (row.size == 0 && !is_none(size.text))
      error(size.where, "comm_group_size is 0", "a group needs at least one rank");
  }

  template <class Names>
  static auto find(const Names& names, std::string_view name) -> decltype(names.data()) {
    const auto found = std::ranges::find_if(names, [&](const auto& n) { return n.name == name; });
    return found == names.end() ? nullptr : &*found;
  }

  const TraceFile& file_;
  std::uint32_t skipped_ = 0;
  Errors errors_;
};

using SizeOf = std::array<const Row*, simai_group_count>;

// The first row that gives each group's size; two sizes for one group are an error.
Result<SizeOf> group_sizes(const std::vector<Row>& rows) {
  SizeOf first{};
  for (const Row& row : rows) {
    if (!row.group || row.size == 0) continue;
    const Row*& known = first[static_cast<std::size_t>(*row.group)];
    if (known == nullptr) known = &row;
    if (known->size != row.size)
      return fail(Errc::infeasible, row.where,
                  fmt::format("the group has {} ranks here and {} in line {}", row.size,
                              known->size, known->where.line),
                  "all groups of a kind have the same size");
  }
  return first;
}

Result<SimaiGrid> grid_of_rows(const std::vector<Row>& rows, const TraceFile& file,
                               const TraceOptions& options) {
  WEFT_TRY(const SizeOf sizes, group_sizes(rows));
  const auto size = [&](SimaiGroup g) -> std::uint64_t {
    const Row* row = sizes[static_cast<std::size_t>(g)];
    return row != nullptr ? row->size : 0;
  };
  const std::uint64_t tp = std::max<std::uint64_t>(1, size(SimaiGroup::tp));
  const std::uint64_t pp = std::max<std::uint64_t>(1, size(SimaiGroup::pp));
  const std::uint64_t ep = std::max<std::uint64_t>(1, size(SimaiGroup::ep));
  std::uint64_t dp = std::max(size(SimaiGroup::dp), ep * size(SimaiGroup::dp_ep));
  const double unit = static_cast<double>(tp) * static_cast<double>(pp);
  if (dp == 0 && size(SimaiGroup::all) > 0 && size(SimaiGroup::all) % (tp * pp) == 0)
    dp = size(SimaiGroup::all) / (tp * pp);
  if (options.ranks) {
    if (*options.ranks == 0 || std::fmod(*options.ranks, unit) != 0)
      return fail(Errc::infeasible, {file.path},
                  fmt::format("{} ranks / (TP {} x PP {}) = {:.6g} data-parallel ranks",
                              *options.ranks, tp, pp, *options.ranks / unit),
                  fmt::format("choose a multiple of {:.0f}", unit));
    dp = static_cast<std::uint64_t>(*options.ranks / unit);
  }
  if (dp == 0) {
    const bool asks = std::ranges::any_of(rows, [](const Row& row) {
      return row.group == SimaiGroup::dp || row.group == SimaiGroup::all ||
             row.group == SimaiGroup::dp_ep;
    });
    if (asks)
      return fail(Errc::infeasible, {file.path},
                  "the file has data-parallel collectives but does not give the group size",
                  "choose a number of ranks");
    dp = ep;
  }
  if (dp % ep != 0)
    return fail(Errc::infeasible, {file.path},
                fmt::format("DP {} is not a multiple of EP {}", dp, ep),
                fmt::format("choose a multiple of {:.0f} ranks", unit * static_cast<double>(ep)));
  if (unit * static_cast<double>(dp) > static_cast<double>(simai_ranks_max))
    return fail(
        Errc::infeasible, {file.path},
        fmt::format("TP {} x PP {} x DP {} is more than {} ranks", tp, pp, dp, simai_ranks_max),
        "choose a smaller number of ranks");
  const auto of = [](std::uint64_t count) { return static_cast<std::uint32_t>(count); };
  return SimaiGrid{of(tp), of(ep), of(dp / ep), of(pp)};
}

// What was done with the lines that are no operations.
struct Tally {
  std::uint64_t operations = 0, set_up = 0, counterparts = 0, alone = 0, untimed = 0, marks = 0;
  double compute_s = 0, recorded_s = 0;
};

class Writer {
 public:
  Writer(const SimaiGrid& grid, model::OpGraph& graph, Tally& tally)
      : grid_(grid), graph_(graph), tally_(tally) {}

  // The list of one rank, line after line. `ends`: whether it is of a first or last stage.
  enum class Stage : std::uint8_t { end, middle };
  Result<std::uint32_t> write(const std::vector<Row>& rows, Stage stage) {
    model::Program program;
    program.role = stage == Stage::end ? "rank" : "rank of a middle stage";
    for (const Row& row : rows) {
      if (stage == Stage::middle && row.group == SimaiGroup::ends) continue;
      add_row(program, row, stage);
      if (program.operations.size() > aicb_operations_max)
        return fail(Errc::value, row.where,
                    fmt::format("more than {} operations", aicb_operations_max),
                    "reduce the counts");
    }
    if (program.operations.empty()) add(program, {.label = graph_.label("nothing")});
    graph_.programs.push_back(std::move(program));
    return static_cast<std::uint32_t>(graph_.programs.size() - 1);
  }
  const std::vector<SimaiGroup>& used() const { return used_; }

 private:
  static void add(model::Program& program, const Operation& op) {
    const auto last = static_cast<std::uint32_t>(program.operations.size()) - 1;
    const std::array<std::uint32_t, 1> after{last};
    add_operation(program, op, std::span(after).first(program.operations.empty() ? 0 : 1));
  }

  void add_row(model::Program& program, const Row& row, Stage stage) {
    Tally ignored;
    Tally& tally = stage == Stage::end ? tally_ : ignored;
    if (row.type->act == Act::mark) return static_cast<void>(++tally.marks);
    if (row.stage.starts_with("init")) return static_cast<void>(++tally.set_up);
    if (row.type->act == Act::compute) return add_compute(program, row, tally);
    if (row.elapsed_ms) tally.recorded_s += *row.elapsed_ms * 1e-3;
    if (size_of(grid_, *row.group) < 2) return static_cast<void>(++tally.alone);
    if (row.type->act == Act::counterpart) ++tally.counterparts;
    if (std::ranges::find(used_, *row.group) == used_.end()) used_.push_back(*row.group);
    Operation op{.kind = Operation::Kind::collective};
    op.dimension = dimension_of(*row.group);
    op.collective = row.type->op;
    op.stream = 1;
    op.slot = static_cast<std::uint32_t>(*row.group);
    op.label = label(row.stage.empty() ? row.type->name : std::string_view(row.stage));
    op.bytes = static_cast<double>(row.bytes);
    for (std::uint64_t i = 0; i < row.count && program.operations.size() <= aicb_operations_max;
         ++i) {
      add(program, op);
      ++tally.operations;
    }
  }

  void add_compute(model::Program& program, const Row& row, Tally& tally) {
    if (!row.elapsed_ms) return static_cast<void>(++tally.untimed);
    Operation op{.kind = Operation::Kind::compute};
    op.stream = 1;
    op.label = label(row.stage.empty() ? "computation" : std::string_view(row.stage));
    op.seconds = *row.elapsed_ms * 1e-3 * static_cast<double>(row.count);
    add(program, op);
    tally.compute_s += op.seconds;
  }

  std::uint32_t label(std::string_view text) {
    const auto found = labels_.find(text);
    if (found != labels_.end()) return found->second;
    const auto index = static_cast<std::uint32_t>(graph_.labels.size());
    graph_.labels.emplace_back(text);
    labels_.emplace(text, index);
    return index;
  }

  const SimaiGrid& grid_;
  model::OpGraph& graph_;
  Tally& tally_;
  std::vector<SimaiGroup> used_;
  std::map<std::string, std::uint32_t, std::less<>> labels_;
};

std::vector<std::string> notes_of(const SimaiGrid& grid, const Tally& tally,
                                  const TraceFile& file) {
  std::vector<std::string> out;
  out.push_back(
      fmt::format("ranks: TP {} x EP {} x DP/EP {} x PP {}, rank = tp + TP (dp + DP pp); every "
                  "rank runs the lines of the file in order",
                  grid.tp, grid.ep, grid.dp_ep, grid.pp));
  out.push_back("msg_size is as in nccl-tests (all_gather: the gathered result)");
  const auto add = [&](std::uint64_t count, std::string_view text) {
    if (count > 0) out.push_back(fmt::format("{} {}", count, text));
  };
  if (!rank_line(file.content).empty())
    out.emplace_back("the file lists one pipeline stage; all stages run it");
  add(tally.set_up, "setup lines (stage init...) are skipped");
  add(tally.marks, "epoch_end lines are markers without work");
  add(tally.alone, "lines for groups of one rank move no data");
  add(tally.untimed, "computation lines have no time and are skipped: only communication is run");
  if (tally.compute_s > 0) out.emplace_back("_elapsed_time is read as milliseconds");
  add(tally.counterparts,
      "irecv lines, like isend lines, are one message from each rank of the pipeline group to the "
      "next");
  return out;
}

bool is_spec_table(std::string_view first_line) {
  return first_line.find("Parameter_size") != first_line.npos &&
         first_line.find("Hidden_size") != first_line.npos;
}

std::string_view first_line_of(std::string_view text) {
  if (const std::string_view head = rank_line(text); !head.empty())
    text.remove_prefix(std::min(head.size() + 1, text.size()));
  return text.substr(0, std::min({text.find('\n'), text.size(), std::size_t{4096}}));
}

Result<RecordedWorkload> build(const TraceFile& file, const std::vector<Row>& rows,
                               const SimaiGrid& grid) {
  RecordedWorkload out;
  out.format = "aicb";
  Tally tally;
  Writer writer(grid, out.graph, tally);
  WEFT_TRY(const std::uint32_t end, writer.write(rows, Writer::Stage::end));
  std::vector<std::uint32_t> programs(grid.pp, end);
  const auto& used = writer.used();
  if (grid.pp > 2 && std::ranges::find(used, SimaiGroup::ends) != used.end()) {
    WEFT_TRY(const std::uint32_t middle, writer.write(rows, Writer::Stage::middle));
    std::fill(programs.begin() + 1, programs.end() - 1, middle);
  }
  place_ranks(grid, SimaiActor::tensor_group, used, programs, out.graph);
  WEFT_TRY_STATUS(out.graph.finish());
  out.notes = notes_of(grid, tally, file);
  out.counts = {{"lines", rows.size()},
                {"ranks", grid.rank_count()},
                {"TP", grid.tp},
                {"EP", grid.ep},
                {"DP", grid.dp()},
                {"PP", grid.pp},
                {"collectives of a rank", tally.operations}};
  out.times_s = {{"compute of a step", tally.compute_s}};
  if (tally.recorded_s > 0) out.times_s.emplace_back("communication as recorded", tally.recorded_s);
  return out;
}

}  // namespace

bool is_aicb_csv(const TraceFile& file) {
  const std::string_view line = first_line_of(file.content);
  // The ranks of a large stage fill more than what is looked at, without an end of the line.
  if (line.empty()) {
    const std::string_view inner = rank_line(file.content).substr(0, 64);
    const std::size_t word = inner.find_first_not_of(" \t", 1);
    if (word != inner.npos && inner.substr(word).starts_with("pp_stage")) return true;
  }
  return (line.find("comm_type") != line.npos && line.find("comm_group") != line.npos) ||
         is_spec_table(line);
}

Result<RecordedWorkload> read_aicb_csv(const TraceFile& file, const TraceOptions& options) {
  if (is_spec_table(first_line_of(file.content)))
    return fail(Errc::unsupported, {file.path, 1, 1},
                "this is AICB's table of workload specifications (models and plans), not a "
                "recorded workload",
                "generate a workload from one of its rows with AICB, or write the row as model: "
                "and parallel: of a job");
  WEFT_TRY(const std::vector<Row> rows, AicbParser(file).parse());
  WEFT_TRY(const SimaiGrid grid, grid_of_rows(rows, file, options));
  return build(file, rows, grid);
}

}  // namespace weft::workload
