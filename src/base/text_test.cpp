#include "base/text.hpp"

#include <doctest/doctest.h>

#include <array>
#include <initializer_list>
#include <span>
#include <string>

#include "base/percentile.hpp"
#include "base/rng.hpp"

using namespace weft;

namespace {

Token token(std::string_view text) { return {text, {"in.yaml", 4, 9}}; }

// Every refusal says where, what and what to do.
template <class T>
void check_refused(const Result<T>& result, std::string_view what) {
  REQUIRE_FALSE(result.has_value());
  const Error& error = result.error();
  CAPTURE(error.text());
  CHECK(error.where.text() == "in.yaml:4:9");
  CHECK(error.what.find(what) != std::string::npos);
  CHECK_FALSE(error.hint.empty());
}

// Texts that no quantity may accept.
constexpr std::array<std::string_view, 22> nonsense{
    "",      " ",    "B",     "NaN",   "nan B",       "inf",   "-inf Gbps", "1e30 TB",
    "1e400", "-1 B", "-1 s",  "-1bps", "1 2",         "1 B B", "1,5 B",     "0x10 B",
    "+1 B",  "1__0", "ten B", "1e B",  "12 furlongs", "\xFF"};

}  // namespace

TEST_CASE("sizes") {
  CHECK(parse_bytes(token("64 MiB")) == 64_MiB);
  CHECK(parse_bytes(token(" 64MiB\t")) == 64_MiB);
  CHECK(parse_bytes(token("1 MB")) == 1_MB);
  CHECK(parse_bytes(token("2 kB")) == Bytes{2000});
  CHECK(parse_bytes(token("2 KB")) == Bytes{2000});
  CHECK(parse_bytes(token("1.5 KiB")) == Bytes{1536});
  CHECK(parse_bytes(token("1e3 B")) == Bytes{1000});
  CHECK(parse_bytes(token("0")) == 0_B);
  CHECK(parse_bytes(token("-0")) == 0_B);
}

TEST_CASE("rates count bits, and bytes where the unit says so") {
  CHECK(parse_rate(token("400 Gbps")) == 400_Gbps);
  CHECK(parse_rate(token("400Gb/s")) == 400_Gbps);
  CHECK(parse_rate(token("400 Gbit/s")) == 400_Gbps);
  CHECK(parse_rate(token("50 GB/s")) == 400_Gbps);
  CHECK(parse_rate(token("1 GiB/s")) == Rate{8ll << 30});
  CHECK(parse_rate(token("0.3 Gbps")) == Rate{300'000'000});
}

