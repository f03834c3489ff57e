#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/check.hpp"

namespace weft::inline base {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr std::array<Unit, 12> byte_units{{{"B", 1},
                                           {"kB", 1e3},
                                           {"KB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12},
                                           {"KiB", 0x1p10},
                                           {"MiB", 0x1p20},
                                           {"GiB", 0x1p30},
                                           {"TiB", 0x1p40},
                                           {"PB", 1e15},
                                           {"PiB", 0x1p50}}};
constexpr std::array<Unit, 19> rate_units{{{"bps", 1},
                                           {"kbps", 1e3},
                                           {"Mbps", 1e6},
                                           {"Gbps", 1e9},
                                           {"Tbps", 1e12},
                                           {"b/s", 1},
                                           {"kb/s", 1e3},
                                           {"Mb/s", 1e6},
                                           {"Gb/s", 1e9},
                                           {"Tb/s", 1e12},
                                           {"bit/s", 1},
                                           {"Mbit/s", 1e6},
                                           {"Gbit/s", 1e9},
                                           {"B/s", 8},
                                           {"kB/s", 8e3},
                                           {"MB/s", 8e6},
                                           {"GB/s", 8e9},
                                           {"TB/s", 8e12},
                                           {"GiB/s", 8 * 0x1p30}}};
constexpr std::array<Unit, 9> time_units{{{"ps", 1},
                                          {"ns", 1e3},
                                          {"us", 1e6},
                                          {"µs", 1e6},
                                          {"ms", 1e9},
                                          {"s", 1e12},
                                          {"min", 60e12},
                                          {"h", 3600e12},
                                          {"d", 86400e12}}};
constexpr std::array<Unit, 9> count_units{{{"", 1},
                                           {"k", 1e3},
                                           {"K", 1e3},
                                           {"M", 1e6},
                                           {"G", 1e9},
                                           {"Ki", 0x1p10},
                                           {"Mi", 0x1p20},
                                           {"Gi", 0x1p30},
                                           {"Ti", 0x1p40}}};
constexpr std::array<Unit, 9> nccl_units{{{"", 1},
                                          {"K", 0x1p10},
                                          {"M", 0x1p20},
                                          {"G", 0x1p30},
                                          {"T", 0x1p40},
                                          {"k", 0x1p10},
                                          {"m", 0x1p20},
                                          {"g", 0x1p30},
                                          {"t", 0x1p40}}};

struct Split {
  double value = 0;
  std::optional<std::int64_t> whole;  // when the number has no fraction and no exponent
  std::string_view unit;
};

Result<Split> split_number(const Token& token, std::string_view wanted) {
  const std::string_view text = trim(token.text);
  Split out;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, out.value);
  if (error == std::errc::result_out_of_range)
    return fail(Errc::value, token.where, fmt::format("{} is out of range", quote(text)),
                fmt::format("write {}", wanted));
  if (error != std::errc{} || !std::isfinite(out.value))
    return fail(Errc::parse, token.where, fmt::format("{} is not a number", quote(text)),
                fmt::format("write {}", wanted));
  std::int64_t whole = 0;
  const auto integer = std::from_chars(text.data(), rest, whole);
  if (integer.ec == std::errc{} && integer.ptr == rest) out.whole = whole;
  out.unit = trim({rest, static_cast<std::size_t>(end - rest)});
  return out;
}

// value * scale as an integer. 0.3 Gbps must come out whole, though 0.3 is no binary fraction;
// `slack` is the share by which rounding to an integer may move the value.
Result<std::int64_t> scaled(const Token& token, const Split& number, double scale, double slack) {
  std::int64_t exact = 0;
  if (number.whole &&
      !__builtin_mul_overflow(*number.whole, static_cast<std::int64_t>(scale), &exact))
    return exact;
  const double product = number.value * scale;
  if (!(product < 9.2e18))
    return fail(Errc::value, token.where,
                fmt::format("{} is out of range", quote(trim(token.text))),
                "use a smaller value; the limit is about 9.2e18 base units");
  const double rounded = std::round(product);
  if (std::abs(rounded - product) > slack * product)
    return fail(Errc::value, token.where,
                fmt::format("{} is not a whole number of base units", quote(trim(token.text))),
                "bytes, bits/s, picoseconds and counts have no fractions");
  return static_cast<std::int64_t>(rounded);
}

Result<std::int64_t> parse_quantity(const Token& token, std::span<const Unit> units,
                                    std::string_view what, std::string_view example,
                                    double slack = 1e-3) {
  WEFT_TRY(const Split number, split_number(token, example));
  if (number.value < 0)
    return fail(Errc::value, token.where,
                fmt::format("{} {} is negative", what, quote(trim(token.text))),
                "use a value of 0 or more");
  for (const Unit& unit : units)
    if (unit.name == number.unit) return scaled(token, number, unit.scale, slack);
  if (number.unit.empty()) {
    if (number.value == 0) return 0;
    return fail(Errc::parse, token.where,
                fmt::format("{} {} has no unit", what, quote(trim(token.text))),
                fmt::format("write {}", example));
  }
  return fail(Errc::parse, token.where,
              fmt::format("{} has unknown unit {}", what, quote(number.unit)),
              fmt::format("write {}", example));
}

// The largest unit in which `value` is a whole number.
std::string exact(std::int64_t value, std::span<const Unit> large_to_small) {
  for (const Unit& unit : large_to_small) {
    const auto scale = static_cast<std::int64_t>(unit.scale);
    if (value != 0 && value % scale == 0) return fmt::format("{} {}", value / scale, unit.name);
  }
  return fmt::format("{} {}", value, large_to_small.back().name);
}

std::string human_in(double value, std::span<const Unit> large_to_small) {
  const auto in = [](double count, const Unit& unit) {
    // Four digits, without exponents as long as one can read the number.
    const bool is_long = std::abs(count) >= 9999.5 && std::abs(count) < 1e15;
    return is_long ? fmt::format("{:.0f} {}", count, unit.name)
                   : fmt::format("{:.4g} {}", count, unit.name);
  };
  for (const Unit& unit : large_to_small)
    if (std::abs(value) >= unit.scale) return in(value / unit.scale, unit);
  const Unit& least = large_to_small.back();
  const double count = value / least.scale;
  return in(std::abs(count) < 1e-4 ? 0 : count, least);
}

// Insertions, deletions, substitutions and swaps of neighbours, each of them one step.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

std::size_t display_width(std::string_view text) {
  // UTF-8: count the bytes that start a character.
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Of one well-formed UTF-8 character.
bool is_noncharacter(std::string_view character) {
  if (character.size() < 3) return false;
  std::uint32_t code = static_cast<unsigned char>(character[0]) & (character.size() == 3 ? 0xF : 7);
  for (const char c : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3F);
  return (code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF);
}

// The length of the UTF-8 character that `text` starts with; 0 when there is none. Unicode's
// noncharacters (U+FDD0 to U+FDEF and the last two of each plane) are none: writers replace them.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
  const bool beyond = lead == 0xF4 && byte(1) >= 0x90;
  if (overlong || surrogate || beyond || is_noncharacter(text.substr(0, size))) return 0;
  return size;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F;
}

}  // namespace

