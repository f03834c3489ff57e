#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "plan/report/json.hpp"
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

std::string name_event(std::string_view what, std::size_t process, std::size_t thread,
                       std::string_view name) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                     process, thread, json_string(name));
}

// Viewers sort rows by name unless told.
std::string sort_event(std::size_t process, std::size_t thread) {
  return fmt::format(
      R"({{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})",
      process, thread);
}

std::string args_text(const Span& span) {
  std::string out;
  for (const auto& [key, value] : span.args)
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", json_string(key), json_string(value));
  return out;
}

std::string span_event(const Span& span, std::size_t process, std::size_t thread) {
  constexpr double us = 1e6;
  const std::string kind = span.duration_s > 0
                               ? fmt::format(R"("ph":"X","dur":{:.6f})", span.duration_s * us)
                               : std::string(R"("ph":"i","s":"p")");
  return fmt::format(R"({{{},"name":{},"cat":{},"ts":{:.6f},"pid":{},"tid":{},"args":{{{}}}}})",
                     kind, json_string(span.name), json_string(span.category), span.start_s * us,
                     process, thread, args_text(span));
}

}  // namespace

std::string trace_text(const Outcome& outcome) {
  std::string out = R"({"displayTimeUnit":"ms","traceEvents":[)";
  std::string_view separator = "\n";
  const auto add = [&](const std::string& event) {
    out += separator;
    out += event;
    separator = ",\n";
  };
  for (std::size_t v = 0; v < outcome.variants.size(); ++v) {
    const VariantOutcome& variant = outcome.variants[v];
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
