#include "plan/report/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "plan/report/json.hpp"
#include "plan/report/tracks.hpp"

namespace weft::plan::report {
namespace {

using model::JobOutcome;
using model::Outcome;
using model::Span;
using model::VariantOutcome;

constexpr double ticks = 65536;

struct Window {
  double start_s = 0, end_s = 0;
  double tick(double time_s) const {
    return std::clamp((time_s - start_s) / (end_s - start_s), 0.0, 1.0) * ticks;
  }
};

// Texts that repeat, by number in order of first use.
class Names {
 public:
  std::size_t number(const std::string& text) {
    const auto [at, added] = numbers_.try_emplace(text, texts_.size());
    if (added) texts_.push_back(text);
    return at->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> texts_;
};

struct Piece {
  std::size_t lane, category, name;
  double start, end;  // in ticks
};

// Joins what follows its neighbour of the same lane and category within less than `shortest`.
std::vector<Piece> merged(const std::vector<Piece>& pieces, double shortest) {
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> last;
  std::vector<Piece> out;
  for (const Piece& piece : pieces) {
    const auto [at, first] = last.try_emplace({piece.lane, piece.category}, out.size());
    if (!first) {
      Piece& before = out[at->second];
      const bool small = std::min(piece.end - piece.start, before.end - before.start) < shortest;
      if (small && piece.start - before.end < shortest) {
        before.end = std::max(before.end, piece.end);
        continue;
      }
    }
    at->second = out.size();
    out.push_back(piece);
  }
  return out;
}

// The job's last step: its spans on roles' tracks reach back from the latest end.
Window window_of(const std::vector<const Span*>& spans, double step_s) {
  Window window{std::numeric_limits<double>::infinity(), 0};
  for (const Span* span : spans) {
    window.start_s = std::min(window.start_s, span->start_s);
    window.end_s = std::max(window.end_s, span->start_s + span->duration_s);
  }
  if (step_s > 0) window.start_s = std::max(window.start_s, window.end_s - step_s);
  return window;
}

std::string list_text(const auto& texts) {
  std::string out;
  for (const auto& text : texts)
    out += fmt::format("{}{}", out.empty() ? "" : ",", json_string(text));
  return fmt::format("[{}]", out);
}

std::string pieces_text(const std::vector<Piece>& pieces) {
  std::string out;
  for (const Piece& p : pieces) {
    const double start = std::round(p.start), length = std::max(std::round(p.end) - start, 1.0);
    out += fmt::format("{}{},{:.0f},{:.0f},{},{}", out.empty() ? "" : ",", p.lane, start, length,
                       p.category, p.name);
  }
  return fmt::format("[{}]", out);
}

std::vector<std::string_view> thinned(const std::vector<std::string_view>& lanes) {
  if (lanes.size() <= timeline_lanes_max) return lanes;
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < timeline_lanes_max; ++i)
    out.push_back(lanes[i * lanes.size() / timeline_lanes_max]);
  return out;
}

struct Drawn {
  Names categories, names;
  std::vector<Piece> pieces;
  double shortest = 0;  // in ticks
};

Drawn draw(const std::vector<const Span*>& spans, const std::vector<std::string_view>& lanes,
           const Window& window) {
  Drawn out;
  std::map<std::string_view, std::size_t> lane_of;
  for (const std::string_view lane : lanes) lane_of.emplace(lane, lane_of.size());
  for (const Span* span : spans) {
    const auto lane = lane_of.find(span->track);
    const double end_s = span->start_s + span->duration_s;
    if (lane == lane_of.end() || !(end_s > window.start_s)) continue;
    out.pieces.push_back({lane->second, out.categories.number(span->category),
                          out.names.number(span->name), window.tick(span->start_s),
                          window.tick(end_s)});
  }
  std::ranges::stable_sort(out.pieces, {}, &Piece::start);
  const std::vector<Piece> all = std::move(out.pieces);
  out.pieces = all;
  while (out.pieces.size() > timeline_spans_max && out.shortest < ticks) {
    out.shortest = std::max(1.0, out.shortest * 2);
    out.pieces = merged(all, out.shortest);
  }
  return out;
}

// "" when the job has no spans of roles.
std::string timeline_text(const VariantOutcome& variant, const JobOutcome& job) {
  std::vector<const Span*> spans;
  for (const Span& span : variant.spans) {
    const Track track = parts_of(span.track);
    if (track.job == job.name && !track.role.empty() && span.duration_s > 0 &&
        std::isfinite(span.start_s + span.duration_s))
      spans.push_back(&span);
  }
  const Window window = window_of(spans, job.training->step_time_s);
  const double duration_s = window.end_s - window.start_s;
  if (!(duration_s > 0)) return {};
  std::vector<std::string_view> tracks = tracks_of(variant.spans);
  std::erase_if(tracks, [&](std::string_view track) {
    return parts_of(track).job != job.name || parts_of(track).role.empty();
  });
  const std::vector<std::string_view> lanes = thinned(tracks);
  const Drawn drawn = draw(spans, lanes, window);
  std::vector<std::string_view> roles;
  for (const std::string_view lane : lanes) roles.push_back(parts_of(lane).role);
  return fmt::format(R"({{"job":{},"start_s":{},"duration_s":{},"lanes_left_out":{},"merged_s":{},)"
                     R"("lanes":{},"categories":{},"names":{},"spans":{}}})",
                     json_string(job.name), window.start_s, duration_s,
                     tracks.size() - lanes.size(), drawn.shortest / ticks * duration_s,
                     list_text(roles), list_text(drawn.categories.texts()),
                     list_text(drawn.names.texts()), pieces_text(drawn.pieces));
}

}  // namespace

std::string timelines_json(const Outcome& outcome) {
  std::string out;
  for (const VariantOutcome& variant : outcome.variants) {
    std::string list;
    for (const JobOutcome& job : variant.jobs) {
      if (!job.training) continue;
      const std::string text = timeline_text(variant, job);
      if (!text.empty()) list += (list.empty() ? "" : ",") + text;
    }
    out += fmt::format("{}{}:[{}]", out.empty() ? "" : ",", json_string(variant.name), list);
  }
  return fmt::format("{{{}}}", out);
}

}  // namespace weft::plan::report
