#include "plan/report/report.hpp"

#include "base/file.hpp"

namespace weft::plan::report {

Status write_report(const Outcome& outcome, const std::string& directory) {
  WEFT_TRY(const std::string json, json_text(outcome));
  WEFT_TRY(const std::string html, html_text(outcome));
  WEFT_TRY(const std::string trace, gzip(trace_text(outcome)));
  WEFT_TRY_STATUS(write_file(directory + "/report.json", json));
  WEFT_TRY_STATUS(write_file(directory + "/report.html", html));
  return write_file(directory + "/trace.json.gz", trace);
}

}  // namespace weft::plan::report
