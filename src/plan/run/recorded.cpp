#include "plan/run/recorded.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/file.hpp"
#include "workload/trace/load.hpp"

namespace weft::plan {
namespace {

enum class Holds : std::uint8_t { trace, side };

Result<workload::TraceFile> read_one(const std::string& path, Holds holds) {
  if (holds == Holds::trace) return workload::load_trace(path);
  WEFT_TRY(std::string content, read_file(path, workload::trace_side_bytes_max));
  return workload::TraceFile{path, std::move(content)};
}

std::optional<workload::TraceFile> read_file_of(Reader& job, const Token& name, Holds holds) {
  const std::filesystem::path given(name.text);
  const std::filesystem::path path =
      given.is_absolute() ? given : std::filesystem::path(name.where.file).parent_path() / given;
  auto file = read_one(path.string(), holds);
  if (file) return *std::move(file);
  Error error = std::move(file).error();
  if (error.code == Errc::io) {  // of the key that names the file; else of a place in it
    error.what = path.string() + ": " + error.what;
    error.where = name.where;
  }
  job.error(std::move(error));
  return std::nullopt;
}

// A key that names one file: absent, or the file; clears `complete` when it cannot be read.
std::optional<workload::TraceFile> read_only_file(Reader& job, std::string_view key,
                                                  bool& complete) {
  const std::vector<Token> names = job.texts(key);
  if (names.empty()) return std::nullopt;
  if (names.size() > 1)
    job.error(Errc::value, names[1].where, fmt::format("job.{} must be one file", key),
              "specify one");
  auto file = read_file_of(job, names.front(), Holds::side);
  complete = complete && file.has_value();
  return file;
}

}  // namespace

std::optional<Recorded> read_recorded_workload(Reader& job) {
  std::vector<workload::TraceFile> files;
  workload::TraceOptions options;
  bool complete = true;
  for (const Token& name : job.texts("workload")) {
    auto file = read_file_of(job, name, Holds::trace);
    complete = complete && file.has_value();
    if (file) files.push_back(*std::move(file));
  }
  options.groups = read_only_file(job, "groups", complete);
  if (job.has("trace_ranks"))
    options.ranks =
        static_cast<std::uint32_t>(job.count("trace_ranks", std::nullopt, 1, 1'000'000));
  options.goal_overhead_s = job.duration("overhead", Duration{}).seconds();
  std::optional<workload::AstraSystem> system;
  if (const auto file = read_only_file(job, "system", complete)) {
    auto read = workload::read_astra_system(file->content, file->path);
    complete = complete && read.has_value();
    if (read)
      apply(*(system = *std::move(read)), options);
    else
      job.error(std::move(read).error());
  }
  if (!complete) return std::nullopt;
  auto recorded = workload::read_workload(files, options);
  if (recorded) return Recorded{*std::move(recorded), std::move(system)};
  job.error(std::move(recorded).error());
  return std::nullopt;
}

std::vector<std::string> summary_of(const Recorded& recorded) {
  std::vector<std::string> lines;
  std::vector<std::string> counts;
  for (const auto& [what, count] : recorded.counts)
    counts.push_back(fmt::format("{} {}", count, what));
  lines.push_back(fmt::format("{}: {}", recorded.format, fmt::join(counts, ", ")));
  for (const auto& [what, seconds] : recorded.times_s)
    lines.push_back(fmt::format("{}: {:.6g} s", what, seconds));
  lines.insert(lines.end(), recorded.notes.begin(), recorded.notes.end());
  if (recorded.system)
    for (std::string& note : to_notes(*recorded.system)) lines.push_back(std::move(note));
  return lines;
}

}  // namespace weft::plan
