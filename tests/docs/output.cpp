#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "page.hpp"

namespace weft::docs {
namespace {

constexpr std::string_view any_text = "...";
constexpr std::size_t shown_max = 60;  // lines of a message

std::string without_end(std::string_view line) {
  const std::size_t end = line.find_last_not_of(" \t\r");
  return std::string(line.substr(0, end == std::string_view::npos ? 0 : end + 1));
}

Lines without_ends(const Lines& lines) {
  Lines out;
  for (const std::string& line : lines) out.push_back(without_end(line));
  return out;
}

bool is_gap(std::string_view line) { return trim(line) == any_text; }

// The line with numbers, widths and rules made equal: what stays when only figures change.
std::string skeleton(std::string_view line) {
  std::string out;
  for (const char c : trim(line)) {
    const char kind = c >= '0' && c <= '9' ? '0' : c;
    const bool repeats = kind == '0' || kind == ' ' || kind == '-';
    if (!(repeats && !out.empty() && out.back() == kind)) out += kind;
  }
  return out;
}

std::vector<std::string_view> words_of(std::string_view line) {
  auto out = split(line, ' ');
  std::erase_if(out, [](std::string_view word) { return word.empty(); });
  return out;
}

// The new line with the "..." of the old one; nothing where words do not correspond.
std::optional<std::string> with_wildcards(const std::string& old, const std::string& line) {
  if (old.find(any_text) == std::string::npos || fits(old, line))
    return old.find(any_text) == std::string::npos ? line : old;
  const auto before = words_of(old), now = words_of(line);
  if (before.size() != now.size()) return std::nullopt;
  std::string out = line;
  std::size_t at = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    at = out.find(now[i], at);
    if (before[i].find(any_text) != std::string_view::npos) {
      if (!fits(before[i], now[i])) return std::nullopt;
      out.replace(at, now[i].size(), before[i]);
      at += before[i].size();
    } else {
      at += now[i].size();
    }
  }
  return out;
}

std::size_t alike(const Lines& segment, const Lines& actual, std::size_t at) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    const std::string& line = actual[at + i];
    if (fits(segment[i], line) || skeleton(segment[i]) == skeleton(line)) ++out;
  }
  return out;
}

// Where the segment fits best, not before `from`; ends of the output only where no gap stands
// there.
std::optional<std::size_t> place(const Lines& segment, const Lines& actual, std::size_t from,
                                 bool at_start, bool at_end) {
  if (from + segment.size() > actual.size()) return std::nullopt;
  const std::size_t last = actual.size() - segment.size();
  std::optional<std::size_t> best;
  std::size_t most = 0;
  for (std::size_t at = at_end ? last : from; at <= (at_start ? from : last); ++at)
    if (const std::size_t here = alike(segment, actual, at); here > most) best = at, most = here;
  return 2 * most >= segment.size() ? best : std::nullopt;
}

std::vector<Lines> segments_of(const Lines& expected) {
  std::vector<Lines> out(1);
  for (const std::string& line : expected)
    if (is_gap(line))
      out.emplace_back();
    else
      out.back().push_back(line);
  return out;
}

}  // namespace

bool fits(std::string_view pattern, std::string_view text, std::string_view any) {
  std::size_t p = 0, t = 0, retry_p = std::string_view::npos, retry_t = 0;
  while (t < text.size() || p < pattern.size()) {
    if (pattern.substr(p).starts_with(any)) {
      p += any.size();
      retry_p = p;
      retry_t = t;
    } else if (p < pattern.size() && t < text.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (retry_p != std::string_view::npos && retry_t < text.size()) {
      p = retry_p;
      t = ++retry_t;
    } else {
      return false;
    }
  }
  return true;
}

bool matches(const Lines& expected, const Lines& actual) {
  const Lines want = without_ends(expected), got = without_ends(actual);
  std::size_t w = 0, g = 0, retry_w = want.size() + 1, retry_g = 0;
  while (w < want.size() || g < got.size()) {
    if (w < want.size() && is_gap(want[w])) {
      retry_w = ++w;
      retry_g = g;
    } else if (w < want.size() && g < got.size() && fits(want[w], got[g])) {
      ++w, ++g;
    } else if (retry_w <= want.size() && retry_g < got.size()) {
      w = retry_w;
      g = ++retry_g;
    } else {
      return false;
    }
  }
  return true;
}

std::string difference(const Lines& expected, const Lines& actual) {
  const Lines got = without_ends(actual);
  std::string out;
  for (const std::string& line : without_ends(expected))
    if (!is_gap(line) && std::ranges::none_of(got, [&](const auto& l) { return fits(line, l); }))
      out += fmt::format("  not printed: {}\n", line);
  if (out.empty()) out = "  every line is printed, but in another order or with lines between\n";
  out += "printed:\n";
  for (std::size_t i = 0; i < got.size() && i < shown_max; ++i) out += "  " + got[i] + "\n";
  if (got.size() > shown_max) out += fmt::format("  and {} lines more\n", got.size() - shown_max);
  return out;
}

std::optional<Lines> refreshed(const Lines& expected, const Lines& actual) {
  const Lines got = without_ends(actual);
  const std::vector<Lines> segments = segments_of(without_ends(expected));
  Lines out;
  if (segments.size() == 1) {  // no gap: the whole output
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto old = std::ranges::find_if(segments[0], [&](const std::string& line) {
        return line.find(any_text) != std::string::npos &&
               skeleton(line)[0] == skeleton(got[i])[0] && with_wildcards(line, got[i]).has_value();
      });
      out.push_back(old == segments[0].end() ? got[i] : *with_wildcards(*old, got[i]));
    }
    return out;
  }
  std::size_t from = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const Lines& segment = segments[s];
    if (s > 0) out.emplace_back(any_text);
    if (segment.empty()) continue;
    const auto at = place(segment, got, from, s == 0, s + 1 == segments.size());
    if (!at) return std::nullopt;
    for (std::size_t i = 0; i < segment.size(); ++i) {
      const auto line = with_wildcards(segment[i], got[*at + i]);
      if (!line) return std::nullopt;
      out.push_back(*line);
    }
    from = *at + segment.size();
  }
  return out;
}

}  // namespace weft::docs
