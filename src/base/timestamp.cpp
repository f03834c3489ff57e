#include "base/timestamp.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <optional>

namespace weft {
inline namespace base {
namespace {

// Takes a text apart from the front.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  // Exactly `digits` decimal digits.
  std::optional<int> number(std::size_t digits) {
    if (rest_.size() < digits) return {};
    int value = 0;
    for (const char c : rest_.substr(0, digits)) {
      if (c < '0' || c > '9') return {};
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(digits);
    return value;
  }
  bool take(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_.front()) == std::string_view::npos) return false;
    last_ = rest_.front();
    rest_.remove_prefix(1);
    return true;
  }
  char last() const { return last_; }
  // Digits as a fraction of a second; none when there are none or more than nine.
  std::optional<std::int64_t> decimals() {
    std::int64_t value = 0, unit = ns_per_s;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      if (unit == 1) return {};
      unit /= 10;
      value += (rest_.front() - '0') * unit;
      rest_.remove_prefix(1);
    }
    return unit == ns_per_s ? std::nullopt : std::optional(value);
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  char last_ = 0;
};

struct Clock {
  int hour = 0, minute = 0, second = 0;
};

std::optional<std::chrono::sys_days> scan_day(Scanner& in) {
  using namespace std::chrono;
  const auto y = in.number(4);
  if (!y || !in.take("-")) return {};
  const auto m = in.number(2);
  if (!m || !in.take("-")) return {};
  const auto d = in.number(2);
  if (!d) return {};
  const year_month_day date{year(*y), month(static_cast<unsigned>(*m)),
                            day(static_cast<unsigned>(*d))};
  if (!date.ok() || *y < 1678 || *y > 2261) return {};  // what a count of ns in 64 bits holds
  return sys_days(date);
}

std::optional<Clock> scan_clock(Scanner& in) {
  const auto hour = in.number(2);
  if (!hour || *hour > 23 || !in.take(":")) return {};
  const auto minute = in.number(2);
  if (!minute || *minute > 59 || !in.take(":")) return {};
  const auto second = in.number(2);
  if (!second || *second > 59) return {};
  return Clock{*hour, *minute, *second};
}

// Minutes east of UTC.
std::optional<int> scan_zone(Scanner& in) {
  if (in.take("Zz")) return 0;
  if (!in.take("+-")) return {};
  const int sign = in.last() == '-' ? -1 : 1;
  const auto hours = in.number(2);
  if (!hours || *hours > 23 || !in.take(":")) return {};
  const auto minutes = in.number(2);
  if (!minutes || *minutes > 59) return {};
  return sign * (*hours * 60 + *minutes);
}

std::optional<Timestamp> scan(std::string_view text) {
  Scanner in(text);
  const auto day = scan_day(in);
  if (!day || !in.take("Tt ")) return {};
  const auto clock = scan_clock(in);
  if (!clock) return {};
  std::int64_t fraction = 0;
  if (in.take(".")) {
    const auto decimals = in.decimals();
    if (!decimals) return {};
    fraction = *decimals;
  }
  const auto zone = scan_zone(in);
  if (!zone || !in.at_end()) return {};
  const std::int64_t minutes = std::int64_t{day->time_since_epoch().count()} * 1440 +
                               std::int64_t{clock->hour} * 60 + clock->minute - *zone;
  return Timestamp{(minutes * 60 + clock->second) * ns_per_s + fraction};
}

bool in_range(Timestamp t) { return t.ns >= -timestamp_ns_max && t.ns <= timestamp_ns_max; }

}  // namespace

Result<Timestamp> parse_timestamp(const Token& token) {
  const std::string_view text = trim(token.text);
  std::int64_t ns = 0;
  const char* end = text.data() + text.size();
  if (const auto [rest, error] = std::from_chars(text.data(), end, ns);
      error == std::errc() && rest == end) {
    if (in_range({ns})) return Timestamp{ns};
  } else if (const auto t = scan(text); t && in_range(*t)) {
    return *t;
  }
  return fail(Errc::parse, token.where, "not a timestamp: " + quote(token.text),
              "write RFC 3339 (\"2026-03-01T12:00:00.25Z\") or nanoseconds since 1970");
}

std::string to_text(Timestamp t) {
  using namespace std::chrono;
  const sys_time<nanoseconds> point{nanoseconds(t.ns)};
  const auto day = floor<days>(point);
  const year_month_day date(day);
  const hh_mm_ss clock(point - day);
  std::string out = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", int(date.year()),
                                unsigned(date.month()), unsigned(date.day()), clock.hours().count(),
                                clock.minutes().count(), clock.seconds().count());
  if (const auto ns = clock.subseconds().count(); ns % 1'000'000 == 0)
    out += ns == 0 ? "" : fmt::format(".{:03}", ns / 1'000'000);
  else if (ns % 1'000 == 0)
    out += fmt::format(".{:06}", ns / 1'000);
  else
    out += fmt::format(".{:09}", ns);
  return out + "Z";
}

}  // namespace base
}  // namespace weft
