#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "base/json_text.hpp"
#include "plan/report/report.hpp"
#include "plan/report/tracks.hpp"

namespace weft::plan::report {
namespace {

using model::Span;
using model::VariantOutcome;

// Sums of seconds differ in their last digits; spans that overlap by no more follow each other.
double slack(double time_s) { return 2e-12 + 1e-14 * time_s; }

// A row of the viewer: spans on it nest or follow each other.
struct Row {
  std::string name;
  std::vector<double> open_until;  // ends of the spans that are open, innermost last

  bool takes(const Span& span) {
    const double end = span.start_s + span.duration_s;
    const double spare = slack(end);
    while (!open_until.empty() && open_until.back() <= span.start_s + spare) open_until.pop_back();
    if (!open_until.empty() && end > open_until.back() + spare) return false;
    open_until.push_back(end);
    return true;
  }
};

// Spans by start, the longer of two first, so that a span follows the one it nests in.
std::vector<std::size_t> in_time(const std::vector<Span>& spans) {
  std::vector<std::size_t> order(spans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    if (spans[a].start_s != spans[b].start_s) return spans[a].start_s < spans[b].start_s;
    if (spans[a].duration_s != spans[b].duration_s)
      return spans[a].duration_s > spans[b].duration_s;
    return a < b;
  });
  return order;
}

// Rows of one variant. Returns the row of each span; `order` is that of in_time.
std::vector<std::size_t> arrange(const std::vector<Span>& spans,
                                 const std::vector<std::size_t>& order, std::vector<Row>& rows) {
  std::map<std::string_view, std::size_t> rank;
  for (const std::string_view track : tracks_of(spans)) rank.try_emplace(track, rank.size());
  std::vector<std::vector<Row>> tracks(rank.size());
  std::vector<std::size_t> track_of(spans.size()), lane_of(spans.size());
  for (const std::size_t i : order) {
    track_of[i] = rank.find(spans[i].track)->second;
    std::vector<Row>& lanes = tracks[track_of[i]];
    auto lane = std::ranges::find_if(lanes, [&](Row& row) { return row.takes(spans[i]); });
    if (lane == lanes.end()) {
      const std::string name =
          lanes.empty() ? spans[i].track : fmt::format("{} ({})", spans[i].track, lanes.size() + 1);
      lane = lanes.insert(lanes.end(), Row{name, {}});
      lane->takes(spans[i]);
    }
    lane_of[i] = static_cast<std::size_t>(lane - lanes.begin());
  }
  std::vector<std::size_t> first(tracks.size()), out(spans.size());
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    first[t] = rows.size();
    std::ranges::move(tracks[t], std::back_inserter(rows));
  }
  for (std::size_t i = 0; i < spans.size(); ++i) out[i] = first[track_of[i]] + lane_of[i];
  return out;
}

JsonObject meta_event(std::string_view what, std::size_t process, std::size_t thread,
                      const JsonObject& args) {
  return JsonObject()
      .add("ph", "M")
      .add("name", what)
      .add("pid", process)
      .add("tid", thread)
      .add("args", args);
}

JsonObject name_event(std::string_view what, std::size_t process, std::size_t thread,
                      std::string_view name) {
  return meta_event(what, process, thread, JsonObject().add("name", name));
}

// Viewers sort rows by name unless told.
JsonObject sort_event(std::size_t process, std::size_t thread) {
  return meta_event("thread_sort_index", process, thread, JsonObject().add("sort_index", thread));
}

JsonObject span_event(const Span& span, std::size_t process, std::size_t thread) {
  constexpr double us = 1e6;
  JsonObject out, args;
  if (span.duration_s > 0)
    out.add("ph", "X").add("dur", span.duration_s * us, decimals(6));
  else
    out.add("ph", "i").add("s", "p");
  for (const auto& [key, value] : span.args) args.add(key, value);
  return out.add("name", span.name)
      .add("cat", span.category)
      .add("ts", span.start_s * us, decimals(6))
      .add("pid", process)
      .add("tid", thread)
      .add("args", args);
}

}  // namespace

std::string trace_text(const Outcome& outcome, std::span<const VariantOutcome> recorded) {
  std::string out = R"({"displayTimeUnit":"ms","traceEvents":[)";
  std::string_view separator = "\n";
  const auto add = [&](const JsonObject& event) {
    out += separator;
    event.append_to(out);
    separator = ",\n";
  };
  const std::size_t predicted = outcome.variants.size();
  for (std::size_t v = 0; v < predicted + recorded.size(); ++v) {
    const VariantOutcome& variant = v < predicted ? outcome.variants[v] : recorded[v - predicted];
    std::vector<Row> rows;
    const std::vector<std::size_t> order = in_time(variant.spans);
    const std::vector<std::size_t> row_of = arrange(variant.spans, order, rows);
    add(name_event("process_name", v + 1, 0, variant.name));
    for (std::size_t r = 0; r < rows.size(); ++r) {
      add(name_event("thread_name", v + 1, r + 1, rows[r].name));
      add(sort_event(v + 1, r + 1));
    }
    for (const std::size_t i : order) add(span_event(variant.spans[i], v + 1, row_of[i] + 1));
  }
  return out + "\n]}\n";
}

}  // namespace weft::plan::report