TEST_CASE("durations") {
  CHECK(parse_duration(token("1.5 us")) == 1500_ns);
  CHECK(parse_duration(token("1.5 µs")) == 1500_ns);
  CHECK(parse_duration(token("2 min")) == 120_s);
  CHECK(parse_duration(token("1 d")) == 86'400_s);
  CHECK(parse_duration(token("3.3333333333 us")) == Duration{3'333'333});
  check_refused(parse_duration(token("107 d")), "out of range");
}

TEST_CASE("counts and numbers") {
  CHECK(parse_count(token("12")) == 12);
  CHECK(parse_count(token("16 Ki")) == 16'384);
  CHECK(parse_count(token("1.5 M")) == 1'500'000);
  CHECK(parse_count(token("1e3")) == 1000);
  check_refused(parse_count(token("1.5")), "not a whole number");
  check_refused(parse_count(token("0.0001 k")), "not a whole number");
  CHECK(parse_number(token("2e-3")) == 0.002);
  CHECK(parse_number(token("-4")) == -4.0);
  CHECK(parse_fraction(token("2 %")) == 0.02);
  CHECK(parse_fraction(token(" 0.02 ")) == 0.02);
  check_refused(parse_fraction(token("%")), "not a number");
  check_refused(parse_fraction(token("2 %%")), "after the number");
  check_refused(parse_number(token("2 %")), "after the number");
  check_refused(parse_number(token("3 B")), "after the number");
  check_refused(parse_number(token("NaN")), "not a number");
  check_refused(parse_number(token("inf")), "not a number");
  check_refused(parse_number(token("1e400")), "out of range");
}

TEST_CASE("nccl sizes are binary, bare ones bytes") {
  CHECK(parse_nccl_size(token("8")) == 8_B);
  CHECK(parse_nccl_size(token("64M")) == 64_MiB);
  CHECK(parse_nccl_size(token("16g")) == 16_GiB);
  CHECK(parse_nccl_size(token("1 MB")) == 1_MB);
  check_refused(parse_nccl_size(token("16X")), "unknown unit");
}

TEST_CASE("flags") {
  CHECK(parse_flag(token("true")) == true);
  CHECK(parse_flag(token(" false ")) == false);
  for (const char* text : {"TRUE", "yes", "1", "", "on"})
    check_refused(parse_flag(token(text)), "neither true nor false");
}

TEST_CASE("a quantity without a unit is refused, except zero") {
  check_refused(parse_bytes(token("64")), "has no unit");
  check_refused(parse_rate(token("400")), "has no unit");
  check_refused(parse_duration(token("1.5")), "has no unit");
  CHECK(parse_rate(token("0")) == Rate{});
}

TEST_CASE("nonsense is refused with place, reason and advice by every reader") {
  for (const std::string_view text : nonsense) {
    CAPTURE(text);
    check_refused(parse_bytes(token(text)), "");
    check_refused(parse_rate(token(text)), "");
    check_refused(parse_duration(token(text)), "");
    check_refused(parse_nccl_size(token(text)), "");
    check_refused(parse_count(token(text)), "");
  }
}

TEST_CASE("large whole numbers are exact, beyond what a double can hold") {
  CHECK(parse_bytes(token("9007199254740993 B")) == Bytes{9'007'199'254'740'993});
  CHECK(parse_count(token("9007199254740993")) == 9'007'199'254'740'993);
  CHECK(parse_duration(token("9223372036854775807 ps")) == duration_max);
  check_refused(parse_bytes(token("9223372036854775808 B")), "out of range");
  check_refused(parse_bytes(token("8388608 TiB")), "out of range");  // 2^63
  CHECK(parse_bytes(token("8388607 TiB")) == Bytes{8'388'607ll << 40});
  CHECK(parse_bytes(token("3 PB")) == Bytes{3'000'000'000'000'000});
  CHECK(parse_bytes(token("1 PiB")) == Bytes{std::int64_t{1} << 50});
}

TEST_CASE("a fraction may not vanish") {
  check_refused(parse_bytes(token("1.5 B")), "not a whole number");
  check_refused(parse_bytes(token("0.1 B")), "not a whole number");
  check_refused(parse_duration(token("1e-300 s")), "not a whole number");
  CHECK(parse_bytes(token("0.1 MiB")) == Bytes{104'858});  // 104857.6: moved by 4e-6
}

TEST_CASE("what is printed reads back the same") {
  const auto check = [](std::int64_t n) {
    CAPTURE(n);
    CHECK(parse_bytes(token(to_text(Bytes{n}))) == Bytes{n});
    CHECK(parse_rate(token(to_text(Rate{n}))) == Rate{n});
    CHECK(parse_duration(token(to_text(Duration{n}))) == Duration{n});
  };
  for (std::int64_t n = 0; n < 5000; ++n) check(n);
  for (int shift = 0; shift < 63; ++shift)
    for (const std::int64_t offset : {-1, 0, 1}) check((std::int64_t{1} << shift) + offset);
  for (std::int64_t power = 1; power < INT64_MAX / 10; power *= 10)
    for (const std::int64_t factor : {1, 3, 9}) check(power * factor);
  check(INT64_MAX);
  Rng rng(1);
  for (int i = 0; i < 10'000; ++i) check(static_cast<std::int64_t>(rng.next() >> (1 + i % 63)));
}

TEST_CASE("printed quantities use the largest unit that is exact") {
  CHECK(to_text(64_MiB) == "64 MiB");
  CHECK(to_text(65_MB) == "65 MB");
  CHECK(to_text(1'025_B) == "1025 B");
  CHECK(to_text(0_B) == "0 B");
  CHECK(to_text(400_Gbps) == "400 Gbps");
  CHECK(to_text(1500_ns) == "1500 ns");
}

TEST_CASE("quantities for people") {
  CHECK(human(Bytes{1'439'000'000}) == "1.34 GiB");
  CHECK(human(0_B) == "0 B");
  CHECK(human(400_Gbps) == "400 Gbps");
  CHECK(human(Rate{1'600'000'000'000}) == "1.6 Tbps");
  CHECK(human_seconds(0.0376) == "37.6 ms");
  CHECK(human_seconds(0) == "0 ns");
  CHECK(human_seconds(7200) == "2 h");
  CHECK(human_seconds(5e4 * 3600) == "50000 h");
  CHECK(human_seconds(9999.4 * 3600) == "9999 h");
  CHECK(human_seconds(6.6e-54) == "0 ns");
  CHECK(human_seconds(-90e-9) == "-90 ns");
  CHECK(human(Bytes{std::int64_t{20'000} << 40}) == "20000 TiB");
}

TEST_CASE("messages show input in printable, bounded form") {
  CHECK(quote("abc") == "\"abc\"");
  CHECK(quote(std::string(41, 'x')) == "\"" + std::string(40, 'x') + "...\"");
  CHECK(quote("a\nb\x1B[0m") == "\"a\\x0ab\\x1b[0m\"");
  CHECK(quote(std::string("\0", 1)) == "\"\\x00\"");
  CHECK(quote("\xFF\xC3") == "\"\\xff\\xc3\"");
  CHECK(quote("µs") == "\"µs\"");
  CHECK(quote(std::string(39, 'x') + "µyz") == "\"" + std::string(39, 'x') + "µ...\"");
}

TEST_CASE("text is UTF-8 without control characters") {
  constexpr auto fine = std::string_view::npos;
  CHECK(find_not_text("plain\ttext\r\n") == fine);
  CHECK(find_not_text("") == fine);
  CHECK(find_not_text("aµ€\xF0\x9F\x98\x80z") == fine);
  CHECK(find_not_text("\xEF\xBB\xBF") == fine);
  CHECK(find_not_text("\xEF\xBF\xBD") == fine);     // U+FFFD
  CHECK(find_not_text("a\xEF\xBF\xBF") == 1);       // U+FFFF
  CHECK(find_not_text("\xEF\xB7\x90") == 0);        // U+FDD0
  CHECK(find_not_text("ok\xF0\x9F\xBF\xBE") == 2);  // U+1FFFE
  CHECK(find_not_text(std::string_view("ab\0c", 4)) == 2);
  CHECK(find_not_text("ab\x04") == 2);
  CHECK(find_not_text("a\x7F") == 1);
  CHECK(find_not_text("\xC3") == 0);                 // cut off
  CHECK(find_not_text("x\xC0\x80") == 1);            // overlong
  CHECK(find_not_text("\xE0\x80\x80") == 0);         // overlong
  CHECK(find_not_text("\xF0\x80\x80\x80") == 0);     // overlong
  CHECK(find_not_text("\xED\xA0\x80") == 0);         // surrogate
  CHECK(find_not_text("\xF4\x90\x80\x80") == 0);     // beyond U+10FFFF
  CHECK(find_not_text("\xF4\x8F\xBF\xBD") == fine);  // U+10FFFD
  CHECK(find_not_text("a\x80") == 1);
}

TEST_CASE("trim and split") {
  CHECK(trim(" \t a b\r\n") == "a b");
  CHECK(trim(" \t").empty());
  CHECK(split("a,,b,", ',') == std::vector<std::string_view>{"a", "", "b", ""});
  CHECK(split("", ',') == std::vector<std::string_view>{""});
}

TEST_CASE("near names are suggested, far ones are not") {
  const std::vector<std::string> names{"racks", "hosts_per_rack", "gpus_per_host", "spines"};
  CHECK(nearest("rack", names) == "racks");
  CHECK(nearest("spine", names) == "spines");
  CHECK(nearest("hosts_per_racks", names) == "hosts_per_rack");
  CHECK(nearest("gpu_per_host", names) == "gpus_per_host");
  CHECK_FALSE(nearest("oversubscription", names).has_value());
  CHECK_FALSE(nearest(std::string(1'000'000, 'r'), names).has_value());
  CHECK(did_you_mean("rakcs", names) == " (did you mean \"racks\"?)");
  CHECK(did_you_mean("colour", names).empty());
}

// In whole numbers: of n values, the least k with k in n at least so many tenths of a per cent.
TEST_CASE("percentiles are those of the nearest rank") {
  for (std::size_t n = 1; n <= 2000; n = n < 120 ? n + 1 : n + 47)
    for (const std::size_t tenths : {1u, 10u, 333u, 500u, 900u, 950u, 990u, 999u, 1000u}) {
      std::size_t k = 1;
      while (k * 1000 < tenths * n) ++k;
      CAPTURE(n);
      CAPTURE(tenths);
      CHECK(nearest_rank(n, static_cast<double>(tenths) / 10) == k - 1);
    }
  constexpr std::array sorted{1.0, 2.0, 3.0, 4.0};
  CHECK(percentile(std::span<const double>(sorted), 50) == 2);
  CHECK(percentile(std::span<const double>(sorted), 99) == 4);
}

TEST_CASE("a table aligns its columns and leaves no blanks at the ends of lines") {
  Table table({{"name", Table::Align::left}, {"GB/s"}, {"note", Table::Align::left}});
  table.add({"ring", "48.1", ""});
  table.add({"größer", "7", "slow"});  // two bytes a letter, one place
  CHECK(table.row_count() == 2);
  CHECK(table.text() ==
        "name    GB/s  note\n"
        "ring    48.1\n"
        "größer     7  slow\n");
}

TEST_CASE("the last cell of a short row runs over the columns that follow") {
  Table table({{"name", Table::Align::left}, {"GB/s"}, {"time"}});
  table.add({"ring", "48.1", "2 s"});
  table.add({"tree", "unfinished at 1.5 s: no path"});
  table.add({"cut"});
  CHECK(table.text() ==
        "name  GB/s  time\n"
        "ring  48.1   2 s\n"
        "tree  unfinished at 1.5 s: no path\n"
        "cut\n");
}
