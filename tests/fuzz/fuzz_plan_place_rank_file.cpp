// read_rank_file: no input crashes, errors name a line of the file, lines name hosts.
#include "fuzz.hpp"
#include "plan/place/rank_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto lines = weft::plan::place::read_rank_file(weft::fuzz::text_of(data, size), "f");
  if (!lines) {
    WEFT_CHECK(lines.error().where.file == "f" && !lines.error().hint.empty());
    return 0;
  }
  WEFT_CHECK(!lines->empty());
  for (const auto& line : *lines) WEFT_CHECK(!line.host.empty() && line.where.line > 0);
  return 0;
}
