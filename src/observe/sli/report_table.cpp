// The report for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/plural.hpp"
#include "base/text.hpp"
#include "observe/sli/report.hpp"

namespace weft::observe::sli {
namespace {

using Align = Table::Align;

// Rows of single entities that a table shows, by bad minutes; the JSON has all.
constexpr std::size_t entities_shown = 10;
constexpr std::size_t listed_max = 20;

// Rounded down: only what is whole reads 100 %.
std::string percent(std::optional<double> share) {
  if (!share) return "-";
  return fmt::format("{:.4f} %", std::floor(*share * 1e6) / 1e4);
}
std::string loss_percent(double share) { return fmt::format("{:.3g} %", share * 100); }

std::string loss_text(const SeriesReport& s) {
  if (s.sent == 0) return "-";
  return fmt::format("{} [{}, {}]",
                     loss_percent(static_cast<double>(s.lost) / static_cast<double>(s.sent)),
                     loss_percent(s.loss.low), loss_percent(s.loss.high));
}

std::string minutes_text(std::int64_t micro) {
  return fmt::format("{:.2f}", static_cast<double>(micro) * 1e-6);
}

class TableWriter {
 public:
  TableWriter(const Report& report, const MinuteCounters& book)
      : report_(report), book_(book), settings_(book.settings()) {
    choose_rows();
  }

  std::string text() {
    out_ += fmt::format("{} to {}: {}\n", to_text(start_of(report_.first_minute)),
                        to_text(start_of(report_.last_minute + 1)),
                        counted(report_.last_minute - report_.first_minute + 1, "minute"));
    add_objectives();
    add_minutes();
    add_timelines();
    add_causes();
    add_sensitivity();
    add_alerts();
    add_slow_burn();
    add_repeats();
    for (const std::string& note : report_.notes) out_ += "note: " + note + "\n";
    return std::move(out_);
  }

 private:
  // Of every objective and class "all", then its worst entities.
  void choose_rows() {
    for (std::size_t i = 0; i < report_.series.size();) {
      shown_.push_back(&report_.series[i]);
      std::vector<const SeriesReport*> worst;
      for (++i; i < report_.series.size() && !report_.series[i].is_all; ++i)
        worst.push_back(&report_.series[i]);
      // A single entity has the minutes of all.
      if (worst.size() == 1) worst.clear();
      std::erase_if(worst, [](const SeriesReport* s) { return s->minutes.bad() == 0; });
      std::ranges::stable_sort(worst, std::ranges::greater{},
                               [](const SeriesReport* s) { return s->minutes.bad(); });
      if (worst.size() > entities_shown) {
        hidden_ += worst.size() - entities_shown;
        worst.resize(entities_shown);
      }
      shown_.insert(shown_.end(), worst.begin(), worst.end());
    }
  }

  std::vector<std::string> head(const SeriesReport& s) const {
    return {settings_.objectives[s.objective].name, s.traffic_class, s.entity};
  }

  static Table table(std::initializer_list<Table::Head> heads) {
    std::vector<Table::Head> all{
        {"objective", Align::left}, {"class", Align::left}, {"entity", Align::left}};
    all.insert(all.end(), heads.begin(), heads.end());
    return Table(std::move(all));
  }

  static void add_row(Table& table, std::vector<std::string> row,
                      std::initializer_list<std::string> more) {
    row.insert(row.end(), more.begin(), more.end());
    table.add(std::move(row));
  }

  void add_section(std::string_view title, const Table& table) {
    if (table.row_count() > 0) out_ += fmt::format("\n{}\n{}", title, table.text());
  }

  void add_objectives() {
    Table t({{"objective", Align::left},
             {"scope", Align::left},
             {"loss at most"},
             {"corruption at most"},
             {"p99 at most"},
             {"probes per minute"},
             {"target"},
             {"window"}});
    for (const Objective& o : settings_.objectives)
      t.add({o.name, std::string(to_text(o.span)), to_text(o.loss), to_text(o.corruption),
             o.latency_p99_us > 0 ? human_seconds(o.latency_p99_us * 1e-6) : "-",
             fmt::format("{}", probes_needed(o, 100)), to_text(o.target),
             window_text(o.window_minutes)});
    add_section("Objectives", t);
  }

  void add_minutes() {
    Table t = table({{"good"},
                     {"bad"},
                     {"no data"},
                     {"coverage"},
                     {"availability"},
                     {"excl. planned"},
                     {"by GPUs"},
                     {"budget left"},
                     {fmt::format("loss [{:g} %]", settings_.confidence * 100)}});
    for (const SeriesReport* s : shown_)
      add_row(t, head(*s),
              {fmt::format("{}", s->minutes.good), fmt::format("{}", s->minutes.bad()),
               fmt::format("{}", s->minutes.no_data),
               percent(static_cast<double>(s->minutes.judged()) /
                       static_cast<double>(s->minutes.all())),
               percent(s->minutes.availability()), percent(s->availability_without_planned),
               percent(s->availability_by_gpus),
               fmt::format("{:.1f} %", s->budget.left_share() * 100), loss_text(*s)});
    add_section("Minutes", t);
    if (hidden_ > 0)
      out_ += fmt::format("{} more entities have bad minutes; --json lists them\n", hidden_);
  }

