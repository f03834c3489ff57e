// update_docs [--long] [PAGE...]: runs the commands of README.md and docs/ and writes what they
// print into the pages. What changed is to be read before it is committed: git diff.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/file.hpp"
#include "book.hpp"

int main(int argc, char** argv) {
  using namespace weft;
  std::vector<std::string> pages(argv + 1, argv + argc);
  const bool is_long = std::erase(pages, "--long") > 0;
  docs::Book book(WEFT_TREE, WEFT_BINARY);
  if (pages.empty()) pages = book.pages();
  std::size_t open = 0;
  for (const std::string& page : pages) {
    const std::string path = std::string(WEFT_TREE) + "/" + page;
    const auto before = read_file(path);
    if (!before) {
      fmt::print(stderr, "{}\n", before.error().text());
      return 2;
    }
    const auto include = is_long ? docs::Include::long_blocks : docs::Include::short_blocks;
    docs::Tally tally = book.check(page, include);
    if (tally.refreshed != *before) {
      WEFT_CHECK(write_file(path, tally.refreshed).has_value());
      fmt::print("{}: updated\n", page);
      tally = book.check(page, include);
    }
    for (const std::string& finding : tally.findings) {  // what is still wrong
      fmt::print("{}\n", finding);
      ++open;
    }
  }
  return open == 0 ? 0 : 1;
}
