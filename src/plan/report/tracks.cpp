#include "plan/report/tracks.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"

namespace weft::plan::report {
namespace {

// The digits at the start of `text`, without leading zeros.
std::string_view number_at(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

}  // namespace

Track parts_of(std::string_view track) {
  constexpr std::string_view separator = " / ";
  const std::size_t at = track.rfind(separator);
  if (at == std::string_view::npos) return {track, {}};
  return {track.substr(0, at), track.substr(at + separator.size())};
}

bool natural_less(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (!is_digit(a.front()) || !is_digit(b.front())) {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const std::string_view number_a = number_at(a), number_b = number_at(b);
    if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
    if (number_a != number_b) return number_a < number_b;
    a = {number_a.end(), a.end()};
    b = {number_b.end(), b.end()};
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // "pp 03" and "pp 3"
}

std::vector<std::string_view> tracks_of(std::span<const model::Span> spans) {
  std::map<std::string_view, std::size_t> jobs;
  std::set<std::string_view> tracks;
  for (const model::Span& span : spans) {
    tracks.insert(span.track);
    jobs.try_emplace(parts_of(span.track).job, jobs.size());
  }
  std::vector<std::string_view> out(tracks.begin(), tracks.end());
  std::ranges::sort(out, [&](std::string_view a, std::string_view b) {
    const Track left = parts_of(a), right = parts_of(b);
    if (left.job != right.job) return jobs.find(left.job)->second < jobs.find(right.job)->second;
    return natural_less(left.role, right.role);
  });
  return out;
}

}  // namespace weft::plan::report
