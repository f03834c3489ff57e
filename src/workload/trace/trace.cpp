#include "workload/trace/trace.hpp"

#include <fmt/format.h>

#include <array>

#include "base/text.hpp"
#include "workload/trace/load.hpp"

namespace weft::workload {
namespace {

Status check_size(std::span<const TraceFile> files) {
  std::uint64_t bytes = 0;
  for (const TraceFile& file : files) bytes += file.content.size();
  if (bytes <= trace_bytes_max) return {};
  return fail(Errc::value, {files.front().path},
              fmt::format("the input has {} bytes, more than {}", bytes, trace_bytes_max),
              "record fewer steps or ranks");
}

// Options that one format alone knows would be ignored with another.
enum class Takes : std::uint8_t { nothing, groups, overhead };

Status check_options(const TraceFile& file, Takes takes, const TraceOptions& options) {
  if (options.groups && takes != Takes::groups)
    return fail(Errc::infeasible, {options.groups->path},
                fmt::format("process groups are given, but {} is not a Chakra trace", file.path),
                "omit the groups; in the other formats the workload itself defines them");
  if (options.goal_overhead_s > 0 && takes != Takes::overhead)
    return fail(Errc::infeasible, {file.path},
                "an overhead for sends and receives is given, but this is not a GOAL schedule",
                "omit the overhead");
  return {};
}

struct Format {
  TraceFormat format;
  std::string_view name;
  bool (*is)(const TraceFile& file);
  Result<RecordedWorkload> (*read)(const TraceFile& file, const TraceOptions& options);
  Takes takes;
};

// Formats of one file, the ones with the clearest mark first.
constexpr std::array<Format, 3> formats{{
    {TraceFormat::simai, "SimAI text", is_simai, read_simai, Takes::nothing},
    {TraceFormat::aicb, "AICB CSV", is_aicb_csv, read_aicb_csv, Takes::nothing},
    {TraceFormat::goal, "GOAL", is_goal, read_goal, Takes::overhead},
}};

}  // namespace

std::optional<TraceFormat> format_of(const TraceFile& file) {
  for (const Format& format : formats)
    if (format.is(file)) return format.format;
  return is_chakra(file) ? std::optional(TraceFormat::chakra) : std::nullopt;
}

Error unknown_format(const TraceFile& file) {
  return {
      Errc::parse,
      {file.path, 1, 1},
      fmt::format("no known workload format starts with {}",
                  quote(std::string_view(file.content).substr(0, 40))),
      "known formats: SimAI/AICB text and CSV, Chakra (.et, .tar, .tgz) and GOAL (text, binary)",
      {}};
}

Result<RecordedWorkload> read_workload(std::span<const TraceFile> files,
                                       const TraceOptions& options) {
  if (files.empty())
    return fail(Errc::value, {}, "no workload file given", "specify one or more files");
  WEFT_TRY_STATUS(check_size(files));
  const TraceFile& first = files.front();
  if (first.content.empty())
    return fail(Errc::parse, {first.path}, "the file is empty", "record the workload again");
  const std::optional<TraceFormat> known = format_of(first);
  if (!known) return std::unexpected(unknown_format(first));
  for (const Format& format : formats) {
    if (format.format != *known) continue;
    if (files.size() > 1)
      return fail(Errc::infeasible, {files[1].path},
                  fmt::format("{} takes one file, but {} are given", format.name, files.size()),
                  "specify one file; only Chakra has one per rank");
    WEFT_TRY_STATUS(check_options(first, format.takes, options));
    return format.read(first, options);
  }
  WEFT_TRY_STATUS(check_options(first, Takes::groups, options));
  return read_chakra(files, options);
}

}  // namespace weft::workload
