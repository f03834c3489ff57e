// Journals of sweeps: no input crashes; what is read shows as CSV and table, and the complete lines
// alone read the same.
#include "fuzz.hpp"
#include "plan/sweep/journal.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::plan;
  const std::string_view text = weft::fuzz::text_of(data, size);
  const auto lines = read_journal(text, "points.jsonl");
  if (!lines || lines->bytes == 0) return 0;
  const auto shown = [](const JournalLines& read) {
    const SweepResult result = sweep_result(read.head.keys, read.rows, read.head.currency);
    return to_csv(result) + to_table(result);
  };
  const auto again = read_journal(text.substr(0, lines->bytes), "points.jsonl");
  WEFT_CHECK(again.has_value() && again->bytes == lines->bytes);
  WEFT_CHECK(shown(*again) == shown(*lines));
  return 0;
}
