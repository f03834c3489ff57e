#include "base/result.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace weft;

namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return fail(Errc::value, {"n.txt", 3, 7}, "odd", "pass an even number");
  return n / 2;
}

Result<int> quarter(int n) {
  WEFT_TRY(const int once, half(n));
  WEFT_TRY(const int twice, half(once));
  return twice;
}

Status is_even(int n) {
  WEFT_TRY_STATUS(half(n));
  return {};
}

Result<std::unique_ptr<int>> boxed(int n) { return std::make_unique<int>(n); }

Result<int> unboxed(int n) {
  WEFT_TRY(const std::unique_ptr<int> box, boxed(n));  // moved, not copied
  return *box;
}

}  // namespace

TEST_CASE("WEFT_TRY passes values on and errors up") {
  CHECK(quarter(12) == 3);
  REQUIRE_FALSE(quarter(6).has_value());
  CHECK(quarter(6).error().what == "odd");
  CHECK(unboxed(5) == 5);
  CHECK(is_even(2).has_value());
  CHECK(is_even(1).error().code == Errc::value);
}

TEST_CASE("an error says where, what and what to do") {
  CHECK(half(1).error().text() == "n.txt:3:7: odd; pass an even number");
  CHECK(Error{Errc::io, {"f", 2, 0}, "gone", {}, {}}.text() == "f:2: gone");
  CHECK(Error{Errc::io, {"f", 0, 0}, "gone", {}, {}}.text() == "f: gone");
  CHECK(Error{Errc::io, {}, "gone", "look again", {}}.text() == "gone; look again");
}

TEST_CASE("errors that were found in one pass print one to a line, in order") {
  Errors errors;
  for (const char* what : {"one", "two", "three"})
    errors.push_back({Errc::parse, {}, what, {}, {}});
  const Error all = combine(errors);
  CHECK(all.more.size() == 2);
  CHECK(all.text() == "one\ntwo\nthree");
}
