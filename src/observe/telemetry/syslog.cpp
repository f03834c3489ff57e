#include "observe/telemetry/syslog.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.hpp"

namespace weft::observe::telemetry {
namespace {

using Stamp = SyslogMessage::Stamp;

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

// What is left of a line; takes pieces off its front.
class Cursor {
 public:
  explicit Cursor(std::string_view rest) : rest_(rest) {}

  std::string_view rest() const { return rest_; }
  bool empty() const { return rest_.empty(); }
  char front() const { return rest_.empty() ? '\0' : rest_.front(); }
  char at(std::size_t i) const { return i < rest_.size() ? rest_[i] : '\0'; }
  void skip(std::size_t n) { rest_.remove_prefix(std::min(n, rest_.size())); }
  bool take(char c) {
    if (front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip_blanks() {
    while (front() == ' ') rest_.remove_prefix(1);
  }
  // Up to the next blank, which is taken too.
  std::string_view word() {
    const std::size_t end = rest_.find(' ');
    const std::string_view out = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    return out;
  }
  // A number of exactly `digits` digits, the first of which may be a blank; -1 otherwise.
  int number(std::size_t digits) {
    if (rest_.size() < digits) return -1;
    int out = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const char c = rest_[i];
      if (i == 0 && digits == 2 && c == ' ') continue;
      if (!is_digit(c)) return -1;
      out = 10 * out + (c - '0');
    }
    rest_.remove_prefix(digits);
    return out;
  }

 private:
  std::string_view rest_;
};

// Days since 1970 of a proleptic Gregorian date. From: H. Hinnant, "chrono-Compatible Low-Level
// Date Algorithms", days_from_civil.
constexpr std::int64_t days_of(int year, int month, int day) {
  const int y = month <= 2 ? year - 1 : year;
  const int era = (y >= 0 ? y : y - 399) / 400;
  const int of_era = y - era * 400;
  const int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return std::int64_t{era} * 146'097 + std::int64_t{of_era} * 365 + of_era / 4 - of_era / 100 +
         of_year - 719'468;
}
static_assert(days_of(1970, 1, 1) == 0 && days_of(2024, 2, 29) == 19'782);

constexpr bool is_date(int year, int month, int day) {
  constexpr std::array<int, 12> lengths{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12 || day < 1 || day > lengths[static_cast<std::size_t>(month - 1)])
    return false;
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month != 2 || day != 29 || leap;
}

// 1 to 12; 0 when the text does not begin with the English name of a month.
int month_at(std::string_view text) {
  constexpr std::string_view names = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() < 3) return 0;
  for (std::size_t i = 0; i < 12; ++i)
    if (std::memcmp(names.data() + 3 * i, text.data(), 3) == 0) return static_cast<int>(i) + 1;
  return 0;
}

// hh:mm:ss with decimals behind "." or ",": ns of the day, or -1. A leap second is the last one.
std::int64_t take_clock(Cursor& in) {
  const int hour = in.number(2);
  if (hour < 0 || hour > 23 || !in.take(':')) return -1;
  const int minute = in.number(2);
  if (minute < 0 || minute > 59 || !in.take(':')) return -1;
  const int second = in.number(2);
  if (second < 0 || second > 60) return -1;
  std::int64_t ns =
      (std::int64_t{hour} * 3600 + std::int64_t{minute} * 60 + std::min(second, 59)) * ns_per_s;
  if ((in.front() == '.' || in.front() == ',') && is_digit(in.at(1))) {
    in.skip(1);
    for (std::int64_t unit = ns_per_s / 10; is_digit(in.front()); unit /= 10) {
      ns += (in.front() - '0') * unit;
      in.skip(1);
    }
  }
  return ns;
}

// "Z" or "+01:00" behind an ISO stamp: ns ahead of UTC; false when it is neither.
bool take_offset(Cursor& in, std::int64_t& offset) {
  offset = 0;
  if (in.take('Z')) return true;
  const char sign = in.front();
  if (sign != '+' && sign != '-') return false;
  in.skip(1);
  const int hours = in.number(2);
  in.take(':');
  const int minutes = in.number(2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return false;
  offset = (std::int64_t{hours} * 60 + minutes) * ns_per_minute * (sign == '-' ? -1 : 1);
  return true;
}

bool take_iso(Cursor& in, SyslogMessage& out) {
  const int year = in.number(4);
  if (year < 1970 || year > 2200 || !in.take('-')) return false;
  const int month = in.number(2);
  if (!in.take('-')) return false;
  const int day = in.number(2);
  if (!is_date(year, month, day) || !(in.take('T') || in.take(' '))) return false;
  const std::int64_t clock = take_clock(in);
  if (clock < 0) return false;
  std::int64_t offset = 0;
  out.stamp = take_offset(in, offset) ? Stamp::utc : Stamp::civil;
  out.t = {days_of(year, month, day) * ns_per_day + clock - offset};
  return true;
}

// The year that brings a date nearest to `received`; 0 when there is no such date around it.
int nearest_year(int month, int day, std::int64_t clock, Timestamp received) {
  constexpr std::int64_t latest = days_of(2200, 1, 1) * ns_per_day;  // bounds what is added below
  received.ns = std::clamp<std::int64_t>(received.ns, 0, latest);
  const std::int64_t days = received.ns / ns_per_day;
  const int about = static_cast<int>(1970 + days * 400 / 146'097);
  int best = 0;
  std::int64_t distance = INT64_MAX;
  for (int year = about - 1; year <= about + 1; ++year) {
    if (!is_date(year, month, day)) continue;
    const std::int64_t off = days_of(year, month, day) * ns_per_day + clock - received.ns;
    if (std::abs(off) >= distance) continue;
    distance = std::abs(off);
    best = year;
  }
  return best;
}

// A zone's name behind the time: only UTC's names say anything certain.
void take_zone(Cursor& in, SyslogMessage& out) {
  for (const std::string_view zone : {" UTC", " GMT", " Z"}) {
    const std::size_t n = zone.size();
    if (!in.rest().starts_with(zone) || (in.at(n) != ' ' && in.at(n) != ':')) continue;
    in.skip(n);
    out.stamp = Stamp::utc;
    return;
  }
}

// "Mmm dd hh:mm:ss", the year before it (NX-OS) or behind the day, or to be inferred.
bool take_bsd(Cursor& in, Timestamp received, int year, SyslogMessage& out) {
  if (in.at(3) != ' ') return false;
  const int month = month_at(in.rest());
  if (month == 0) return false;
  in.skip(4);
  int day = in.number(2);
  if (day < 0 && is_digit(in.front())) day = in.number(1);  // "Nov 1": one blank only
  if (day < 0 || !in.take(' ')) return false;
  if (year == 0 && is_digit(in.at(0)) && is_digit(in.at(3)) && in.at(4) == ' ') {
    year = in.number(4);
    in.skip(1);
  }
  const std::int64_t clock = take_clock(in);
  if (clock < 0) return false;
  if (year == 0 && in.front() == ' ' && is_digit(in.at(1)) && is_digit(in.at(4)) &&
      (in.at(5) == ' ' || in.at(5) == ':')) {  // Junos' "time-format year"
    in.skip(1);
    year = in.number(4);
    if (year < 0) return false;
  }
  if (year == 0) year = nearest_year(month, day, clock, received);
  if (year < 1970 || year > 2200 || !is_date(year, month, day)) return false;
  out.stamp = Stamp::civil;
  out.t = {days_of(year, month, day) * ns_per_day + clock};
  return true;
}

// Any of the stamps: ISO, or "Mmm dd hh:mm:ss" with or without a year around it. "*" and "." tell
// that the clock is not in step, or was lost.
bool take_stamp(Cursor& in, Timestamp received, SyslogMessage& out) {
  if (in.front() == '*' || in.front() == '.') in.skip(1);
  if (!is_digit(in.front())) {
    if (!take_bsd(in, received, 0, out)) return false;
  } else if (in.at(4) == '-') {
    return take_iso(in, out);
  } else {
    const int year = in.number(4);
    if (year < 0 || !in.take(' ') || !take_bsd(in, received, year, out)) return false;
  }
  take_zone(in, out);
  return true;
}

// Steps over "[...][...]" or "-"; false when a bracket stays open. Quoted values may hold brackets.
bool skip_structured(Cursor& in) {
  if (in.take('-')) return true;
  while (in.front() == '[') {
    bool quoted = false;
    std::size_t i = 1;
    for (;; ++i) {
      const char c = in.at(i);
      if (i >= in.rest().size()) return false;
      if (quoted && c == '\\')
        ++i;
      else if (c == '"')
        quoted = !quoted;
      else if (!quoted && c == ']')
        break;
    }
    in.skip(i + 1);
  }
  return true;
}

std::string_view or_none(std::string_view word) { return word == "-" ? std::string_view{} : word; }

// "bgp#bgpd" is bgpd in container bgp.
std::string_view without_container(std::string_view program) {
  const std::size_t hash = program.find('#');
  return hash == std::string_view::npos ? program : program.substr(hash + 1);
}

// Cron and Junos' kernel log with their path: "/kernel".
std::string_view without_path(std::string_view program) {
  const std::size_t slash = program.rfind('/');
  return slash == std::string_view::npos || slash + 1 == program.size() ? program
                                                                        : program.substr(slash + 1);
}

// What stands in brackets before the words: FRR's "[M59KS-A3ZXZ] " and "[EC 1234] ", the kernel's
// "[  12.345678] ".
void skip_marks(Cursor& in) {
  constexpr std::size_t mark_max = 24;
  for (int i = 0; i < 3 && in.front() == '['; ++i) {
    const std::size_t end = in.rest().substr(0, mark_max).find(']');
    if (end == std::string_view::npos || (in.at(end + 1) != ' ' && in.at(end + 1) != '[')) return;
    in.skip(end + 1);
    in.skip_blanks();
  }
}

// Junos' "explicit-priority" is no part of the name: "DAEMON-4-RPD_BGP_..." of a program; "" when
// nothing follows it. Cisco's mnemonics of such facilities come without a program.
std::string_view without_priority(std::string_view key) {
  constexpr std::array<std::string_view, 16> facilities{
      "AUTH",     "AUTHORIZATION", "CHANGE",   "CONFLICT", "CRON", "DAEMON", "DFC",  "EXTERNAL",
      "FIREWALL", "FTP",           "INTERACT", "KERN",     "NTP",  "PFE",    "USER", ""};
  // The first letters of these, of which most mnemonics have none.
  if (std::string_view("ACDEFIKNPU").find(key.empty() ? ' ' : key.front()) == key.npos) return key;
  const std::size_t dash = key.find('-');
  if (dash == std::string_view::npos || dash + 1 >= key.size() ||
      std::ranges::find(facilities, key.substr(0, dash)) == facilities.end())
    return key;
  const std::size_t behind = dash + 1 + (is_digit(key[dash + 1]) ? 1 : 0);
  if (behind == key.size()) return {};
  return key.substr(behind + (key[behind] == '-' ? 1 : 0));
}

// The mnemonic before the text: "%BGP-5-ADJCHANGE: " or, of Junos, "RPD_BGP_...: ".
void take_key(Cursor in, std::string_view msgid, SyslogMessage& out) {
  in.skip_blanks();
  skip_marks(in);
  out.key = msgid.empty() ? out.program : msgid;
  if (in.front() == '%' && in.at(1) == '$') {  // NX-OS: "%$ VDC-1 %$ "
    const std::size_t end = in.rest().find("%$", 2);
    if (end != std::string_view::npos) in.skip(end + 2);
    in.skip_blanks();
  }
  const std::string_view rest = in.rest();
  if (in.front() == '%') {
    const std::size_t end = rest.find(':');
    if (end != std::string_view::npos) {
      std::string_view key = rest.substr(1, end - 1);
      while (key.ends_with(' ')) key.remove_suffix(1);  // IOS-XR: "%PKT_INFRA-LINK-3-UPDOWN : "
      if (!out.program.empty()) key = without_priority(key);
      if (!key.empty()) out.key = key;
      in.skip(end + 1);
    }
  } else if (msgid.empty() && is_upper(in.front())) {
    std::size_t end = 1;
    bool has_bar = false;
    for (; is_upper(in.at(end)) || is_digit(in.at(end)) || in.at(end) == '_'; ++end)
      has_bar |= in.at(end) == '_';
    if (has_bar && in.at(end) == ':') {
      out.key = rest.substr(0, end);
      in.skip(end + 1);
    }
  }
  in.skip_blanks();
  out.text = in.rest();
}

SyslogFault take_5424(Cursor in, SyslogMessage& out) {
  if (!(in.front() == '-' && in.at(1) == ' ') && !take_iso(in, out)) return SyslogFault::header;
  in.take('-');
  if (!in.take(' ')) return SyslogFault::header;
  out.host = or_none(in.word());
  out.program = without_container(or_none(in.word()));
  in.word();  // process id
  const std::string_view msgid = or_none(in.word());
  if (in.empty() || !skip_structured(in)) return SyslogFault::header;
  in.skip_blanks();
  if (in.rest().starts_with("\xEF\xBB\xBF")) in.skip(3);
  take_key(in, msgid, out);
  return SyslogFault::none;
}

// SONiC's rsyslog template puts the level before the tag.
void skip_level(Cursor& in) {
  constexpr std::array<std::string_view, 9> levels{
      "EMERG ", "ALERT ", "CRIT ", "ERR ", "ERROR ", "WARNING ", "NOTICE ", "INFO ", "DEBUG "};
  for (const std::string_view level : levels)
    if (in.front() == level.front() && in.rest().starts_with(level)) return in.skip(level.size());
}

// Tags without a colon behind them: Junos' "fpc0 TEXT", SONiC's "swss#supervisord TEXT", Cumulus'
// "/usr/sbin/smond : : TEXT".
void take_bare_tag(Cursor& in, std::size_t end, SyslogMessage& out) {
  const std::string_view word = in.rest().substr(0, end);
  if (word.size() > 3 && word.starts_with("fpc") && is_digit(word[3])) {
    out.program = word.substr(0, 3);
  } else if (word.find('#') != std::string_view::npos || in.at(end + 1) == ':') {
    out.program = without_path(without_container(word));
  } else {
    return;
  }
  in.skip(end + 1);
  while (in.front() == ':' || in.front() == ' ') in.skip(1);
}

// "TAG[PID]: " or "TAG: "; a text without a tag stays whole.
void take_tag(Cursor& in, SyslogMessage& out) {
  const std::string_view rest = in.rest();
  std::size_t end = 0;
  while (end < rest.size() && rest[end] != ' ' && rest[end] != ':' && rest[end] != '[') ++end;
  if (end == rest.size() || end == 0) return;
  if (rest[end] == ' ') return take_bare_tag(in, end, out);
  std::size_t after = end;
  if (rest[end] == '[') {
    after = rest.find(']', end);
    if (after == std::string_view::npos) return;
    ++after;
  }
  out.program = without_path(without_container(rest.substr(0, end)));
  in.skip(after);
  in.take(':');
}

// "471: " as EOS, IOS and IOS-XR number their messages.
void skip_sequence(Cursor& in) {
  std::size_t n = 0;
  while (is_digit(in.at(n))) ++n;
  if (n > 0 && in.at(n) == ':' && in.at(n + 1) == ' ') in.skip(n + 2);
}

// What devices that write their own head put before the text, maybe behind a relay's head:
//   [471: [471: ]][HOST: | HOST | : ][RP/0/RP0/CPU0:]STAMP[ ZONE]:
// False, and no change, when it is not that.
bool take_own_head(Cursor& line, Timestamp received, SyslogMessage& out) {
  Cursor in = line;
  SyslogMessage own = out;
  skip_sequence(in);
  skip_sequence(in);  // IOS: of the message and of the device
  if (in.take(':')) in.skip_blanks();
  for (int words = 0;; ++words) {
    if (Cursor stamp = in; take_stamp(stamp, received, own)) {
      in = stamp;
      break;
    }
    const std::string_view rest = in.rest();
    if (words == 2) return false;
    if (in.at(2) == '/') {  // "RP/0/RP0/CPU0:"
      const std::size_t end = rest.find("/CPU");
      const std::size_t colon = rest.find(':', end);
      if (end > 16 || colon == std::string_view::npos) return false;
      in.skip(colon + 1);
      continue;
    }
    const std::size_t host = rest.find(' ');
    if (host == std::string_view::npos) return false;
    own.host = rest.substr(0, host);
    if (own.host.ends_with(':')) own.host.remove_suffix(1);
    in.skip(host + 1);
  }
  const std::size_t end = in.rest().find_first_of(":%");  // behind any other zone's name
  if (end == std::string_view::npos || end > 8) return false;
  if (in.at(end) == ':') in.skip(end + 1);
  line = in;
  out = own;
  return true;
}

// Whether a device's own head may stand here: a number, a stamp, or the node of IOS-XR.
bool begins_own_head(const Cursor& in) {
  const char c = in.front();
  if (is_digit(c) || c == ':' || c == '*') return true;
  return (c == 'R' || c == 'L') ? in.at(2) == '/' && is_digit(in.at(3))
                                : in.at(3) == ' ' && is_digit(in.at(5)) && in.at(9) == ':';
}

SyslogFault take_behind_host(Cursor in, Timestamp received, SyslogMessage& out) {
  in.skip_blanks();
  if (begins_own_head(in)) take_own_head(in, received, out);
  in.skip_blanks();
  if (in.front() != '%') {
    skip_level(in);
    take_tag(in, out);
  }
  if (in.front() == ' ' && is_digit(in.at(1))) {
    Cursor behind = in;
    behind.skip(1);
    if (is_digit(behind.at(3)) && behind.at(4) == ' ' && take_own_head(behind, received, out)) {
      out.host = out.program;  // the tag was the device behind a relay
      out.program = {};
      in = behind;
    } else {
      skip_sequence(behind);
      if (behind.front() == '%') in = behind;
    }
  }
  take_key(in, {}, out);
  return SyslogFault::none;
}

bool take_priority(Cursor& in, SyslogMessage& out) {
  int value = 0, digits = 0;
  for (; is_digit(in.front()) && digits < 3; ++digits) {
    value = 10 * value + (in.front() - '0');
    in.skip(1);
  }
  if (digits == 0 || value > 191 || !in.take('>')) return false;
  out.facility = static_cast<std::uint8_t>(value / 8);
  out.severity = static_cast<std::uint8_t>(value % 8);
  return true;
}

}  // namespace

SyslogFault parse_syslog(std::string_view line, Timestamp received, SyslogMessage& out) {
  out = {};
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r' || line.back() == '\0'))
    line.remove_suffix(1);
  if (line.empty()) return SyslogFault::empty;
  Cursor in(line);
  const bool has_priority = in.take('<');
  if (has_priority && !take_priority(in, out)) return SyslogFault::priority;
  if (has_priority && in.front() == '1' && in.at(1) == ' ') {
    in.skip(2);
    return take_5424(in, out);
  }
  const Cursor begin = in;
  if (take_stamp(in, received, out)) {
    in.take(':');
    in.skip_blanks();
    if (in.front() == '%') return take_behind_host(in, received, out);  // no host
    out.host = in.word();
    if (out.host.ends_with(':')) out.host.remove_suffix(1);
    return take_behind_host(in, received, out);
  }
  out.stamp = Stamp::none;
  in = begin;
  if (take_own_head(in, received, out)) return take_behind_host(in, received, out);
  if (!has_priority) return SyslogFault::header;
  return take_behind_host(in, received, out);
}

}  // namespace weft::observe::telemetry
