// The reader of nccl-tests output.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/text.hpp"
#include "base/units.hpp"
#include "workload/collective/perf_table.hpp"

namespace weft::workload {
namespace {

constexpr std::size_t measured_row_count_max = 1'000'000;
// 5 heads and two halves of time, algbw, busbw, #wrong, and max, min, p99, cv in newer ones.
constexpr std::size_t cell_count_max = 21;

struct Cell {
  std::string_view text;
  std::uint32_t column;
};

template <class T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool is_unsigned(std::string_view text) {
  std::uint64_t value = 0;
  return parse_whole(text, value);
}

bool is_type(std::string_view text) {
  constexpr std::array<std::string_view, 13> types{
      "int8",  "uint8",  "int32",    "uint32", "int64",  "uint64", "half",
      "float", "double", "bfloat16", "f8e4m3", "f8e5m2", "char"};
  for (const std::string_view type : types)
    if (text == type) return true;
  return false;
}

// Length of "0: " or "[1,0]<stdout>:" before a line.
std::size_t prefix_length(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return 0;
  const std::string_view tag = trim(line.substr(0, colon));
  const bool is_mpirun = tag.starts_with('[') && tag.ends_with('>');
  return is_unsigned(tag) || is_mpirun ? colon + 1 : 0;
}

// At most one more than a row can have, so that a long line costs no more.
std::vector<Cell> cells_of(std::string_view line, std::size_t from) {
  constexpr std::string_view blanks = " \t\r";
  std::vector<Cell> cells;
  while (cells.size() <= cell_count_max) {
    const std::size_t begin = line.find_first_not_of(blanks, from);
    if (begin == std::string_view::npos) break;
    from = std::min(line.find_first_of(blanks, begin), line.size());
    cells.push_back({line.substr(begin, from - begin), static_cast<std::uint32_t>(begin + 1)});
  }
  return cells;
}

class RowReader {
 public:
  RowReader(std::span<const Cell> cells, Where line) : cells_(cells), line_(std::move(line)) {}

  Result<MeasuredRow> read() {
    MeasuredRow row;
    row.where = line_;
    parse_whole(cells_[0].text, row.size_bytes);
    parse_whole(cells_[1].text, row.count);
    row.type = cells_[2].text;
    std::size_t at = 3;
    double number = 0;
    if (at < cells_.size() && !parse_whole(cells_[at].text, number)) row.redop = cells_[at++].text;
    // What is left are two equal halves, after a root where the count is odd.
    if ((cells_.size() - at) % 2 == 1) ++at;
    const std::size_t half = (cells_.size() - at) / 2;
    if (half != 4 && half != 8)
      return error(cells_.back(),
                   fmt::format("a line of {} columns is not an nccl-tests row", cells_.size()));
    WEFT_TRY_STATUS(numbers(at, row.time_us, row.algbw_GBps, row.busbw_GBps));
    WEFT_TRY_STATUS(
        numbers(at + half, row.in_place_time_us, row.in_place_algbw_GBps, row.in_place_busbw_GBps));
    return row;
  }

 private:
  Status numbers(std::size_t at, double& time, double& algbw, double& busbw) {
    for (double* value : {&time, &algbw, &busbw}) {
      const Cell& cell = cells_[at++];
      if (parse_whole(cell.text, *value) && std::isfinite(*value) && *value >= 0) continue;
      return error(cell, fmt::format("\"{}\" is not a time or bandwidth", cell.text));
    }
    return {};
  }

  std::unexpected<Error> error(const Cell& cell, std::string what) {
    Where where = line_;
    where.column = cell.column;
    return fail(Errc::parse, std::move(where), std::move(what),
                "a row is: size count type redop root, then time algbw busbw #wrong twice");
  }

  std::span<const Cell> cells_;
  Where line_;
};

std::optional<double> average_in(std::string_view comment) {
  const std::size_t at = comment.find("Avg bus bandwidth");
  const std::size_t colon = at == std::string_view::npos ? at : comment.find(':', at);
  if (colon == std::string_view::npos) return {};
  const auto cells = cells_of(comment, colon + 1);
  double value = 0;
  if (cells.empty() || !parse_whole(cells[0].text, value) || !std::isfinite(value)) return {};
  return value;
}

// The word behind `key`, or "".
std::string_view word_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == line.npos) return {};
  const auto cells = cells_of(line, at + key.size());
  return cells.empty() ? std::string_view{} : cells[0].text;
}

