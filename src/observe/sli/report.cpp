#include "observe/sli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace weft::observe::sli {
namespace {

using model::ScopeId;

constexpr std::int64_t minutes_max = std::int64_t{2} * 366 * 24 * 60;
constexpr std::int64_t timeline_columns = 72;
constexpr std::int64_t micro = 1'000'000;

void count(MinuteCounts& counts, Verdict verdict) {
  switch (verdict) {
    case Verdict::no_data:
      ++counts.no_data;
      break;
    case Verdict::good:
      ++counts.good;
      break;
    case Verdict::bad_loss:
      ++counts.bad_loss;
      break;
    case Verdict::bad_corruption:
      ++counts.bad_corruption;
      break;
    case Verdict::bad_latency:
      ++counts.bad_latency;
      break;
  }
}

// GPUs below each scope.
std::vector<std::uint64_t> gpus_by_scope(const model::Fabric& fabric) {
  std::vector<std::uint64_t> out(fabric.scopes().size());
  for (const model::NodeId gpu : fabric.gpus())
    for (ScopeId at = fabric.scope(gpu); at.valid(); at = fabric.scopes()[at].parent)
      ++out[at.index()];
  return out;
}

using CauseSums = std::map<EpisodeIndex, std::int64_t>;

// Shares out the bad minute by what it was bad for; what no episode accounts for is left over.
// Rounded down cumulatively, so that a minute that is wholly explained leaves nothing.
void attribute(const Series& series, std::int64_t minute, Verdict verdict, CauseSums& sums) {
  __extension__ using Wide = unsigned __int128;
  const Cell& cell = *series.find(minute);
  const auto of = [verdict](auto lost, auto damaged, auto slow) {
    return verdict == Verdict::bad_loss         ? lost
           : verdict == Verdict::bad_corruption ? damaged
                                                : slow;
  };
  const Wide all = Wide{of(cell.lost, cell.damaged, cell.slow_legs[as_asked])} * blame_units;
  Wide explained = 0;
  std::int64_t given = 0;
  const auto end = series.blames.upper_bound({minute, UINT32_MAX});
  for (auto at = series.blames.lower_bound({minute, 0}); at != end; ++at) {
    explained += of(at->second.lost, at->second.damaged, at->second.slow_legs);
    const auto mark = static_cast<std::int64_t>(explained * micro / all);
    if (mark > given) sums[at->first.second] += mark - given;
    given = mark;
  }
}

std::vector<Attribution> attributions(const CauseSums& sums, std::int64_t minutes) {
  std::vector<Attribution> out;
  std::int64_t rest = minutes * micro;
  for (const auto& [episode, share] : sums) {
    out.push_back({episode, share});
    rest -= share;
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &Attribution::micro_minutes);
  if (rest > 0) out.push_back({{}, rest});
  return out;
}

// One character for `hours`: no data, all good, or how many of the judged minutes were bad.
std::string timeline_of(std::span<const Verdict> minutes, std::int64_t hours) {
  static constexpr std::array<std::string_view, 8> levels{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string out;
  const auto step = static_cast<std::size_t>(hours * 60);
  for (std::size_t i = 0; i < minutes.size(); i += step) {
    MinuteCounts counts;
    for (const Verdict v : minutes.subspan(i, std::min(step, minutes.size() - i))) count(counts, v);
    if (counts.judged() == 0)
      out += " ";
    else if (counts.bad() == 0)
      out += "·";
    else
      out += levels[static_cast<std::size_t>((counts.bad() * 8 - 1) / counts.judged())];
  }
  return out;
}

class SeriesReporter {
 public:
  SeriesReporter(const MinuteCounters& book, const Series& series, std::int64_t first,
                 std::int64_t last)
      : book_(book),
        series_(series),
        objective_(book.settings().objectives[series.objective]),
        first_(first) {
    out_.objective = series.objective;
    out_.traffic_class = book.classes()[series.traffic_class];
    out_.is_all = !series.entity.valid();
    out_.entity = series.entity.valid() ? book.fabric().name(series.entity) : "all";
    verdicts_.assign(static_cast<std::size_t>(last - first + 1), Verdict::no_data);
  }

  SeriesReport report(std::int64_t timeline_hours) {
    judge_all();
    find_periods();
    out_.loss = exact_interval(out_.lost, out_.sent, book_.settings().confidence);
    out_.budget = budget_of(verdicts_, objective_);
    find_alerts();
    out_.timeline = timeline_of(verdicts_, timeline_hours);
    return std::move(out_);
  }

 private:
  void judge_all() {
    const auto minutes = static_cast<std::int64_t>(verdicts_.size());
    out_.minutes.no_data = minutes;
    for (MinuteCounts& counts : out_.scaled) counts.no_data = minutes;
    std::vector<std::uint32_t> probes;
    for (const auto& [hour, cells] : series_.hours) {
      for (std::size_t i = 0; i < cells->size(); ++i) {
        const std::int64_t at = hour * 60 + static_cast<std::int64_t>(i) - first_;
        if (at < 0 || at >= minutes || (*cells)[i].probes() == 0) continue;
        probes.push_back((*cells)[i].probes());
        judge_cell((*cells)[i], static_cast<std::size_t>(at));
      }
    }
    if (probes.empty()) return;
    const auto middle = probes.begin() + static_cast<std::ptrdiff_t>(probes.size() / 2);
    std::ranges::nth_element(probes, middle);
    out_.probes_median = *middle;
  }

  void judge_cell(const Cell& cell, std::size_t at) {
    out_.sent += cell.probes();
    out_.lost += cell.lost;
    out_.damaged += cell.damaged;
    out_.late_legs += cell.late_legs;
    out_.timed_legs += cell.timed_legs;
    out_.slow_legs += cell.slow_legs[as_asked];
    for (std::size_t scale = 0; scale < scale_percents.size(); ++scale) {
      const Verdict verdict = judge(cell, objective_, book_.settings().confidence, scale);
      --out_.scaled[scale].no_data;
      count(out_.scaled[scale], verdict);
      if (verdict == Verdict::no_data) ++out_.scaled[scale].thin;
      if (scale == as_asked) verdicts_[at] = verdict;
    }
    out_.minutes = out_.scaled[as_asked];
  }

  void find_periods() {
    CauseSums all;
    for (std::size_t i = 0; i < verdicts_.size();) {
      if (!is_bad(verdicts_[i])) {
        ++i;
        continue;
      }
      const std::size_t start = i;
      while (i < verdicts_.size() && is_bad(verdicts_[i])) ++i;
      add_period(start, i - 1, all);
    }
    out_.causes = attributions(all, out_.minutes.bad());
    for (const auto& [episode, share] : all)
      if (book_.causes().is_planned(episode)) out_.planned_micro += share;
    const std::int64_t judged = out_.minutes.judged() * micro - out_.planned_micro;
    if (judged > 0 && out_.minutes.availability())
      out_.availability_without_planned =
          static_cast<double>(out_.minutes.good * micro) / static_cast<double>(judged);
  }

  void add_period(std::size_t start, std::size_t last, CauseSums& all) {
    BadPeriod& period = out_.periods.emplace_back();
    period.first_minute = first_ + static_cast<std::int64_t>(start);
    period.last_minute = first_ + static_cast<std::int64_t>(last);
    CauseSums sums;
    for (std::size_t i = start; i <= last; ++i) {
      const std::int64_t minute = first_ + static_cast<std::int64_t>(i);
      const Cell& cell = *series_.find(minute);
      period.sent += cell.probes();
      period.lost += cell.lost;
      period.late_legs += cell.late_legs;
      attribute(series_, minute, verdicts_[i], sums);
    }
    period.loss = exact_interval(period.lost, period.sent, book_.settings().confidence);
    period.causes = attributions(sums, static_cast<std::int64_t>(last - start + 1));
    for (const auto& [episode, share] : sums) all[episode] += share;
  }

  void find_alerts() {
    const std::vector<Alert>& alerts = book_.settings().alerts;
    for (std::size_t i = 0; i < alerts.size(); ++i) {
      out_.burn_rates.push_back(burn_rate(verdicts_, alerts[i].long_minutes, objective_.target));
      for (const Firing& f : firings(verdicts_, alerts[i], objective_.target))
        out_.alerts.push_back({i, first_ + static_cast<std::int64_t>(f.first),
                               first_ + static_cast<std::int64_t>(f.last)});
    }
  }

  const MinuteCounters& book_;
  const Series& series_;
  const Objective& objective_;
  std::int64_t first_;
  std::vector<Verdict> verdicts_;
  SeriesReport out_;
};

// Is the entity one of those that the objective's pairs are sorted by? Of racks there are zones
// too.
bool is_single(const model::Fabric& fabric, const Series& series, Span span) {
  const bool of_zones = span == Span::zone || span == Span::cross_zone;
  return series.entity.valid() &&
         (fabric.scopes()[series.entity].kind == model::ScopeKind::zone) == of_zones;
}

// Of an "all": its single entities' minutes, each as heavy as it has GPUs. A pair of ends in two
// racks counts for both.
void weigh_by_gpus(const MinuteCounters& book, std::span<const Series* const> series,
                   std::vector<SeriesReport>& reports) {
  for (std::size_t i = 0; i < reports.size(); ++i) {
    SeriesReport& all = reports[i];
    all.availability_by_gpus = all.minutes.availability();
    if (series[i]->entity.valid()) continue;
    const Span span = book.settings().objectives[all.objective].span;
    all.availability_by_gpus.reset();
    std::int64_t good = 0, judged = 0;
    for (std::size_t j = i + 1; j < reports.size() && series[j]->entity.valid(); ++j) {
      if (!is_single(book.fabric(), *series[j], span) || !reports[j].minutes.availability())
        continue;
      const auto gpus = static_cast<std::int64_t>(reports[j].gpus);
      good += gpus * reports[j].minutes.good;
      judged += gpus * reports[j].minutes.judged();
      all.gpus += reports[j].gpus;
    }
    if (judged > 0)
      all.availability_by_gpus = static_cast<double>(good) / static_cast<double>(judged);
  }
}

void add_notes(const MinuteCounters& book, Report& report) {
  const MinuteCounters::Counts& counts = book.counts();
  if (counts.outside > 0)
    report.notes.push_back(
        fmt::format("{} rows are outside the requested time range", counts.outside));
  if (counts.no_scope > 0)
    report.notes.push_back(
        fmt::format("{} rows have ends that no objective covers", counts.no_scope));
  for (const SeriesReport& s : report.series) {
    const Objective& objective = book.settings().objectives[s.objective];
    if (!s.is_all || s.minutes.thin <= s.minutes.judged()) continue;
    report.notes.push_back(fmt::format(
        "objective {}, class {}: most minutes have too few probes; the median minute has {} of the "
        "{} needed: probe more, or set minimum_probes",
        objective.name, s.traffic_class, s.probes_median, probes_needed(objective, 100)));
  }
  std::vector<bool> seen(book.settings().objectives.size());
  for (const SeriesReport& s : report.series) seen[s.objective] = true;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (!seen[i])
      report.notes.push_back(
          fmt::format("objective {}: no probes", book.settings().objectives[i].name));
  for (const model::Episode& episode : book.causes().episodes())
    if (episode.entities.empty())
      report.notes.push_back(
          fmt::format("episode {} has no entities; it explains nothing", episode.id));
}

}  // namespace

std::optional<double> MinuteCounts::availability() const {
  if (judged() == 0 || thin > judged()) return {};
  return static_cast<double>(good) / static_cast<double>(judged());
}

Result<Report> build_report(const MinuteCounters& book, const OffenderBook& offenders,
                            std::int64_t first_minute, std::int64_t last_minute) {
  if (last_minute - first_minute >= minutes_max)
    return fail(Errc::infeasible, {},
                fmt::format("the evidence spans {} to {}, more than two years",
                            to_text(start_of(first_minute)), to_text(start_of(last_minute))),
                "check the clocks, or use a shorter time range with --from and --to");
  Report out;
  out.first_minute = first_minute;
  out.last_minute = last_minute;
  const std::int64_t hours = (last_minute - first_minute + 60) / 60;
  out.timeline_hours = (hours + timeline_columns - 1) / timeline_columns;
  const std::vector<std::uint64_t> gpus = gpus_by_scope(book.fabric());
  const std::vector<const Series*> all = book.by_name();
  for (const Series* series : all) {
    SeriesReporter reporter(book, *series, first_minute, last_minute);
    out.series.push_back(reporter.report(out.timeline_hours));
    if (series->entity.valid()) out.series.back().gpus = gpus[series->entity.index()];
  }
  weigh_by_gpus(book, all, out.series);
  out.offenders.slow = offenders.slow_burn(out.offenders.tested);
  out.offenders.repeats = repeat_offenders(book.causes());
  add_notes(book, out);
  return out;
}

}  // namespace weft::observe::sli
