// Runs the commands that README.md and docs/ show. Update what they print with
//   cmake --build build/release --target update_docs && build/release/tests/docs/update_docs
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "book.hpp"

using namespace weft::docs;

namespace {

void report(const Tally& tally) {
  fmt::print(
      "{} blocks run and compared, {} run but not compared, options of {} commands checked\n",
      tally.compared, tally.run, tally.parsed);
  for (const std::string& line : tally.excluded) fmt::print("{}\n", line);
  for (const std::string& finding : tally.findings) FAIL_CHECK(finding);
}

}  // namespace

TEST_CASE("every command that the pages show works and prints what they say") {
  Book book(WEFT_TREE, WEFT_BINARY);
  Tally tally;
  for (const std::string& page : book.pages()) tally.add(book.check(page, Include::short_blocks));
  CHECK(tally.compared > 10);
  CHECK(tally.parsed > 100);
  report(tally);
}

TEST_CASE("pages with long commands" * doctest::skip()) {
  Book book(WEFT_TREE, WEFT_BINARY);
  Tally tally;
  for (const std::string& page : book.pages())
    if (book.has_long_blocks(page)) tally.add(book.check(page, Include::long_blocks));
  CHECK(tally.compared > 0);
  report(tally);
}
