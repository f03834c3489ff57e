// SimAI text: no input crashes, errors name a line inside the file, and a workload that is accepted
// has a graph that finish() accepts again.
#include <algorithm>

#include "fuzz.hpp"
#include "workload/trace/simai_file.hpp"
#include "workload/trace/trace.hpp"

namespace {

// A million ranks are allowed, but not worth an input's time here.
bool is_large(std::string_view text) {
  std::size_t digits = 0;
  for (const char c : text.substr(0, text.find('\n'))) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 3) return true;
  }
  return false;
}

void check_error(const weft::Error& error, std::string_view text) {
  const auto line_count = 1 + std::ranges::count(text, '\n');
  WEFT_CHECK(error.where.line >= 1 && error.where.line <= line_count);
  WEFT_CHECK(!error.what.empty() && !error.hint.empty());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = weft::fuzz::text_of(data, size);
  const auto parsed = weft::workload::parse_simai(text, "fuzz.txt");
  if (!parsed) {
    check_error(parsed.error(), text);
    return 0;
  }
  if (is_large(text)) return 0;
  const auto workload = weft::workload::read_simai({"fuzz.txt", std::string(text)}, {});
  if (!workload) {
    check_error(workload.error(), text);
    return 0;
  }
  weft::model::OpGraph graph = workload->graph;
  WEFT_CHECK(graph.finish().has_value());
  WEFT_CHECK(!workload->notes.empty());
  return 0;
}