std::string ipv4_text(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                     address & 255);
}

std::string quote(std::string_view text) {
  constexpr std::size_t shown = 40;
  std::string out = "\"";
  std::size_t at = 0;
  while (at < text.size() && at < shown) {
    const std::size_t size = utf8_length(text.substr(at));
    const bool plain = size > 1 || (size == 1 && text[at] >= ' ' && text[at] != '\x7F');
    if (plain) {
      out += text.substr(at, size);
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    }
    at += std::max<std::size_t>(size, 1);
  }
  return out + (at < text.size() ? "...\"" : "\"");
}

std::size_t find_not_text(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = utf8_length(text.substr(at));
    if (size == 0 || is_control(text[at])) return at;
    at += size;
  }
  return std::string_view::npos;
}

Status check_text_size(std::string_view text, const std::string& file, std::size_t bytes_max,
                       std::string hint) {
  if (text.size() <= bytes_max) return {};
  return fail(Errc::parse, {file, 0, 0}, fmt::format("larger than {} MiB", bytes_max >> 20),
              std::move(hint));
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower_case(c);
  return out;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t at = text.find(separator);
    out.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

Result<double> parse_number(const Token& token) {
  WEFT_TRY(const Split number, split_number(token, "a number such as 1.5"));
  if (!number.unit.empty())
    return fail(Errc::parse, token.where,
                fmt::format("unexpected {} after the number", quote(number.unit)),
                "write a number without a unit");
  return number.value;
}

Result<double> parse_fraction(const Token& token) {
  const std::string_view text = trim(token.text);
  if (!text.ends_with('%')) return parse_number(token);
  WEFT_TRY(const double percent, parse_number({text.substr(0, text.size() - 1), token.where}));
  return percent / 100;
}

Result<std::int64_t> parse_count(const Token& token) {
  return parse_quantity(token, count_units, "count", "a whole number such as 64 or 16 Ki", 0.0);
}

Result<Bytes> parse_bytes(const Token& token) {
  WEFT_TRY(const std::int64_t n, parse_quantity(token, byte_units, "size", "e.g. \"64 MiB\""));
  return Bytes{n};
}

Result<Bytes> parse_nccl_size(const Token& token) {
  const std::string_view text = trim(token.text);
  if (text.ends_with('B')) return parse_bytes(token);
  WEFT_TRY(const std::int64_t n, parse_quantity(token, nccl_units, "size", "e.g. 8, 64M or 16G"));
  return Bytes{n};
}

Result<Rate> parse_rate(const Token& token) {
  WEFT_TRY(const std::int64_t n, parse_quantity(token, rate_units, "rate", "e.g. \"400 Gbps\""));
  return Rate{n};
}

Result<Duration> parse_duration(const Token& token) {
  WEFT_TRY(const std::int64_t n, parse_quantity(token, time_units, "time", "e.g. \"1.5 us\""));
  return Duration{n};
}

Result<bool> parse_flag(const Token& token) {
  const std::string_view text = trim(token.text);
  if (text == "true") return true;
  if (text == "false") return false;
  return fail(Errc::parse, token.where, fmt::format("{} is neither true nor false", quote(text)),
              "write true or false");
}

std::string to_text(Bytes size) {
  constexpr std::array<Unit, 9> units{{{"TiB", 0x1p40},
                                       {"GiB", 0x1p30},
                                       {"MiB", 0x1p20},
                                       {"TB", 1e12},
                                       {"GB", 1e9},
                                       {"MB", 1e6},
                                       {"KiB", 0x1p10},
                                       {"kB", 1e3},
                                       {"B", 1}}};
  return exact(size.count, units);
}

std::string to_text(Rate rate) {
  constexpr std::array<Unit, 4> units{{{"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}}};
  return exact(rate.bps, units);
}

std::string to_text(Duration span) {
  constexpr std::array<Unit, 5> units{
      {{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"ns", 1e3}, {"ps", 1}}};
  return exact(span.ps, units);
}

std::string human(Bytes size) {
  constexpr std::array<Unit, 5> units{
      {{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"B", 1}}};
  return human_in(static_cast<double>(size.count), units);
}

std::string human(Rate rate) {
  constexpr std::array<Unit, 6> units{
      {{"Pbps", 1e15}, {"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}}};
  return human_in(static_cast<double>(rate.bps), units);
}

std::string human_seconds(double seconds) {
  constexpr std::array<Unit, 6> units{
      {{"h", 3600}, {"min", 60}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}};
  return human_in(seconds, units);
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t length_max = 64;  // bounds the quadratic distance
  if (name.size() > length_max) return std::nullopt;
  std::size_t best = std::max<std::size_t>(name.size() / 3, 1) + 1;
  std::optional<std::string> out;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > length_max) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best) {
      best = distance;
      out = candidate;
    }
  }
  return out;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const auto near = nearest(name, candidates);
  return near ? fmt::format(" (did you mean \"{}\"?)", *near) : std::string{};
}

void Table::add(std::vector<std::string> cells) {
  WEFT_CHECK(!cells.empty() && cells.size() <= heads_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < heads_.size(); ++c) {
    std::size_t width = display_width(heads_[c].title);
    for (const auto& row : rows_)
      if (c + 1 < row.size() || row.size() == heads_.size())
        width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  std::string out;
  const auto line = [&](std::size_t cells, auto cell_of) {
    std::string text;
    for (std::size_t c = 0; c < cells; ++c) {
      const std::string& cell = cell_of(c);
      const bool runs_over = c + 1 == cells && cells < heads_.size();
      const std::string pad(runs_over ? 0 : widths[c] - display_width(cell), ' ');
      if (c > 0) text += "  ";
      text += heads_[c].align == Align::left ? cell + pad : pad + cell;
    }
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  line(heads_.size(), [&](std::size_t c) -> const std::string& { return heads_[c].title; });
  for (const auto& row : rows_)
    line(row.size(), [&](std::size_t c) -> const std::string& { return row[c]; });
  return out;
}

}  // namespace weft::base
