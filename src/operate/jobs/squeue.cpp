#include <fmt/format.h>

#include <array>
#include <charconv>

#include "model/formats/hostlist.hpp"
#include "operate/jobs/running.hpp"

namespace weft::operate::jobs {
namespace {

constexpr std::size_t nodes_max = 1'000'000;  // of a line

std::optional<Timestamp> start_of(std::string_view seconds) {
  std::int64_t s = 0;
  const auto [end, error] = std::from_chars(seconds.data(), seconds.data() + seconds.size(), s);
  if (error != std::errc{} || end != seconds.data() + seconds.size()) return std::nullopt;
  if (s <= 0 || s > INT64_MAX / ns_per_s) return std::nullopt;
  return Timestamp{s * ns_per_s};
}

Result<RunningJob> read_line(std::string_view line, const NodeNames& names, const Where& where) {
  std::array<std::string_view, 5> cells;  // the last one, the name, may hold what separates them
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t end = i + 1 < cells.size() ? line.find('|') : line.size();
    if (end == std::string_view::npos)
      return fail(Errc::parse, where, fmt::format("{} of 5 cells", i + 1),
                  fmt::format("print them with squeue --noheader --format='{}'", squeue_format));
    cells[i] = trim(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  RunningJob job{.id = std::string(cells[0]),
                 .name = std::string(cells[4]),
                 .user = std::string(cells[1]),
                 .since = start_of(cells[2]),
                 .hosts = {},
                 .strangers = {}};
  if (job.id.empty()) return fail(Errc::parse, where, "a job without a number");
  if (cells[3].empty()) return job;  // it waits for its nodes
  WEFT_TRY(const auto nodes, model::expand_hostlist({std::string(cells[3]), where}, nodes_max));
  for (const std::string& node : nodes) names.add(job, node);
  return job;
}

}  // namespace

Result<std::vector<RunningJob>> read_squeue(std::string_view text, const NodeNames& names,
                                            const std::string& file) {
  std::vector<RunningJob> out;
  Errors errors;
  for (std::uint32_t number = 1; !text.empty() && errors.size() < errors_max; ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (trim(line).empty()) continue;
    auto job = read_line(line, names, {file, number, 0});
    if (job)
      out.push_back(*std::move(job));
    else
      errors.push_back(std::move(job).error());
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace weft::operate::jobs
