// Quantities: no input crashes, results stand in range, and what is printed reads back the same.
#include <cmath>

#include "base/text.hpp"
#include "fuzz.hpp"

namespace {

template <class T>
void check_error(const weft::Result<T>& result) {
  WEFT_CHECK(result.has_value() || !(result.error().what.empty() || result.error().hint.empty()));
}

template <class T, class Parse>
void check_round_trip(const weft::Token& token, Parse parse) {
  const weft::Result<T> value = parse(token);
  check_error(value);
  if (!value) return;
  WEFT_CHECK(*value >= T{});
  const std::string text = weft::to_text(*value);
  const weft::Result<T> again = parse(weft::Token{text, {}});
  WEFT_CHECK(again.has_value());
  WEFT_CHECK(*again == *value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::Token token{weft::fuzz::text_of(data, size), {"fuzz", 1, 1}};
  check_round_trip<weft::Bytes>(token, weft::parse_bytes);
  check_round_trip<weft::Rate>(token, weft::parse_rate);
  check_round_trip<weft::Duration>(token, weft::parse_duration);
  check_error(weft::parse_nccl_size(token));
  check_error(weft::parse_count(token));
  check_error(weft::parse_flag(token));
  const auto number = weft::parse_number(token);
  check_error(number);
  WEFT_CHECK(!number || std::isfinite(*number));
  WEFT_CHECK(weft::find_not_text(weft::quote(token.text)) == std::string_view::npos);
  return 0;
}
