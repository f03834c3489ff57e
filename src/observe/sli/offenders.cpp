#include "observe/sli/offenders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.hpp"
#include "observe/sli/binomial.hpp"

namespace weft::observe::sli {
namespace {

using model::LinkId;
using model::NodeId;

constexpr std::int64_t minutes_per_day = 1440;
constexpr std::size_t counts_max = std::size_t{1} << 26;
constexpr std::size_t named_max = 50;
constexpr std::int64_t days_least = 3;
constexpr double day_level = 0.01;   // of a suspicious day
constexpr double name_level = 0.05;  // of a named part, over all parts

std::int64_t day_of_minute(std::int64_t minute) {
  return minute / minutes_per_day - (minute % minutes_per_day < 0 ? 1 : 0);
}

// How much better the part's own rate fits its losses than the background does.
double log_likelihood_ratio(double lost, double sent, double background) {
  const double kept = sent - lost;
  const double of_lost = lost > 0 ? lost * std::log(lost / (sent * background)) : 0;
  const double of_kept = kept > 0 ? kept * std::log(kept / (sent * (1 - background))) : 0;
  return of_lost + of_kept;
}

// Cheap and never wrong: no count below it has a tail of 1 %.
bool may_be_suspicious(double lost, double sent, double background) {
  const double mean = sent * background;
  return lost > mean + 2 * std::sqrt(mean * (1 - background));
}

}  // namespace

OffenderBook::OffenderBook(const model::Fabric& fabric) : fabric_(fabric) {
  part_of_.resize(fabric.node_count());
  const std::size_t cables_end = fabric.link_count() + fabric.cable_count();
  for (const NodeId node : fabric.nodes()) {
    if (!fabric.is_switch(node)) continue;
    part_of_[node] = static_cast<Part>(cables_end + switches_.size());
    switches_.push_back(node);
  }
}

std::size_t OffenderBook::part_count() const {
  return fabric_.link_count() + fabric_.cable_count() + switches_.size();
}

std::string_view OffenderBook::kind(Part part) const {
  if (part < fabric_.link_count()) return "link";
  return part < fabric_.link_count() + fabric_.cable_count() ? "cable" : "switch";
}

std::string OffenderBook::name(Part part) const {
  const std::size_t links = fabric_.link_count(), cables = links + fabric_.cable_count();
  if (part < links) return fabric_.name(LinkId(part));
  if (part < cables) return fabric_.name(model::CableId(part - links));
  return fabric_.name(switches_[part - cables]);
}

// Each part once, ascending.
void OffenderBook::parts_of(std::span<const LinkId> path, std::vector<Part>& out) const {
  out.clear();
  for (const LinkId link : path) {
    out.push_back(link.value);
    out.push_back(static_cast<Part>(fabric_.link_count() + model::cable_of(link).index()));
    for (const NodeId end : {fabric_.from(link), fabric_.to(link)})
      if (fabric_.is_switch(end)) out.push_back(part_of_[end]);
  }
  std::ranges::sort(out);
  const auto rest = std::ranges::unique(out);
  out.erase(rest.begin(), rest.end());
}

Status OffenderBook::add(const model::EvidenceSet& set, std::int64_t first_minute,
                         std::int64_t last_minute) {
  for (const model::Evidence& row : set.rows) {
    const std::int64_t minute = minute_of(row.t);
    if (row.path_size == 0 || minute < first_minute || minute > last_minute) continue;
    WEFT_TRY(Day * day, day_of(day_of_minute(minute)));
    add_row(*day, row, set.path(row));
  }
  return {};
}

Result<OffenderBook::Day*> OffenderBook::day_of(std::int64_t day) {
  Day& out = days_[day];
  if (!out.parts.empty()) return &out;
  if (days_.size() * part_count() + lossy_count_ > counts_max)
    return fail(Errc::infeasible, {},
                fmt::format("{} days of {} links, cables and switches is too much", days_.size(),
                            part_count()),
                "use a shorter time range with --from and --to");
  out.parts.resize(part_count());
  return &out;
}

void OffenderBook::add_row(Day& day, const model::Evidence& row, std::span<const LinkId> path) {
  WEFT_CHECK(day.parts.size() == part_count());
  parts_of(path, scratch_);
  for (const Part part : scratch_) {
    day.parts[part].sent += row.sent;
    day.parts[part].lost += row.lost;
  }
  day.sent += row.sent;
  day.lost += row.lost;
  if (row.lost == 0) return;
  const auto [at, fresh] =
      path_ids_.emplace(scratch_, static_cast<std::uint32_t>(path_ids_.size()));
  if (fresh) paths_.push_back(&at->first);
  WEFT_CHECK(paths_.size() == path_ids_.size());
  std::uint64_t& lost = day.lossy[at->second];
  if (lost == 0) ++lossy_count_;
  lost += row.lost;
}

// Finds one part after the other and takes its losses out.
class OffenderBook::Search {
 public:
  explicit Search(const OffenderBook& book) : book_(book) {
    for (const auto& [number, day] : book.days_) days_.push_back({number, day});
    std::vector<std::int64_t> seen(book.part_count());
    for (const auto& [number, day] : days_)
      for (std::size_t i = 0; i < seen.size(); ++i)
        if (day.parts[i].sent > 0) ++seen[i];
    seen_ = std::move(seen);
    for (const std::int64_t days : seen_)
      if (days >= days_least) ++tested_;
  }

  std::size_t tested() const { return tested_; }

