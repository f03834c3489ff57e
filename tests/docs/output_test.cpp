#include <doctest/doctest.h>

#include "page.hpp"

using namespace weft::docs;

TEST_CASE("what does not vary is compared exactly") {
  CHECK(matches({"a  b", "c"}, {"a  b   ", "c"}));
  CHECK_FALSE(matches({"a b"}, {"a  b"}));
  CHECK_FALSE(matches({"a"}, {"a", "b"}));
  CHECK_FALSE(matches({"a", "b"}, {"a"}));
  CHECK_FALSE(matches({"a", "b"}, {"b", "a"}));
  CHECK_FALSE(matches({}, {"a"}));
}

TEST_CASE("a line of dots is any number of lines") {
  CHECK(matches({"a", "...", "d"}, {"a", "b", "c", "d"}));
  CHECK(matches({"a", "...", "d"}, {"a", "d"}));
  CHECK(matches({"...", "d"}, {"d", "a", "d"}));
  CHECK(matches({"a", "..."}, {"a", "b"}));
  CHECK_FALSE(matches({"a", "...", "d"}, {"a", "b", "c"}));
  CHECK_FALSE(matches({"...", "d"}, {"d", "a"}));
}

TEST_CASE("dots in a line are any text of it") {
  CHECK(matches({"took ... s on ..."}, {"took 3.5 s on host-1"}));
  CHECK_FALSE(matches({"took ... s"}, {"took 3.5 min"}));
  CHECK(fits("nccl*2.0", "nccl: tables of 2.0", "*"));
  CHECK_FALSE(fits("nccl*", "published nccl", "*"));
}

TEST_CASE("a difference shows the lines that nothing prints") {
  const std::string text = difference({"a 1", "b", "..."}, {"a 2", "b"});
  CHECK(text == "  not printed: a 1\nprinted:\n  a 2\n  b\n");
}

TEST_CASE("an output is brought up to date, its dots stay") {
  CHECK(refreshed({"old"}, {"new", "lines"}) == Lines{"new", "lines"});
  CHECK(refreshed({"load 0.5", "took ... s"}, {"load 0.75", "took 3 s"}) ==
        Lines{"load 0.75", "took ... s"});
  CHECK(refreshed({"name  load", "...", "total 7"}, {"name  load", "a 1", "b 2", "total 12"}) ==
        Lines{"name  load", "...", "total 12"});
  CHECK(refreshed({"...", "b 10 %", "..."}, {"a 1 %", "b 11 %", "c 12 %"}) ==
        Lines{"...", "b 11 %", "..."});
}

TEST_CASE("what cannot be placed is left to people") {
  CHECK_FALSE(refreshed({"a", "...", "total"}, {"other words"}).has_value());
  CHECK_FALSE(refreshed({"...", "took ... s"}, {"a", "took 3 or 4 min"}).has_value());
}
