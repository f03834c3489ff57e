// Hashes of ranks: no input crashes, errors name the file, and what is accused is among the ranks.
#include <set>
#include <string>

#include "fuzz.hpp"
#include "observe/colltrace/dissent.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::observe::colltrace;
  HashSet hashes;
  const std::string text(weft::fuzz::text_of(data, size));
  if (const auto status = read_hashes(text, "fuzz.csv", hashes); !status) {
    WEFT_CHECK(status.error().where.file == "fuzz.csv" && !status.error().what.empty());
    return 0;
  }
  const auto report = find_dissent(hashes);
  if (!report) {
    WEFT_CHECK(!report.error().what.empty() && !report.error().hint.empty());
    return 0;
  }
  std::set<std::uint32_t> ranks;
  for (const HashRow& row : hashes.rows) ranks.insert(row.rank);
  WEFT_CHECK(report->ranks == ranks.size() && report->rows <= hashes.rows.size());
  for (std::size_t i = 0; i < report->dissents.size(); ++i) {
    const Dissent& d = report->dissents[i];
    WEFT_CHECK(!d.ranks.empty() && d.ranks.size() < d.members);
    WEFT_CHECK(!d.follows || *d.follows < report->dissents.size());
    for (const HashPart& part : d.parts) WEFT_CHECK(ranks.contains(part.rank));
  }
  return 0;
}
