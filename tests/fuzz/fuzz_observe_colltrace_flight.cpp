// read_flight and what judges it: no input crashes, errors name the file, and a rank's dump has at
// most its own bytes of entries.
#include <string>

#include "fuzz.hpp"
#include "observe/colltrace/flight.hpp"
#include "observe/colltrace/verdict.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::observe::colltrace;
  const std::string_view text = weft::fuzz::text_of(data, size);
  JobBuilder builder;
  // Two ranks: the parts before and behind a line of its own.
  constexpr std::string_view mark = "\n--\n";
  const std::size_t cut = std::min(text.find(mark), text.size());
  std::string first(text.substr(0, cut));
  std::string second(text.substr(std::min(cut + mark.size(), text.size())));
  for (auto& [content, name] : {std::pair(&first, "rank_0"), std::pair(&second, "rank_1")}) {
    content->reserve(content->size() + json_padding);
    const auto status = read_flight(*content, name, builder);
    if (!status) WEFT_CHECK(status.error().where.file == name && !status.error().hint.empty());
  }
  const Job job = builder.finish();
  WEFT_CHECK(job.entries.size() <= size);
  for (const Entry& e : job.entries) WEFT_CHECK(e.group < job.groups.size());
  if (job.world > 4096) return 0;
  for (const Verdict& v : analyse(job, {.is_stalled = true}).verdicts)
    for (const std::uint32_t rank : v.ranks) WEFT_CHECK(rank < job.world);
  return 0;
}
