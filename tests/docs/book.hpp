// Runs what the pages show and compares what it prints.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "page.hpp"

namespace weft::docs {

enum class Include : bool { short_blocks, long_blocks };

// What happened to the blocks of a page.
struct Tally {
  std::size_t compared = 0, run = 0,
              parsed = 0;  // parsed: commands of which only options are checked
  Lines excluded;          // "docs/lab.md:6: not run: needs root"
  Findings findings;
  std::string refreshed;  // the page, brought up to date where that was possible

  void add(const Tally& other);
};

class Book {
 public:
  // `tree` is the top of the source tree, `weft` the program.
  Book(std::string tree, std::string weft);

  // README.md, docs/*.md and docs/commands/*.md, as paths from the top of the tree.
  Lines pages() const;
  bool has_long_blocks(const std::string& path) const;
  // In a folder of its own, that has tests/docs/inputs/*, scenarios/ and bench/ in it.
  Tally check(const std::string& path, Include include);

 private:
  void check_block(const Page& page, std::size_t i, const std::string& folder, Include include,
                   Tally& tally);
  void compare(const Page& page, const Block& block, const Lines& printed, Tally& tally) const;
  void check_same(const Page& page, const Block& block, Tally& tally) const;
  // Options, test cases and files that the commands name exist.
  void check_commands(const std::string& where, std::string_view text, Tally& tally);
  void check_weft(const std::string& where, const Lines& words, Tally& tally);
  void check_other(const std::string& where, const Lines& words, Tally& tally);
  const std::string& help_of(const Lines& command);

  std::string tree_, weft_;
  std::map<std::string, std::string> help_;  // by command; "" where there is none
  Lines test_cases_, benchmarks_;            // names in the sources
};

}  // namespace weft::docs
