// What tests of every trace format ask of a recorded workload.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "workload/trace/trace.hpp"

namespace weft::workload::testing {

inline RecordedWorkload accepted(Result<RecordedWorkload> out) {
  REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
  return *std::move(out);
}

inline std::string refused(const Result<RecordedWorkload>& out) {
  REQUIRE_FALSE(out.has_value());
  return out.error().text();
}

inline std::uint64_t count(const RecordedWorkload& workload, std::string_view name) {
  const auto found =
      std::ranges::find(workload.counts, name, &std::pair<std::string, std::uint64_t>::first);
  REQUIRE_MESSAGE(found != workload.counts.end(), name);
  return found->second;
}

inline bool noted(const RecordedWorkload& workload, std::string_view text) {
  return std::ranges::any_of(workload.notes,
                             [&](const std::string& note) { return note.contains(text); });
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline void flip(char& byte, std::uint64_t bit) { byte = static_cast<char>(byte ^ 1 << bit); }

}  // namespace weft::workload::testing
