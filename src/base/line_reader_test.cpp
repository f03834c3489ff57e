#include "base/line_reader.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/test_folder.hpp"

using namespace weft;

namespace {

// "1:a 2: 3:b", or what went wrong.
std::string all(LineReader reader) {
  std::string out;
  while (reader.next())
    out += std::to_string(reader.where().line) + ":" + std::string(reader.line()) + " ";
  if (reader.error() != nullptr) out += "! " + reader.error()->text();
  return out;
}

// The same from memory and from a file.
std::string both(const std::string& text) {
  const std::string memory = all({text, "f"});
  const TestFolder folder;
  const std::string file = folder.write("lines", text);
  auto reader = LineReader::open(file);
  REQUIRE(reader.has_value());
  std::string out = all(*std::move(reader));
  if (const std::size_t at = out.find(file); at != std::string::npos)
    out.replace(at, file.size(), "f");
  CHECK(out == memory);
  return memory;
}

}  // namespace

TEST_CASE("lines, with every kind of end") {
  CHECK(both("").empty());
  CHECK(both("\n") == "1: ");
  CHECK(both("a") == "1:a ");
  CHECK(both("a\n\nb\r\nc") == "1:a 2: 3:b 4:c ");
  CHECK(both("\xEF\xBB\xBF"
             "a\n\xEF\xBB\xBF-") == "1:a 2:\xEF\xBB\xBF- ");
  CHECK(both("\xEF\xBB\xBF") == "1: ");
}

TEST_CASE("lines that lie across blocks, and the longest one") {
  std::string text, expected;
  for (int i = 1; text.size() < 1'000'000; ++i) {
    const std::string line(static_cast<std::size_t>(i * 37 % 5000),
                           static_cast<char>('a' + i % 26));
    text += line + "\n";
    expected += std::to_string(i) + ":" + line + " ";
  }
  CHECK(both(text) == expected);
  const std::string longest(line_bytes_max, 'x');
  CHECK(both("a\n" + longest + "\nb") == "1:a 2:" + longest + " 3:b ");
  CHECK(both("a\n" + longest + "x\nb") ==
        "1:a ! f:2:1: the line is longer than 65535 bytes; check that this is the right file");
  CHECK(both(std::string(2'000'000, 'x')).starts_with("! f:1:1: the line is longer"));
}

TEST_CASE("a look ahead takes nothing, and the rest is what no line has taken") {
  const std::string text = "one\ntwo\n" + std::string(600'000, 'x');
  const TestFolder folder;
  const std::string file = folder.write("lines", text);
  auto reader = LineReader::open(file);
  REQUIRE(reader.has_value());
  CHECK(reader->size_hint() == text.size());
  CHECK(text.starts_with(reader->peek()));
  CHECK(reader->peek().size() >= line_bytes_max);
  REQUIRE(reader->next());
  CHECK(reader->line() == "one");
  CHECK(reader->peek().starts_with("two\n"));
  CHECK(reader->rest() == text.substr(4));
  CHECK_FALSE(reader->next());
  LineReader memory("one\ntwo", "f");
  REQUIRE(memory.next());
  CHECK(memory.peek() == "two");
  CHECK(memory.rest() == "two");
}

TEST_CASE("gzip is unpacked, and broken gzip is an error") {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919) + "\n";
  const TestFolder folder;
  const std::string packed = *gzip(text.substr(0, 1000)) + *gzip(text.substr(1000));
  auto reader = LineReader::open(folder.write("lines.gz", packed));
  REQUIRE(reader.has_value());
  std::string got;
  while (reader->next()) (got += reader->line()) += '\n';
  CHECK(reader->error() == nullptr);
  CHECK(got == text);
  std::string damaged = packed;
  damaged[packed.size() / 2] ^= 0x55;
  for (const std::string& broken : {packed.substr(0, packed.size() - 9), damaged}) {
    auto bad = LineReader::open(folder.write("broken.gz", broken));
    REQUIRE(bad.has_value());
    while (bad->next()) {
    }
    REQUIRE(bad->error() != nullptr);
    CHECK(bad->error()->what == "gzip data is corrupt or truncated");
  }
}

TEST_CASE("what cannot be read") {
  CHECK(LineReader::open("/nowhere/at/all").error().code == Errc::io);
  CHECK(LineReader::open("/").error().text().find("is a directory") != std::string::npos);
  auto limited = LineReader::open("/dev/zero");
  REQUIRE(limited.has_value());
  CHECK(limited->rest(1 << 20).error().text() ==
        "/dev/zero: larger than 1048576 bytes; split the input or pass a smaller file");
}

TEST_CASE("a line that is too long can be passed over, however long it is") {
  const TestFolder folder;
  for (const std::size_t length :
       {line_bytes_max + 1, std::size_t{300'000}, std::size_t{3'000'000}})
    for (const std::string_view after : {"", "\n", "\nb", "\r\nb\nc"}) {
      const std::string text = "a\n" + std::string(length, 'x') + std::string(after);
      auto file = LineReader::open(folder.write("lines", text));
      REQUIRE(file.has_value());
      LineReader memory(text, "f");
      for (LineReader* reader : {&*file, &memory}) {
        CHECK_FALSE(reader->pass_over());
        REQUIRE(reader->next());
        REQUIRE_FALSE(reader->next());
        REQUIRE(reader->error() != nullptr);
        CHECK(reader->where().line == 2);
        REQUIRE(reader->pass_over());
        CHECK(reader->error() == nullptr);
        std::string left;
        while (reader->next())
          left += std::to_string(reader->where().line) + ":" + std::string(reader->line()) + " ";
        CHECK(left == (after == "\nb" ? "3:b " : after == "\r\nb\nc" ? "3:b 4:c " : ""));
        CHECK(reader->error() == nullptr);
      }
    }
}
