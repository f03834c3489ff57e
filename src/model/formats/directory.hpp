// Names and ranges of names while a fabric is being read. Internal to the room.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"

namespace weft::model {

inline std::optional<std::uint32_t> parse_index(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

// "3" or "0..7".
struct Range {
  std::uint32_t first, last;
  std::size_t count() const { return std::size_t{last} - first + 1; }
};
inline std::optional<Range> parse_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  const auto first = parse_index(text.substr(0, dots));
  const auto last = dots == text.npos ? first : parse_index(text.substr(dots + 2));
  if (!first || !last || *first > *last) return {};
  return Range{*first, *last};
}

// "tor" of "tor:7", "" for what is not of that form.
inline std::string_view indexed_group(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  if (colon == name.npos || !parse_index(name.substr(colon + 1))) return {};
  return name.substr(0, colon);
}

// One or several things of one group, as "tor:3", "tor:0..7" or a given name denote them.
template <class IdType>
struct Run {
  const std::vector<IdType>* group = nullptr;  // for ranges
  std::size_t first = 0;
  std::size_t count = 0;  // 0: could not be resolved
  IdType single;          // for names

  IdType operator[](std::size_t i) const { return group ? (*group)[first + i] : single; }
  // The thing for the i-th of several: itself when it is one, otherwise in step.
  IdType in_step(std::size_t i) const { return (*this)[count == 1 ? 0 : i]; }
};

// Names of nodes or scopes: "group:index" and given ones. Lookups cost O(log names).
template <class IdType>
class Directory {
 public:
  explicit Directory(std::string_view noun) : noun_(noun) {}

  std::vector<IdType>& group(const std::string& name) { return groups_[name]; }
  bool has_name(std::string_view name) const { return names_.contains(name); }
  void add_name(const std::string& name, IdType id) { names_.emplace(name, id); }

  Result<Run<IdType>> find(const Token& token) const {
    const std::string_view text = trim(token.text);
    if (const auto named = names_.find(text); named != names_.end())
      return Run<IdType>{nullptr, 0, 1, named->second};
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return unknown(token, text);
    const auto group = groups_.find(text.substr(0, colon));
    if (group == groups_.end()) return unknown(token, text);
    return members(token, *group, text.substr(colon + 1));
  }

 private:
  using Group = std::pair<const std::string, std::vector<IdType>>;

  Result<Run<IdType>> members(const Token& token, const Group& group, std::string_view text) const {
    const auto range = parse_range(text);
    if (!range)
      return fail(Errc::parse, token.where,
                  fmt::format("\"{}\" is not an index of {} \"{}\"", text, noun_, group.first),
                  fmt::format("write \"{0}:3\", or \"{0}:0..7\" in ascending order", group.first));
    if (range->last >= group.second.size())
      return fail(Errc::unknown, token.where,
                  fmt::format("there is no {} \"{}:{}\"", noun_, group.first, range->last),
                  group.second.empty() ? "none is defined above this line"
                                       : fmt::format("the last one is \"{}:{}\"", group.first,
                                                     group.second.size() - 1));
    return Run<IdType>{&group.second, range->first, range->count(), {}};
  }

  std::unexpected<Error> unknown(const Token& token, std::string_view text) const {
    return fail(Errc::unknown, token.where,
                fmt::format("unknown {} \"{}\"{}", noun_, text.substr(0, 80), near(text)),
                fmt::format("choose a {} from the list", noun_));
  }
  // A group close to that of "group:index", or a given name close to it.
  std::string near(std::string_view text) const {
    constexpr std::size_t candidates_max = 2'000;  // bounds the search
    std::vector<std::string> known;
    const std::size_t colon = text.rfind(':');
    if (colon != text.npos) {
      for (const auto& [name, members] : groups_)
        if (known.size() < candidates_max) known.push_back(name);
      if (const auto group = nearest(text.substr(0, colon), known))
        return fmt::format(" (did you mean \"{}{}\"?)", *group, text.substr(colon, 40));
      known.clear();
    }
    for (const auto& [name, id] : names_)
      if (known.size() < candidates_max) known.push_back(name);
    return did_you_mean(text, known);
  }

  std::string noun_;
  std::map<std::string, std::vector<IdType>, std::less<>> groups_;
  std::map<std::string, IdType, std::less<>> names_;
};

}  // namespace weft::model
