#include "base/csv.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace weft;

namespace {

const std::vector<std::string> required{"id", "src"};
const std::vector<std::string> optional{"after"};

// All records, each cell between bars, then the error if there is one.
std::string read(std::string_view text) {
  CsvReader csv(text, "f.csv");
  if (const auto header = csv.header(required, optional); !header) return header.error().text();
  std::string out;
  while (csv.next()) {
    for (std::size_t c = 0; c < 3; ++c) out.append(csv.cell(c).text).append("|");
    out += "\n";
  }
  if (csv.error() != nullptr) {
    CHECK_FALSE(csv.error()->hint.empty());
    out += csv.error()->where.text() + ": " + csv.error()->what;
  }
  return out;
}

}  // namespace

TEST_CASE("columns come by name, in any order; an optional one may be missing") {
  CHECK(read("id,src,after\n1,a,\n2,b,1\n") == "1|a||\n2|b|1|\n");
  CHECK(read("after,src,id\n,a,1\n") == "1|a||\n");
  CHECK(read("id,src\n1,a\n") == "1|a||\n");
  CHECK(read("id,src") == "");
}

TEST_CASE("blanks, comments, byte order mark and both line ends") {
  CHECK(read("\xEF\xBB\xBFid , src\r\n 1 ,\ta\r\n\r\n# note, with comma\n   \n2,b") ==
        "1|a||\n2|b||\n");
}

TEST_CASE("quoted cells hold separators, quotes and line ends") {
  CHECK(read("id,src\n\"a,b\",\"c\"\"d\"\n") == "a,b|c\"d||\n");
  CHECK(read("id,src\n\"x\ny\" , b\n2,c\n") == "x\ny|b||\n2|c||\n");
  CHECK(read("id,src\n\"\",\"\"\n") == "|||\n");
  CHECK(read("id,src\n\"#1\",b\n") == "#1|b||\n");
}

TEST_CASE("broken lines are named by line and column, and what stands before them is kept") {
  CHECK(read("id,src\n1,a\n2\n3,c\n") == "1|a||\nf.csv:3:1: 1 cells, but the header has 2");
  CHECK(read("id,src\n1,a,b\n") == "f.csv:2:1: 3 cells, but the header has 2");
  CHECK(read("id,src\n\n1,\"a\n2,b\n") == "f.csv:3:3: unterminated quoted cell");
  CHECK(read("id,src\n1,\"a\"x\n") == "f.csv:2:3: text after a closing quote");
  CHECK(read("id,src\n1,\"a\" \"b\"\n") == "f.csv:2:3: text after a closing quote");
  CHECK(read("id,src\n1,\xFF\n") == "f.csv:2:1: the line contains bytes that are not text");
  CHECK(read(std::string_view("id,src\n1,\0\n", 11)) ==
        "f.csv:2:1: the line contains bytes that are not text");
}

TEST_CASE("a record may not grow without bound") {
  const std::string wide = "id,src\n" + std::string(1'000'000, ',');
  CHECK(read(wide) == "f.csv:2:1024: more than 1024 cells");
}

TEST_CASE("cells know where they stand, also after a line end inside quotes") {
  //                 123456789
  CsvReader csv("id,src,after\n\"a\nb\",  c,d\n7,8,9\n", "f.csv");
  REQUIRE(csv.header(required, optional).has_value());
  REQUIRE(csv.next());
  CHECK(csv.cell(0).where.text() == "f.csv:2:1");
  CHECK(csv.cell(1).where.text() == "f.csv:3:4");
  CHECK(csv.cell(2).where.text() == "f.csv:3:8");
  REQUIRE(csv.next());
  CHECK(csv.where().text() == "f.csv:4:1");
  CHECK(csv.cell(2).where.text() == "f.csv:4:5");
  CHECK_FALSE(csv.next());
  CHECK(csv.error() == nullptr);
}

TEST_CASE("all faults of a header come at once") {
  CHECK(read("id,scr,id\n") ==
        "f.csv:1:4: unknown column \"scr\" (did you mean \"src\"?); known columns: "
        "id,src,after\nf.csv:1:8: duplicate column \"id\"; remove one of them\nf.csv:1:1: column "
        "\"src\" is missing; known columns: id,src,after");
  CHECK(read("id,,src\n") ==
        "f.csv:1:4: unknown column \"\"; known columns: id,src,after");  // and no nearest name
  CHECK(read("") == "f.csv:1:1: the file is empty; start it with the header line \"id,src\"");
  CHECK(read("\n# only a note\n").find("the file is empty") != std::string::npos);
}

TEST_CASE("a written cell reads back the same") {
  for (const std::string cell : {"plain", "a,b", "say \"so\"", "two\nlines", "#1", "\"", "µ", ""}) {
    CAPTURE(cell);
    CHECK(read("id,src\n" + csv_cell(cell) + ",x\n") == cell + "|x||\n");
  }
  CHECK(csv_cell("plain") == "plain");
}

TEST_CASE("a long file is read to its end") {
  std::string text = "id,src\n";
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + ",gpu:1\n";
  CsvReader csv(text, "f.csv");
  REQUIRE(csv.header(required, optional).has_value());
  std::size_t count = 0;
  while (csv.next()) ++count;
  CHECK(count == 200'000);
}