std::optional<std::uint32_t> number_after(std::string_view line, std::string_view key) {
  std::uint32_t value = 0;
  const std::string_view word = word_after(line, key);
  // "[nranks=8]" ends with a bracket.
  const std::string_view digits = word.substr(0, word.find_first_not_of("0123456789"));
  return !digits.empty() && parse_whole(digits, value) ? std::optional(value) : std::nullopt;
}

// "./build/all_reduce_perf -b 8": the program without "_perf", in our spelling.
std::string op_of_program(std::string_view line) {
  constexpr std::string_view end = "_perf";
  const std::size_t at = line.find(end);
  if (at == line.npos) return {};
  std::size_t begin = at;
  while (begin > 0 &&
         (line[begin - 1] == '_' || (line[begin - 1] >= 'a' && line[begin - 1] <= 'z')))
    --begin;
  const std::string name(line.substr(begin, at - begin));
  return name == "alltoall" ? "all_to_all" : name == "sendrecv" ? "send_recv" : name;
}

// "NCCL INFO AllReduce: opCount 1 ..." or "NCCL INFO AllReduce: 8388608 Bytes -> ...".
std::string op_of_nccl(std::string_view line) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> names{
      {{"AllReduce", "all_reduce"},
       {"AllGather", "all_gather"},
       {"ReduceScatter", "reduce_scatter"},
       {"Broadcast", "broadcast"},
       {"Reduce", "reduce"},
       {"AlltoAll", "all_to_all"}}};
  constexpr std::string_view info = "NCCL INFO ";
  const std::size_t at = line.find(info);
  if (at == line.npos) return {};
  line.remove_prefix(at + info.size());
  for (const auto& [theirs, ours] : names)
    if (line.starts_with(theirs) && line.substr(theirs.size()).starts_with(':'))
      return std::string(ours);
  return {};
}

// "AllReduce: 8388608 Bytes -> Algo 1 proto 2 time 93.1", and names in later releases.
std::optional<MeasuredTable::Choice> choice_of(std::string_view line) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> algorithms{
      {{"TREE", "tree"},
       {"RING", "ring"},
       {"COLLNET_DIRECT", "collnet_direct"},
       {"COLLNET_CHAIN", "collnet_chain"},
       {"NVLS", "nvls"},
       {"NVLS_TREE", "nvls_tree"},
       {"PAT", "pat"}}};
  constexpr std::array<std::string_view, 3> protocols{"LL", "LL128", "SIMPLE"};
  const std::size_t arrow = line.find(" Bytes -> Algo ");
  if (arrow == line.npos) return {};
  const std::size_t blank = line.find_last_of(' ', arrow - 1);
  const std::string_view algorithm = word_after(line, "-> Algo ");
  const std::string_view protocol = word_after(line, " proto ");
  MeasuredTable::Choice out;
  if (blank == line.npos || !parse_whole(line.substr(blank + 1, arrow - blank - 1), out.size_bytes))
    return {};
  for (std::size_t a = 0; a < algorithms.size(); ++a)
    if (algorithm == algorithms[a].first || algorithm == std::to_string(a))
      out.algorithm = algorithms[a].second;
  for (std::size_t p = 0; p < protocols.size(); ++p)
    if (!out.algorithm.empty() && (protocol == protocols[p] || protocol == std::to_string(p))) {
      out.protocol = std::array{Protocol::ll, Protocol::ll128, Protocol::simple}[p];
      return out;
    }
  return {};
}

// What a line that is no row says of the run.
void read_other_line(std::string_view line, const Where& where, MeasuredTable& table) {
  for (const std::string& op : {op_of_program(line), op_of_nccl(line)})
    if (!op.empty() &&
        std::ranges::find(table.ops, op, &Said<std::string>::value) == table.ops.end())
      table.ops.push_back({op, where});
  const bool is_nccl = line.contains("NCCL INFO");
  std::optional<std::uint32_t> ranks;
  if (is_nccl) {
    for (const std::string_view key : {" nranks ", " nRanks ", "[nranks="})
      if (!ranks) ranks = number_after(line, key);
  } else if (line.contains('#') && line.contains(" Pid ")) {
    if (const auto rank = number_after(line, " Rank "); rank && *rank < UINT32_MAX)
      ranks = *rank + 1;
  }
  // A job may make communicators of some of its ranks; the largest has all of them.
  if (ranks && (!table.ranks || *ranks > table.ranks->value)) table.ranks = {*ranks, where};
  if (const auto gpus = number_after(line, " nGpus "); gpus && *gpus > 0 && !table.process_ranks)
    if (const auto threads = number_after(line, " nThread "); threads.value_or(1) > 0)
      if (const std::uint64_t all = std::uint64_t{*gpus} * threads.value_or(1); all <= UINT32_MAX)
        table.process_ranks = {static_cast<std::uint32_t>(all), where};
  constexpr std::size_t choices_max = 100'000;  // a line for each call, of which sizes matter
  if (is_nccl && table.choices.size() < choices_max)
    if (auto choice = choice_of(line);
        choice && (table.choices.empty() || table.choices.back().size_bytes != choice->size_bytes))
      table.choices.push_back(*std::move(choice));
}

