#include "model/formats/hostlist.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "base/rng.hpp"

namespace weft::model {
namespace {

using Names = std::vector<std::string>;

Names expand(std::string_view text) {
  auto names = expand_hostlist({text, {"t", 1, 1}}, 1000);
  REQUIRE_MESSAGE(names.has_value(), (names ? "" : names.error().text()));
  return *std::move(names);
}
std::string refuse_hostlist(std::string_view text, std::size_t most = 1000) {
  const auto names = expand_hostlist({text, {"t", 1, 1}}, most);
  return names ? "accepted" : names.error().text();
}

TEST_CASE("expressions stand for their names") {
  CHECK(expand("tux") == Names{"tux"});
  CHECK(expand("tux[0-2,7],login1") == Names{"tux0", "tux1", "tux2", "tux7", "login1"});
  CHECK(expand("n[08-11]") == Names{"n08", "n09", "n10", "n11"});
  CHECK(expand("n[8-11]") == Names{"n8", "n9", "n10", "n11"});
  CHECK(expand("r[0-1]n[0-1]-ib") == Names{"r0n0-ib", "r0n1-ib", "r1n0-ib", "r1n1-ib"});
}

TEST_CASE("what is no expression is refused at its place") {
  CHECK(refuse_hostlist("").starts_with("t:1:1: "));
  CHECK(refuse_hostlist("a,,b").starts_with("t:1:3: "));
  CHECK(refuse_hostlist("a,").starts_with("t:1:3: "));
  CHECK(refuse_hostlist("n[0-3").starts_with("t:1:2: "));
  CHECK(refuse_hostlist("n0-3]").starts_with("t:1:1: "));
  CHECK(refuse_hostlist("n[3-1]").starts_with("t:1:3: "));
  CHECK(refuse_hostlist("n[0,x]").starts_with("t:1:5: "));
  CHECK(refuse_hostlist("n[]").find("not a range") != std::string::npos);
  CHECK(refuse_hostlist("bgl[123x456]").find("not a range") != std::string::npos);
  CHECK(refuse_hostlist("n[0-99999999999]").find("not a range") != std::string::npos);
  CHECK(refuse_hostlist(std::string(300, 'n')).find("longer than") != std::string::npos);
}

TEST_CASE("short texts do not ask for long lists") {
  CHECK(refuse_hostlist("n[0-999]") == "accepted");
  CHECK(refuse_hostlist("n[0-1000]").find("more than 1000") != std::string::npos);
  CHECK(refuse_hostlist("n[0-99],m[0-999]").find("more than 1000") != std::string::npos);
  CHECK(refuse_hostlist("n[0-9][0-9][0-9]") == "accepted");
  CHECK(refuse_hostlist("n[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]").find("more than") !=
        std::string::npos);
}

TEST_CASE("lists are as short as they can be") {
  CHECK(compress_hostlist(Names{}) == "");
  CHECK(compress_hostlist(Names{"tux7"}) == "tux7");
  CHECK(compress_hostlist(Names{"host0", "host1", "host2", "host3"}) == "host[0-3]");
  CHECK(compress_hostlist(Names{"host0", "host2", "host3", "a", "b9"}) == "a,host[0,2-3],b9");
  CHECK(compress_hostlist(Names{"n8", "n9", "n10"}) == "n[8-10]");
  CHECK(compress_hostlist(Names{"n08", "n09", "n10", "n11"}) == "n[08-11]");
  CHECK(compress_hostlist(Names{"n9", "n010"}) == "n[9,010]");
  CHECK(compress_hostlist(Names{"n99", "n100", "n0101"}) == "n[99-100,0101]");
}

TEST_CASE("compressed lists expand to the same names") {
  Rng rng(3);
  for (int round = 0; round < 500; ++round) {
    std::set<std::string> names;
    for (std::uint64_t i = rng.below(20); i-- > 0;) {
      const std::string prefix(1, static_cast<char>('a' + rng.below(2)));
      const std::string number = std::to_string(rng.below(120));
      const char* const zero = rng.below(4) == 0 ? "0" : "";
      names.insert(fmt::format("{}{}{}{}", prefix, zero, number, rng.below(8) == 0 ? "x" : ""));
    }
    if (names.empty()) continue;
    const Names list(names.begin(), names.end());
    const Names back = expand(compress_hostlist(list));
    CHECK(std::set<std::string>(back.begin(), back.end()) == names);
    CHECK(back.size() == names.size());
  }
}

}  // namespace
}  // namespace weft::model
