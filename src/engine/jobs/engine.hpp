// What an engine is.
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "engine/jobs/jobs.hpp"
#include "route/router.hpp"

namespace weft::engine {

// What is seen of a run: progress, under a name, and its busiest interval.
struct Watch {
  std::string name;
  Progress::Show show = Progress::Show::never;
  // RunResult::busiest is one of at most so many, and at least half as many, equal intervals; 0:
  // none.
  std::size_t load_windows = 0;
  bool limits = false;  // also GraphResult::critical_links
};

// Runs work to its end on a router's fabric, whose state changes as `changes` say (ascending; those
// at 0 hold from the start). Same work, router, changes and engine: the same result, on any number
// of threads. A job that cannot end is a result; fails where the engine cannot take the work.
template <class T>
concept Engine = requires(const T& engine, const Work& work, route::Router& router,
                          std::span<const StateChange> changes, const Watch& watch) {
  { T::name } -> std::convertible_to<std::string_view>;
  { engine.run(work, router, changes, watch) } -> std::same_as<Result<RunResult>>;
};

}  // namespace weft::engine
