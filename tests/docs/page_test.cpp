#include "page.hpp"

#include <doctest/doctest.h>

using namespace weft::docs;

namespace {

// Lines; ' stands for `.
Page page(std::string text) {
  for (char& c : text)
    if (c == '\'') c = '`';
  return parse_page("p.md", text);
}

bool is_told(const Page& page, std::string_view what) {
  return page.errors.size() == 1 && page.errors[0].find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("commands, and what they print behind them") {
  const Page p = page("text\n\n'''sh\nweft run a.yaml\n'''\nprints\n'''\n1\n2\n'''\n");
  REQUIRE(p.errors.empty());
  REQUIRE(p.blocks.size() == 2);
  CHECK(p.blocks[0].is_commands());
  CHECK(p.blocks[0].has_output);
  CHECK(p.blocks[0].line == 3);
  CHECK(p.blocks[1].lines == Lines{"1", "2"});
}

TEST_CASE("no block is left out without a reason") {
  CHECK(is_told(page("'''sh\nweft\n'''\n"), "p.md:1: no output follows"));
  CHECK(is_told(page("'''\nweft\n'''\n"), "p.md:1: which command prints this?"));
  CHECK(is_told(page("'''sh\nweft\n'''\n'''yaml\na: b\n'''\n"), "no output follows"));
  CHECK(is_told(page("<!-- docs: not run: -->\n'''sh\na\n'''\n"), "a reason is missing"));
  CHECK(is_told(page("<!-- docs: not run: root -->\n'''sh\na\n'''\n'''\nb\n'''\n"),
                "is not checked"));
  CHECK(is_told(page("'''console\n$ a\n'''\n"), "```sh block"));
  CHECK(is_told(page("'''text\nx\n"), "does not end"));
  CHECK(is_told(page("'''sh\na\n'''\n'''\n...\n\n'''\n"), "dots alone"));
  CHECK(page("'''text\nx\n'''\n'''yaml\na: b\n'''\n").errors.empty());
}

TEST_CASE("comments belong to the block behind them") {
  const Page p = page(
      "<!-- docs: setup seq 3 > f -->\n<!-- docs: status 2 -->\n"
      "<!-- docs: not compared: it has times -->\n\n'''sh\ncat f\n'''\n"
      "<!-- docs: file a.yaml -->\n'''yaml\na: b\n'''\n"
      "<!-- docs: long: an hour -->\n'''sh\nb\n'''\n'''\nc\n'''\n");
  REQUIRE_MESSAGE(p.errors.empty(), p.errors[0]);
  CHECK(p.blocks[0].setup == Lines{"seq 3 > f"});
  CHECK(p.blocks[0].status == 2);
  CHECK(p.blocks[0].not_compared == "it has times");
  CHECK(p.blocks[1].file == "a.yaml");
  CHECK(p.blocks[2].is_long == "an hour");
  CHECK(p.blocks[2].setup.empty());
}

TEST_CASE("comments that mean nothing are errors") {
  CHECK(is_told(page("<!-- docs: not run: root -->\ntext\n"), "stands before a block"));
  CHECK(is_told(page("<!-- docs: skip -->\n'''text\n'''\n"), "\"skip\" is unknown"));
  CHECK(is_told(page("<!-- docs: status x -->\n'''text\n'''\n"), "not an exit status"));
  CHECK(is_told(page("text\n<!-- docs: file a -->\n"), "stands before a block"));
}

TEST_CASE("commands in prose") {
  const Page p =
      page("Use 'weft run a' or\n'weft\nflows b'. Then\n\n'c d' and 'open\n\nnext 'e' end\n");
  REQUIRE(p.spans.size() == 4);
  CHECK(p.spans[0].text == "weft run a");
  CHECK(p.spans[1].text == "weft flows b");
  CHECK(p.spans[1].line == 2);
  CHECK(p.spans[3].text == "e");
}

TEST_CASE("words of shell commands") {
  const auto got = commands_in(
      "weft run \"a b\" --set x='c d' > out 2>&1 # comment\n"
      "x < in | weft send --to unix:a.sock && (y; z) \\\n  more\n");
  CHECK(got == std::vector<Lines>{{"weft", "run", "a b", "--set", "x=c d"},
                                  {"x"},
                                  {"weft", "send", "--to", "unix:a.sock"},
                                  {"y"},
                                  {"z"},
                                  {"more"}});
}

TEST_CASE("the lines of a block are replaced, and no others") {
  const std::string text = "a\n```\nold\n```\nb\n";
  const Page p = parse_page("p.md", text);
  REQUIRE(p.blocks.size() == 1);
  CHECK(with_block(text, p.blocks[0], {"new", "lines"}) == "a\n```\nnew\nlines\n```\nb\n");
}
