#include "workload/trace/trace.hpp"

#include <fmt/format.h>

#include <array>

#include "base/text.hpp"

namespace weft::workload {
namespace {

constexpr std::uint64_t input_bytes_max = std::uint64_t{2} << 30;

Status check_size(std::span<const TraceFile> files) {
  std::uint64_t bytes = 0;
  for (const TraceFile& file : files) bytes += file.content.size();
  if (bytes <= input_bytes_max) return {};
  return fail(Errc::value, {files.front().path},
              fmt::format("the input has {} bytes, more than {}", bytes, input_bytes_max),
              "record fewer steps or ranks");
}

// Options that one format alone knows would be ignored with another.
enum class Takes : std::uint8_t { nothing, groups, overhead };

Status check_options(const TraceFile& file, Takes takes, const TraceOptions& options) {
  if (options.groups && takes != Takes::groups)
    return fail(Errc::infeasible, {options.groups->path},
                fmt::format("process groups are given, but {} is no Chakra trace", file.path),
                "leave the groups out; in the other formats the workload itself names them");
  if (options.goal_overhead_s > 0 && takes != Takes::overhead)
    return fail(Errc::infeasible, {file.path},
                "an overhead of sends and receives is given, but this is no GOAL schedule",
                "leave the overhead out");
  return {};
}

struct Format {
  std::string_view name;
  bool (*is)(const TraceFile& file);
  Result<RecordedWorkload> (*read)(const TraceFile& file, const TraceOptions& options);
  Takes takes;
};

// Formats of one file, the ones with the clearest mark first.
constexpr std::array<Format, 3> formats{{
    {"SimAI text", is_simai, read_simai, Takes::nothing},
    {"AICB CSV", is_aicb_csv, read_aicb_csv, Takes::nothing},
    {"GOAL", is_goal, read_goal, Takes::overhead},
}};

}  // namespace

Result<RecordedWorkload> read_workload(std::span<const TraceFile> files,
                                       const TraceOptions& options) {
  if (files.empty())
    return fail(Errc::value, {}, "no workload file is named", "name one or more files");
  WEFT_TRY_STATUS(check_size(files));
  const TraceFile& first = files.front();
  if (first.content.empty())
    return fail(Errc::parse, {first.path}, "the file is empty", "record the workload again");
  for (const Format& format : formats) {
    if (!format.is(first)) continue;
    if (files.size() > 1)
      return fail(Errc::infeasible, {files[1].path},
                  fmt::format("{} is one file, but {} are named", format.name, files.size()),
                  "name one file; only Chakra has one per rank");
    WEFT_TRY_STATUS(check_options(first, format.takes, options));
    return format.read(first, options);
  }
  if (is_chakra(first)) {
    WEFT_TRY_STATUS(check_options(first, Takes::groups, options));
    return read_chakra(files, options);
  }
  return fail(
      Errc::parse, {first.path, 1, 1},
      fmt::format("no known workload format starts with {}",
                  quoted(std::string_view(first.content).substr(0, 40))),
      "known are SimAI/AICB text and CSV, Chakra (.et, .tar, .tgz) and GOAL (text, binary)");
}

}  // namespace weft::workload
