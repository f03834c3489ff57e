// Between the files of this room: the spans of training jobs, small enough for the page.
#pragma once

#include <string>

#include "model/work/outcome.hpp"

namespace weft::plan::report {

// More lanes than a person can look at are thinned evenly; more spans than a page should carry are
// merged with their neighbours, the shortest first.
inline constexpr std::size_t timeline_lanes_max = 64;
inline constexpr std::size_t timeline_spans_max = 20'000;

// JSON: by variant a list of timelines, one per training job with spans on "job / role" tracks:
// {job, start_s, duration_s, lanes_left_out, merged_s, lanes: [role], categories, names, spans}.
// It shows the last step. `spans` holds rows of five numbers: lane, start, length (in
// 1/65536 of duration_s), category, name. `merged_s`: gaps and spans shorter than this may have
// been merged with a neighbour of their lane and category; 0: none was.
// Cost: O(spans log spans).
std::string timelines_json(const model::Outcome& outcome);

}  // namespace weft::plan::report
