#include "plan/report/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/json_text.hpp"
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
    if (span->category == "front end") continue;  // a checkpoint may follow the last step
    window.start_s = std::min(window.start_s, span->start_s);
    window.end_s = std::max(window.end_s, span->start_s + span->duration_s);
  }
  if (step_s > 0) window.start_s = std::max(window.start_s, window.end_s - step_s);
  return window;
}

JsonList list_of(const std::vector<Piece>& pieces) {
  JsonList out;
  for (const Piece& p : pieces) {
    const double start = std::round(p.start), length = std::max(std::round(p.end) - start, 1.0);
    out.add(p.lane).add(start, decimals(0)).add(length, decimals(0)).add(p.category).add(p.name);
  }
  return out;
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

// None when the job has no spans of roles.
std::optional<JsonObject> timeline_of(const VariantOutcome& variant, const JobOutcome& job) {
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
  return JsonObject()
      .add("job", job.name)
      .add("start_s", window.start_s)
      .add("duration_s", duration_s)
      .add("lanes_left_out", tracks.size() - lanes.size())
      .add("merged_s", drawn.shortest / ticks * duration_s)
      .add("lanes", roles)
      .add("categories", drawn.categories.texts())
      .add("names", drawn.names.texts())
      .add("spans", list_of(drawn.pieces));
}

}  // namespace

std::string timelines_json(const Outcome& outcome) {
  JsonObject out;
  for (const VariantOutcome& variant : outcome.variants) {
    JsonList list;
    for (const JobOutcome& job : variant.jobs) {
      if (!job.training) continue;
      if (const auto timeline = timeline_of(variant, job)) list.add(*timeline);
    }
    out.add(variant.name, list);
  }
  return out.text();
}

}  // namespace weft::plan::report
