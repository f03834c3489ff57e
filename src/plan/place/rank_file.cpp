#include "plan/place/rank_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "base/whole_number.hpp"

namespace weft::plan::place {

std::vector<std::string> rank_file_formats() { return {"slurm", "openmpi", "pytorch"}; }

std::string rank_file(std::string_view format, std::span<const std::string> hosts,
                      std::uint32_t gpus_per_host, std::uint64_t ranks) {
  WEFT_CHECK(ranks <= std::uint64_t{gpus_per_host} * hosts.size());
  std::string out;
  for (std::size_t node = 0; node < hosts.size(); ++node) {
    if (format == "pytorch") out += fmt::format("{} {}\n", node, hosts[node]);
    for (std::uint32_t slot = 0; slot < gpus_per_host; ++slot) {
      const std::uint64_t rank = std::uint64_t{node} * gpus_per_host + slot;
      if (rank == ranks) break;
      if (format == "slurm") out += hosts[node] + "\n";
      if (format == "openmpi") out += fmt::format("rank {}={} slot={}\n", rank, hosts[node], slot);
    }
  }
  WEFT_CHECK(!out.empty() || hosts.empty());
  return out;
}

namespace {

constexpr std::size_t lines_max = 1'000'000;

enum class Form : std::uint8_t { openmpi, pytorch, hostfile, slurm };
constexpr std::array<std::string_view, 4> forms{"rank N=HOST slot=K", "N HOST", "HOST slots=K",
                                                "HOST"};

struct Parsed {
  Form form = Form::slurm;
  std::uint32_t rank = 0;  // of a process, or of a node with Form::pytorch
  RankLine line;
};

// "NAME=K".
std::optional<std::uint32_t> value_of(std::string_view word, std::string_view name) {
  if (!word.starts_with(name) || !word.substr(name.size()).starts_with('=')) return {};
  return whole_number<std::uint32_t>(word.substr(name.size() + 1));
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; out.size() < 4;) {
    at = line.find_first_not_of(" \t\r", at);
    if (at == line.npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    out.push_back(line.substr(at, end - at));
    at = end;
  }
  return out;
}

std::optional<Parsed> parse_line(const std::vector<std::string_view>& words) {
  using Gpus = RankLine::Gpus;
  if (words.size() == 1) return Parsed{Form::slurm, 0, {std::string(words[0]), Gpus::next, 1, {}}};
  if (words.size() == 3 && words[0] == "rank") {
    const std::size_t equals = words[1].find('=');
    const auto rank = whole_number<std::uint32_t>(words[1].substr(0, equals));
    const auto slot = value_of(words[2], "slot");
    if (equals == words[1].npos || equals + 1 == words[1].size() || !rank || !slot) return {};
    return Parsed{
        Form::openmpi, *rank, {std::string(words[1].substr(equals + 1)), Gpus::slot, *slot, {}}};
  }
  if (words.size() != 2) return {};
  if (const auto slots = value_of(words[1], "slots"); slots && *slots > 0)
    return Parsed{Form::hostfile, 0, {std::string(words[0]), Gpus::next, *slots, {}}};
  if (const auto rank = whole_number<std::uint32_t>(words[0]))
    return Parsed{Form::pytorch, *rank, {std::string(words[1]), Gpus::whole, 0, {}}};
  return {};
}

// By rank: each once, from 0 on.
Status order_by_rank(std::vector<Parsed>& lines) {
  std::ranges::stable_sort(lines, {}, &Parsed::rank);
  for (std::uint32_t i = 0; i < lines.size(); ++i)
    if (lines[i].rank != i)
      return fail(Errc::value, lines[i].line.where,
                  lines[i].rank < i ? fmt::format("duplicate entry for rank {}", lines[i].rank)
                                    : fmt::format("rank {} is missing", i),
                  "use one line per rank, from 0 on without gaps");
  return {};
}

}  // namespace

Result<std::vector<RankLine>> read_rank_file(std::string_view text, const std::string& file) {
  std::vector<Parsed> lines;
  std::uint32_t number = 0;
  for (const std::string_view whole : split(text, '\n')) {
    ++number;
    const auto words = words_of(whole.substr(0, whole.find('#')));
    if (words.empty()) continue;
    const Where where{file, number, static_cast<std::uint32_t>(words[0].data() - whole.data()) + 1};
    auto parsed = parse_line(words);
    const auto expected = fmt::format("write lines of one form: {}", fmt::join(forms, ", or "));
    if (!parsed) return fail(Errc::parse, where, "not a line of a rank file", expected);
    if (!lines.empty() && parsed->form != lines.front().form)
      return fail(Errc::parse, where,
                  fmt::format("a line of the form \"{}\" after lines of the form \"{}\"",
                              forms[static_cast<std::size_t>(parsed->form)],
                              forms[static_cast<std::size_t>(lines.front().form)]),
                  expected);
    if (lines.size() == lines_max)
      return fail(Errc::value, where, fmt::format("more than {} lines", lines_max),
                  "split the job");
    parsed->line.where = where;
    lines.push_back(*std::move(parsed));
  }
  if (lines.empty())
    return fail(Errc::value, {file, 0, 0}, "no ranks in this file",
                "write a line per rank: the name of its host");
  if (const Form form = lines.front().form; form == Form::openmpi || form == Form::pytorch)
    WEFT_TRY_STATUS(order_by_rank(lines));
  std::vector<RankLine> out;
  out.reserve(lines.size());
  for (Parsed& parsed : lines) out.push_back(std::move(parsed.line));
  return out;
}

}  // namespace weft::plan::place