  void add_timelines() {
    const std::string title = fmt::format(
        "Timeline, {} h per character: · good, ▁ to █ the share of bad minutes, blank no data",
        report_.timeline_hours);
    Table t = table({{"", Align::left}});
    for (const SeriesReport* s : shown_) add_row(t, head(*s), {"|" + s->timeline + "|"});
    add_section(title, t);
  }

  void add_causes() {
    Table t = table({{"cause", Align::left},
                     {"kind", Align::left},
                     {"planned", Align::left},
                     {"bad minutes"},
                     {"share"}});
    std::size_t left_out = 0;
    for (const SeriesReport* s : shown_) {
      if (!s->is_all) continue;
      for (std::size_t i = 0; i < s->causes.size(); ++i) {
        const Attribution& a = s->causes[i];
        if (i >= listed_max && a.episode) {
          ++left_out;
          continue;
        }
        const double share =
            static_cast<double>(a.micro_minutes) * 1e-6 / static_cast<double>(s->minutes.bad());
        const std::string id = a.episode ? book_.causes().episode(*a.episode).id : "unexplained";
        const std::string kind = a.episode ? book_.causes().episode(*a.episode).kind : "-";
        const char* planned = a.episode && book_.causes().is_planned(*a.episode) ? "yes" : "no";
        add_row(t, head(*s),
                {id, kind, planned, minutes_text(a.micro_minutes),
                 fmt::format("{:.2f} %", share * 100)});
      }
    }
    add_section("Causes of bad minutes", t);
    if (left_out > 0) out_ += fmt::format("{} smaller causes; --json lists them\n", left_out);
  }

  void add_sensitivity() {
    Table t = table({{"thresholds"}, {"good"}, {"bad"}, {"no data"}, {"availability"}});
    for (const SeriesReport* s : shown_) {
      if (!s->is_all) continue;
      for (std::size_t i = 0; i < scale_percents.size(); ++i)
        add_row(t, head(*s),
                {fmt::format("x{:g}", scale_percents[i] / 100.0),
                 fmt::format("{}", s->scaled[i].good), fmt::format("{}", s->scaled[i].bad()),
                 fmt::format("{}", s->scaled[i].no_data), percent(s->scaled[i].availability())});
    }
    add_section("Sensitivity to the thresholds", t);
  }

  void add_alerts() {
    Table t = table({{"alert", Align::left}, {"from", Align::left}, {"until", Align::left}});
    std::size_t left_out = 0;
    for (const SeriesReport& s : report_.series)
      for (std::size_t i = 0; i < s.alerts.size(); ++i) {
        if (i >= listed_max || !s.is_all) {
          ++left_out;
          continue;
        }
        // It is known at the end of the minute that completes it.
        add_row(t, head(s),
                {settings_.alerts[s.alerts[i].alert].name,
                 to_text(start_of(s.alerts[i].first_minute + 1)),
                 to_text(start_of(s.alerts[i].last_minute + 1))});
      }
    add_section("Burn-rate alerts", t);
    if (left_out > 0)
      out_ += fmt::format("{} more, including single entities; --json lists them\n", left_out);
  }

  void add_slow_burn() {
    Table t({{"part", Align::left},
             {"kind", Align::left},
             {"suspicious days"},
             {"of"},
             {"loss"},
             {"background"},
             {"lost"},
             {"sent"},
             {"p"}});
    for (const SlowBurn& s : report_.offenders.slow)
      t.add({s.entity, s.kind, fmt::format("{}", s.days_suspicious), fmt::format("{}", s.days_seen),
             loss_percent(static_cast<double>(s.lost) / static_cast<double>(s.sent)),
             loss_percent(s.background), fmt::format("{}", s.lost), fmt::format("{}", s.sent),
             fmt::format("{:.2g}", s.p_value)});
    add_section(fmt::format("Slow burn: {} components tested", report_.offenders.tested), t);
  }

  void add_repeats() {
    Table t({{"entity", Align::left}, {"episodes"}, {"no fault found"}, {"which", Align::left}});
    const auto& repeats = report_.offenders.repeats;
    for (std::size_t i = 0; i < std::min(repeats.size(), listed_max); ++i) {
      std::string which;
      for (std::size_t k = 0; k < std::min<std::size_t>(repeats[i].episodes.size(), 5); ++k)
        which += (k > 0 ? ", " : "") + repeats[i].episodes[k];
      if (repeats[i].episodes.size() > 5) which += ", ...";
      t.add({repeats[i].entity, fmt::format("{}", repeats[i].episodes.size()),
             fmt::format("{}", repeats[i].no_fault_found), which});
    }
    add_section("Repeat offenders", t);
    if (repeats.size() > listed_max)
      out_ += fmt::format("{} more; --json lists them\n", repeats.size() - listed_max);
  }

  const Report& report_;
  const MinuteCounters& book_;
  const Settings& settings_;
  std::vector<const SeriesReport*> shown_;
  std::size_t hidden_ = 0;
  std::string out_;
};

}  // namespace

std::string to_table(const Report& report, const MinuteCounters& book) {
  return TableWriter(report, book).text();
}

}  // namespace weft::observe::sli
