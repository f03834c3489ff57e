#include "plan/report/report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.hpp"

namespace weft::plan::report {

Status check_directory(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path probe = fs::path(directory) / fmt::format(".weft-{}", ::getpid());
  std::vector<fs::path> made;  // innermost first
  for (fs::path at = probe.parent_path(); !at.empty() && !fs::exists(at, error);
       at = at.parent_path())
    made.push_back(at);
  const Status written = write_file(probe.string(), "");
  fs::remove(probe, error);
  for (const fs::path& path : made) fs::remove(path, error);
  if (!written)
    return fail(Errc::io, {directory}, written.error().what, "specify a writable directory");
  return {};
}

Status write_report(const Outcome& outcome, const std::string& directory,
                    std::span<const model::VariantOutcome> recorded) {
  WEFT_TRY(const std::string json, json_text(outcome));
  WEFT_TRY(const std::string html, html_text(outcome));
  WEFT_TRY(const std::string trace, gzip(trace_text(outcome, recorded)));
  WEFT_TRY_STATUS(write_file(directory + "/report.json", json));
  WEFT_TRY_STATUS(write_file(directory + "/report.html", html));
  return write_file(directory + "/trace.json.gz", trace);
}

}  // namespace weft::plan::report