  // The worst part that is left; nothing when none stands out.
  std::optional<SlowBurn> next() {
    std::optional<Part> best;
    double best_ratio = 0;
    for (Part part = 0; part < seen_.size(); ++part) {
      if (seen_[part] < days_least) continue;
      const Finding found = examine(part);
      if (found.days < days_least ||
          p_value(part, found) * static_cast<double>(tested_) > name_level)
        continue;
      // Where both directions have the same losses, it is the cable that is known.
      const double ratio = found.ratio * (book_.kind(part) == "cable" ? 1 + 1e-9 : 1);
      if (best && ratio <= best_ratio) continue;
      best = part;
      best_ratio = ratio;
    }
    if (!best) return {};
    SlowBurn out = describe(*best);
    take_out(*best);
    return out;
  }

 private:
  struct Finding {
    std::int64_t days = 0;
    double ratio = 0;  // of the median suspicious day, times the days: no outage decides
  };

  static double background(const Day& day) {
    return day.sent <= day.lost ? 1 : static_cast<double>(day.lost) / static_cast<double>(day.sent);
  }

  static bool is_suspicious(const Day& day, Part part) {
    const Count& count = day.parts[part];
    if (count.lost == 0) return false;
    const double rate = background(day);
    return may_be_suspicious(static_cast<double>(count.lost), static_cast<double>(count.sent),
                             rate) &&
           upper_tail(count.lost, count.sent, rate) <= day_level;
  }

  Finding examine(Part part) const {
    std::vector<double> ratios;
    for (const auto& [number, day] : days_) {
      if (!is_suspicious(day, part)) continue;
      ratios.push_back(log_likelihood_ratio(static_cast<double>(day.parts[part].lost),
                                            static_cast<double>(day.parts[part].sent),
                                            background(day)));
    }
    if (ratios.empty()) return {};
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::ranges::nth_element(ratios, middle);
    return {.days = static_cast<std::int64_t>(ratios.size()),
            .ratio = *middle * static_cast<double>(ratios.size())};
  }

  double p_value(Part part, const Finding& found) const {
    return upper_tail(static_cast<std::uint64_t>(found.days),
                      static_cast<std::uint64_t>(seen_[part]), day_level);
  }

  SlowBurn describe(Part part) const {
    SlowBurn out{.entity = book_.name(part), .kind = std::string(book_.kind(part))};
    std::uint64_t others_sent = 0, others_lost = 0;
    for (const auto& [number, day] : days_) {
      if (!is_suspicious(day, part)) continue;
      if (out.days_suspicious++ == 0) out.first_day = number;
      out.last_day = number;
      out.sent += day.parts[part].sent;
      out.lost += day.parts[part].lost;
      others_sent += day.sent - std::min(day.sent, day.parts[part].sent);
      others_lost += day.lost - day.parts[part].lost;
    }
    out.days_seen = seen_[part];
    if (others_sent > 0)
      out.background = static_cast<double>(others_lost) / static_cast<double>(others_sent);
    out.p_value = p_value(part, {.days = out.days_suspicious});
    return out;
  }

  // Its crossings leave the background with its losses. What crossed a part taken out before leaves
  // twice, which makes the background larger and the search more careful.
  void take_out(Part part) {
    for (auto& [number, day] : days_) {
      day.sent -= std::min(day.sent, day.parts[part].sent);
      std::erase_if(day.lossy, [&](const auto& entry) {
        const std::vector<Part>& parts = *book_.paths_[entry.first];
        if (!std::ranges::binary_search(parts, part)) return false;
        WEFT_CHECK(day.lost >= entry.second && day.parts[part].lost >= entry.second);
        for (const Part on_path : parts) day.parts[on_path].lost -= entry.second;
        day.lost -= entry.second;
        return true;
      });
    }
  }

  const OffenderBook& book_;
  std::vector<std::pair<std::int64_t, Day>> days_;
  std::vector<std::int64_t> seen_;  // days with crossings, by part
  std::size_t tested_ = 0;
};

std::vector<SlowBurn> OffenderBook::slow_burn(std::size_t& tested) const {
  Search search(*this);
  tested = search.tested();
  std::vector<SlowBurn> out;
  while (out.size() < named_max) {
    auto found = search.next();
    if (!found) break;
    out.push_back(*std::move(found));
  }
  return out;
}

std::vector<RepeatOffender> repeat_offenders(const Causes& causes) {
  std::map<std::string, RepeatOffender> by_entity;
  for (EpisodeIndex i = 0; i < causes.episodes().size(); ++i) {
    if (causes.is_planned(i)) continue;
    const model::Episode& episode = causes.episode(i);
    const bool unfound = std::ranges::any_of(episode.attrs, [](const auto& attr) {
      return attr.first == "resolution" && attr.second == "no_fault_found";
    });
    for (const std::string& entity : episode.entities) {
      RepeatOffender& offender = by_entity[entity];
      offender.entity = entity;
      if (!offender.episodes.empty() && offender.episodes.back() == episode.id) continue;
      offender.episodes.push_back(episode.id);
      if (unfound) ++offender.no_fault_found;
    }
  }
  std::vector<RepeatOffender> out;
  for (auto& [entity, offender] : by_entity)
    if (offender.episodes.size() >= 2) out.push_back(std::move(offender));
  std::ranges::stable_sort(out, [](const RepeatOffender& a, const RepeatOffender& b) {
    if (a.episodes.size() != b.episodes.size()) return a.episodes.size() > b.episodes.size();
    return a.no_fault_found > b.no_fault_found;
  });
  return out;
}

}  // namespace weft::observe::sli
