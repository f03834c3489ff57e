#include "base/id.hpp"

#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <unordered_set>

using namespace weft;

namespace {
using CatId = Id<struct CatTag>;
using DogId = Id<struct DogTag>;
}  // namespace

TEST_CASE("ids of different tables do not mix") {
  static_assert(!std::is_convertible_v<CatId, DogId>);
  static_assert(!std::is_constructible_v<CatId, DogId>);
  static_assert(!std::is_convertible_v<int, CatId>);
  static_assert(!std::is_convertible_v<CatId, std::uint32_t>);
  static_assert(sizeof(CatId) == 4);
}

TEST_CASE("an id is none until it is given an index") {
  CHECK_FALSE(CatId().valid());
  CHECK(CatId(0).valid());
  CHECK(CatId(7).index() == 7);
  CHECK(CatId(3) < CatId(4));
  CHECK(CatId(3) < CatId());  // none sorts last
  const std::unordered_set<CatId> set{CatId(1), CatId(2), CatId(1)};
  CHECK(set.size() == 2);
}

TEST_CASE("a column hands out ids in order and finds its rows by them") {
  Column<CatId, std::string> names;
  CHECK(names.empty());
  CHECK(names.push_back("tom") == CatId(0));
  CHECK(names.push_back("kit") == CatId(1));
  names[CatId(0)] += "my";
  CHECK(names[CatId(0)] == "tommy");
  CHECK(names.contains(CatId(1)));
  CHECK_FALSE(names.contains(CatId(2)));
  CHECK_FALSE(names.contains(CatId()));
  names.resize(3, "new");
  CHECK(names[CatId(2)] == "new");
  names.assign(2, "x");
  CHECK(names.raw() == std::vector<std::string>{"x", "x"});
}

TEST_CASE("a column of flags works although vector<bool> has no references") {
  Column<CatId, bool> flags(3);
  flags[CatId(1)] = true;
  CHECK(flags[CatId(1)]);
  CHECK_FALSE(flags[CatId(2)]);
}

TEST_CASE("ranges of ids") {
  std::vector<std::uint32_t> seen;
  for (const CatId id : ids<CatId>(3)) seen.push_back(id.value);
  CHECK(seen == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(IdRange<CatId>(2, 5).size() == 3);
  for (const CatId id : ids<CatId>(0)) FAIL("an empty range yields " << id.value);
}
