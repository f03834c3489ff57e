#include "base/timestamp.hpp"

#include <doctest/doctest.h>

#include "base/rng.hpp"

namespace weft {
namespace {

std::int64_t ns(std::string_view text) {
  const auto t = parse_timestamp({text, {}});
  REQUIRE_MESSAGE(t.has_value(), text);
  return t->ns;
}

TEST_CASE("known points of time") {
  CHECK(ns("1970-01-01T00:00:00Z") == 0);
  CHECK(ns("2026-11-21T19:11:29Z") == 1'795'288'289 * ns_per_s);
  CHECK(ns("2026-11-21T20:11:29.25+01:00") == 1'795'288'289 * ns_per_s + 250'000'000);
  CHECK(ns("2024-02-29 23:59:59.000000001z") == 1'709'251'199 * ns_per_s + 1);
  CHECK(ns("1969-12-31T23:59:59.5-00:00") == -ns_per_s / 2);
  CHECK(ns(" 42 ") == 42);
  CHECK(ns("-1") == -1);
}

TEST_CASE("what is none is refused") {
  for (const char* text :
       {"", "2026-13-01T00:00:00Z", "2025-02-29T00:00:00Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00.1234567890Z", "2026-01-01T00:00:00Zx",
        "2026-01-01T00:00:00+0100", "99999999999999999999", "9223372036854775807", "1.5",
        "1500-01-01T00:00:00Z", "2262-01-01T00:00:00Z", "2026-1-01T00:00:00Z"})
    CHECK_MESSAGE(!parse_timestamp({text, {}}), text);
}

TEST_CASE("written times are read back") {
  CHECK(to_text(Timestamp{0}) == "1970-01-01T00:00:00Z");
  CHECK(to_text(Timestamp{-1}) == "1969-12-31T23:59:59.999999999Z");
  CHECK(to_text(Timestamp{1'500'000'000}) == "1970-01-01T00:00:01.500Z");
  CHECK(to_text(Timestamp{1'000}) == "1970-01-01T00:00:00.000001Z");
  Rng rng(1);
  for (int i = 0; i < 2'000; ++i) {
    // 1678 to 2261.
    const auto span = static_cast<std::uint64_t>(timestamp_ns_max);
    const std::int64_t unit = i % 3 == 0 ? 1 : i % 3 == 1 ? 1'000 : ns_per_s;
    const Timestamp t{static_cast<std::int64_t>(rng.below(2 * span) - span) / unit * unit};
    CHECK(ns(to_text(t)) == t.ns);
  }
}

}  // namespace
}  // namespace weft