bool begins_like_row(std::span<const Cell> cells) {
  return cells.size() >= 3 && is_unsigned(cells[0].text) && is_unsigned(cells[1].text) &&
         is_type(cells[2].text);
}

}  // namespace

Result<MeasuredTable> read_nccl_table(std::string_view text, const std::string& file) {
  MeasuredTable table;
  std::uint32_t number = 0;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    ++number;
    const auto cells = cells_of(line, prefix_length(line));
    if (cells.empty()) continue;
    if (cells[0].text.starts_with('#')) {
      if (const auto average = average_in(line)) table.avg_busbw_GBps = average;
      read_other_line(line, {file, number, 1}, table);
    } else if (!begins_like_row(cells)) {
      ++table.other_lines;
      read_other_line(line, {file, number, 1}, table);
    } else {
      if (table.rows.size() == measured_row_count_max)
        return fail(Errc::parse, {file, number, 1},
                    fmt::format("more than {} rows", measured_row_count_max), "split the file");
      WEFT_TRY(MeasuredRow row, RowReader(cells, {file, number, cells[0].column}).read());
      table.rows.push_back(std::move(row));
    }
  }
  if (table.rows.empty())
    return fail(Errc::parse, {file, 1, 1}, "no nccl-tests rows in this file",
                "use the output of, e.g., all_reduce_perf");
  return table;
}

namespace {

std::unexpected<Error> other_run(const Where& where, std::string what, std::string hint) {
  return fail(Errc::value, where, std::move(what), std::move(hint));
}

// busbw / algbw of each row; both are printed with two decimals.
Status check_factors(const PerfRequest& request, const MeasuredTable& measured) {
  const std::uint32_t ranks = request.machine.shape.ranks;
  const double factor = busbw_factor(request.op, ranks);
  for (const MeasuredRow& row : measured.rows) {
    constexpr double half_digit = 0.0051;
    if (std::abs(row.busbw_GBps - factor * row.algbw_GBps) <= half_digit * (1 + factor)) continue;
    return other_run(
        row.where,
        fmt::format("busbw is {:.3f} times algbw; with {} of {} ranks it is {:.3f}",
                    row.busbw_GBps / row.algbw_GBps, to_text(request.op), ranks, factor),
        "predict the operation of that run, with -n RANKS and --fabric as it had");
  }
  return {};
}

}  // namespace

Status check_run(const PerfRequest& request, const MeasuredTable& measured) {
  const std::string_view op = to_text(request.op);
  const std::uint32_t ranks = request.machine.shape.ranks;
  for (const Said<std::string>& said : measured.ops)
    if (said.value != op)
      return other_run(
          said.where, fmt::format("this run is of {}, and {} was predicted", said.value, op),
          fmt::format("use weft perf {}, and a file with rows of one operation only", said.value));
  if (measured.ranks && measured.ranks->value != ranks)
    return other_run(
        measured.ranks->where,
        fmt::format("this run has {} ranks, and {} were predicted", measured.ranks->value, ranks),
        fmt::format("add -n {}, and a --fabric with so many GPUs", measured.ranks->value));
  if (measured.process_ranks && ranks % measured.process_ranks->value != 0)
    return other_run(
        measured.process_ranks->where,
        fmt::format("this run has {} GPUs in each process, and {} ranks were predicted",
                    measured.process_ranks->value, ranks),
        "add -n with the ranks of the run");
  return check_factors(request, measured);
}

std::vector<std::string> other_choices(std::span<const PerfRow> rows,
                                       const MeasuredTable& measured) {
  std::vector<std::string> out;
  for (const PerfRow& row : rows) {
    const auto choice =
        std::ranges::find(measured.choices, row.size_bytes, &MeasuredTable::Choice::size_bytes);
    if (choice == measured.choices.end() ||
        (choice->algorithm == row.algorithm && choice->protocol == row.protocol))
      continue;
    out.push_back(fmt::format("{}: NCCL chose {} {}, the model {} {}",
                              human(Bytes{static_cast<std::int64_t>(row.size_bytes)}),
                              choice->algorithm, to_text(choice->protocol), row.algorithm,
                              row.protocol ? to_text(*row.protocol) : "line rate"));
  }
  return out;
}

}  // namespace weft::workload
