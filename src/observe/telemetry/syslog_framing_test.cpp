#include "observe/telemetry/syslog_framing.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace weft::observe::telemetry {
namespace {

using Mode = SyslogFraming::Mode;

// The messages of a stream that comes in pieces of `step` bytes.
std::vector<std::string> messages(std::string_view bytes, std::size_t step,
                                  Mode mode = Mode::stream,
                                  SyslogFraming::Counts* counts = nullptr) {
  SyslogFraming framing(mode);
  std::vector<std::string> out;
  const auto take = [&](std::string_view message) { out.emplace_back(message); };
  for (std::size_t i = 0; i < bytes.size(); i += step) framing.feed(bytes.substr(i, step), take);
  framing.finish(take);
  if (counts != nullptr) *counts = framing.counts();
  return out;
}

TEST_CASE("octet counts and lines, in pieces of any size") {
  const std::string bytes = "5 <3>ab<34>line one\n7 <4>a\nbc<5>last";
  const std::vector<std::string> wanted{"<3>ab", "<34>line one", "<4>a\nbc", "<5>last"};
  for (std::size_t step = 1; step <= bytes.size(); ++step) CHECK(messages(bytes, step) == wanted);
}

TEST_CASE("empty lines are none, NUL ends one too") {
  const std::string bytes("<3>a\n\n\r\n<3>b\0<3>c\n", 18);
  for (std::size_t step = 1; step <= bytes.size(); ++step)
    CHECK(messages(bytes, step) == std::vector<std::string>{"<3>a", "<3>b", "<3>c"});
}

TEST_CASE("in files digits begin a line like any other") {
  CHECK(messages("2026-01-01 x\n5 <3>ab\n", 4, Mode::lines) ==
        std::vector<std::string>{"2026-01-01 x", "5 <3>ab"});
}

TEST_CASE("what is no count is a line, and counted") {
  SyslogFraming::Counts counts;
  CHECK(messages("12x hello\n<3>b\n", 3, Mode::stream, &counts) ==
        std::vector<std::string>{"12x hello", "<3>b"});
  CHECK(counts.bad_counts == 1);
}

TEST_CASE("what is too long is cut, counted, and does not disturb what follows") {
  for (const std::size_t step : {std::size_t{1'000}, std::size_t{1'000'000}}) {
    SyslogFraming::Counts counts;
    const std::string line(200'000, 'x');
    std::string text = line;
    text.append("\n<3>b\n200000 ").append(line).append("<3>c\n");
    const auto got = messages(text, step, Mode::stream, &counts);
    REQUIRE(got.size() == 4);
    CHECK(got[0].size() == syslog_bytes_max);
    CHECK(got[1] == "<3>b");
    CHECK(got[2].size() == syslog_bytes_max);
    CHECK(got[3] == "<3>c");
    CHECK(counts.cut == 2);
    CHECK(counts.messages == 4);
  }
}

TEST_CASE("a connection that ends in a count or a message") {
  CHECK(messages("12", 1) == std::vector<std::string>{"12"});
  CHECK(messages("9 <3>ab", 2) == std::vector<std::string>{"<3>ab"});
}

}  // namespace
}  // namespace weft::observe::telemetry
