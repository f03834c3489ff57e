// Quantities to and from text, near names, and the table that commands print.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace weft {
inline namespace base {

// A piece of input and where it stands.
struct Token {
  std::string_view text;
  Where where;
};

// Every parser takes surrounding blanks, refuses anything behind the value, NaN, infinities and
// what the type cannot hold, and says what it wanted. Quantities need a unit, except a plain 0.
// Whole numbers are exact; a fraction goes to the nearest base unit (byte, bit/s, ps), and is
// refused where that would move it by more than 0.1 %. Bare:  "12", "16 Ki", "1.5 M" (decimal and
// binary multiples).
Result<std::int64_t> parse_count(const Token& token);
// Bare finite number: "1.3", "2e-3".
Result<double> parse_number(const Token& token);
// A bare number or a percentage: "0.02", "2 %".
Result<double> parse_fraction(const Token& token);
// B, kB, MB, GB, TB (10^3n) and KiB, MiB, GiB, TiB (2^10n). "16G" and "8" as nccl-tests write
// sizes (K, M, G = 2^10n, bare = bytes) only through parse_nccl_size.
Result<Bytes> parse_bytes(const Token& token);
Result<Bytes> parse_nccl_size(const Token& token);
// bps, kbps, Mbps, Gbps, Tbps, also spelt Gb/s, Gbit/s; and bytes: MB/s, GB/s (10^3n).
Result<Rate> parse_rate(const Token& token);
// ps, ns, us, ms, s, min, h, d.
Result<Duration> parse_duration(const Token& token);
// "true" or "false".
Result<bool> parse_flag(const Token& token);

// Shortest exact text with a unit; each parses back to the same value.
std::string to_text(Bytes size);
std::string to_text(Rate rate);
std::string to_text(Duration span);

// For people: three or four significant digits and a fitting unit ("1.34 GiB", "37.6 ms").
std::string human(Bytes size);
std::string human(Rate rate);
std::string human_seconds(double seconds);

// "10.0.0.1" of an address in host byte order.
std::string ipv4_text(std::uint32_t address);

// The text in double quotes, as messages show it: at most 40 bytes, unprintable bytes as \xNN.
std::string quote(std::string_view text);
// The offset of the first byte that is no UTF-8, or a control character other than tab and line
// end; npos when there is none.
std::size_t find_not_text(std::string_view text);
// Fails: Errc::parse when the text of `file` is larger than `bytes_max`, shown in MiB.
Status check_text_size(std::string_view text, const std::string& file, std::size_t bytes_max,
                       std::string hint);

// ASCII, whatever the locale; other bytes are no digits and stay as they are.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string lower_case(std::string_view text);

std::string_view trim(std::string_view text);
// Pieces between separators, blanks kept; "" gives one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);

// The candidate closest in edit distance, when close enough to be a likely slip of the pen.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);
// " (did you mean "racks"?)" or "".
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

// Columns aligned by content; numbers to the right.
class Table {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Head {
    std::string title;
    Align align = Align::right;
  };
  explicit Table(std::vector<Head> heads) : heads_(std::move(heads)) {}
  // As many cells as heads; or fewer, and then the last one runs over the columns that follow.
  void add(std::vector<std::string> cells);
  std::string text() const;
  std::size_t row_count() const { return rows_.size(); }

 private:
  std::vector<Head> heads_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace base
}  // namespace weft
