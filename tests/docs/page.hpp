// A documentation page: its fenced blocks, what is to be done with each, and the commands in its
// prose.
//
// ```sh blocks are run, and the block without a language behind one is what they print. A line
// "..." of it stands for any lines, "..." within a line for any text. Comments before a block say
// more:
//   <!-- docs: file zone.yaml -->           the block is a file that later commands read
//   <!-- docs: setup COMMAND -->            run before the block, not shown
//   <!-- docs: not run: REASON -->          the block is not run; its options must exist
//   <!-- docs: not compared: REASON -->     it must succeed; what it prints is not compared
//   <!-- docs: long: REASON -->             runs with the tests labelled long only
//   <!-- docs: status 2 -->                 its exit status
//   <!-- docs: same as docs/other.md -->    a part of an output there, from the same line on
// Other languages (yaml, json, csv, text) mark blocks that are neither commands nor their output.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::docs {

using Lines = std::vector<std::string>;
// "path:line: what".
using Findings = std::vector<std::string>;

struct Block {
  std::size_t line = 0;  // of the opening fence, from 1
  std::string language;
  Lines lines;
  // Comments before it.
  Lines setup;
  std::optional<std::string> file, not_run, not_compared, is_long, same_as;
  int status = 0;
  bool has_output = false;  // commands: the next block is what they print

  bool is_commands() const { return language == "sh"; }
  bool is_output() const { return language.empty(); }
};

struct Span {  // `code` in the prose
  std::size_t line = 0;
  std::string text;
};

struct Page {
  std::string path;
  std::vector<Block> blocks;
  std::vector<Span> spans;
  Findings errors;
};

// Every block is accounted for: what is neither run and compared nor excluded with a reason is an
// error of the page.
Page parse_page(std::string path, std::string_view text);

// The text of the page with the lines of a block replaced.
std::string with_block(std::string_view text, const Block& block, const Lines& lines);

Lines lines_of(std::string_view text);

// ---- Output ----

// Whether `actual` is what `expected` says, with "..." for what varies. Spaces at ends of lines do
// not count.
bool matches(const Lines& expected, const Lines& actual);
// What of `expected` is not printed anywhere, and what was printed instead; for people.
std::string difference(const Lines& expected, const Lines& actual);
// `expected` brought up to date, with its "..." where they were; nothing where they cannot be
// placed.
std::optional<Lines> refreshed(const Lines& expected, const Lines& actual);
// "*" is "...": whether the whole of `text` fits.
bool fits(std::string_view pattern, std::string_view text, std::string_view any = "...");

// ---- Commands ----

// The words of each simple command in shell text: quotes taken off, comments, redirections and what
// joins commands left out.
std::vector<Lines> commands_in(std::string_view text);

}  // namespace weft::docs
