// Training jobs on the terminal: the table of steps, then where bytes and waiting went.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "plan/report/terminal.hpp"

namespace weft::plan::report {
namespace {

using model::Dimension;
using model::HotLink;
using model::JobOutcome;
using model::Outcome;
using model::TrainingOutcome;
using model::VariantOutcome;
using enum Table::Align;

struct JobRow {
  const VariantOutcome* variant;
  const JobOutcome* job;
  const TrainingOutcome& training() const { return *job->training; }
};

std::vector<JobRow> rows_of(const VariantOutcome& variant) {
  std::vector<JobRow> out;
  for (const JobOutcome& job : variant.jobs)
    if (job.training) out.push_back({&variant, &job});
  return out;
}

std::vector<JobRow> rows_of(const Outcome& outcome) {
  std::vector<JobRow> out;
  for (const VariantOutcome& variant : outcome.variants)
    std::ranges::copy(rows_of(variant), std::back_inserter(out));
  return out;
}

std::string name_cell(std::string_view text, std::size_t columns) {
  return clipped(printable(text), columns);
}

std::size_t width_of(std::string_view text) {
  std::size_t widest = 0;
  for (const std::string_view line : split(text, '\n'))
    widest = std::max(
        widest, line.size() - static_cast<std::size_t>(std::ranges::count_if(line, continues)));
  return widest;
}

// A table whose names are cut only as far as the line's length asks for.
std::string fitted(auto table_of) {
  constexpr std::size_t name_max = 40, name_min = 8;
  const std::string text = table_of(name_max);
  const std::size_t width = width_of(text);
  if (width <= line_columns_max) return text;
  std::size_t longest = name_max;
  std::string out = text;
  while (longest > name_min && width_of(out) > line_columns_max) out = table_of(--longest);
  return out;
}

std::string percent_cell(double share) { return cell(share * 100, 1); }

std::vector<Dimension> exposed_dimensions(const std::vector<JobRow>& rows) {
  std::vector<Dimension> out;
  for (std::size_t d = 0; d < model::dimension_count; ++d)
    if (std::ranges::any_of(rows,
                            [&](const JobRow& row) { return row.training().exposed_s[d] > 0; }))
      out.push_back(static_cast<Dimension>(d));
  return out;
}

// How many times as fast as the step of the same job in `first`.
std::string step_speed_against(const VariantOutcome& first, const JobRow& row) {
  const auto same = std::ranges::find(first.jobs, row.job->name, &JobOutcome::name);
  if (same == first.jobs.end() || !same->training) return "-";
  return cell(same->training->step_time_s / row.training().step_time_s, 2);
}

// Heads are short where many dimensions leave little room.
std::vector<Table::Head> step_heads(const VariantOutcome& first,
                                    const std::vector<Dimension>& dimensions) {
  const bool narrow = dimensions.size() > 3;
  std::vector<Table::Head> heads{{"variant", left}, {"job", left},
                                 {"step time"},     {narrow ? "TF/s/GPU" : "TFLOP/s/GPU"},
                                 {"MFU %"},         {"bubble %"}};
  for (const Dimension dimension : dimensions) {
    const std::string_view group =
        dimension != dimensions.front() ? "" : (narrow ? "exp. %: " : "exposed %: ");
    heads.push_back({fmt::format("{}{}", group, to_text(dimension))});
  }
  heads.push_back({narrow ? "tok/s/GPU" : "tokens/s/GPU"});
  heads.push_back({fmt::format("vs {}", name_cell(first.name, narrow ? 8 : 12))});
  return heads;
}

std::string step_table(const Outcome& outcome, const std::vector<JobRow>& rows) {
  const VariantOutcome& first = outcome.variants.front();
  const std::vector<Dimension> dimensions = exposed_dimensions(rows);
  const std::vector<Table::Head> heads = step_heads(first, dimensions);
  return fitted([&](std::size_t name_max) {
    Table table(heads);
    for (const JobRow& row : rows) {
      const TrainingOutcome& t = row.training();
      std::vector<std::string> cells{name_cell(row.variant->name, name_max),
                                     name_cell(row.job->name, std::min<std::size_t>(name_max, 16))};
      if (row.job->unfinished) {
        add_unfinished(table, std::move(cells), *row.job);
        continue;
      }
      cells.insert(cells.end(), {time_cell(t.step_time_s), cell(t.tflops_per_gpu, 1),
                                 percent_cell(t.mfu), percent_cell(t.bubble)});
      for (const Dimension dimension : dimensions)
        cells.push_back(
            percent_cell(t.exposed_s[static_cast<std::size_t>(dimension)] / t.step_time_s));
      cells.push_back(cell(t.tokens_per_s_per_gpu, 1));
      cells.push_back(step_speed_against(first, row));
      table.add(std::move(cells));
    }
    return table.text();
  });
}

// Of jobs with a front-end network. Checkpoints are no part of a step's time.
std::string front_end_table(const std::vector<JobRow>& rows) {
  return fitted([&](std::size_t name_max) {
    Table table({{"front end", left},
                 {"job", left},
                 {"start"},
                 {"ingest"},
                 {"ingest stall"},
                 {"checkpoint"},
                 {"checkpoint stall"}});
    for (const JobRow& row : rows) {
      const TrainingOutcome& t = row.training();
      if (row.job->unfinished || !std::isfinite(t.start_s)) continue;
      table.add({name_cell(row.variant->name, name_max),
                 name_cell(row.job->name, std::min<std::size_t>(name_max, 16)),
                 time_cell(t.start_s), time_cell(t.ingest_s), time_cell(t.ingest_stall_s),
                 time_cell(t.checkpoint_s), time_cell(t.checkpoint_stall_s)});
    }
    return table.row_count() > 0 ? "\n" + table.text() : std::string{};
  });
}

// The largest flow with its example, then how much the next ones carry.
std::string flows_text(const HotLink& link) {
  constexpr std::size_t shown = 3;
  std::string out;
  std::string job;
  for (std::size_t f = 0; f < std::min(shown, link.flows.size()); ++f) {
    const HotLink::Flow& flow = link.flows[f];
    if (f > 0) out += ", ";
    if (std::exchange(job, flow.job) != flow.job) out += printable(flow.job) + " ";
    out += fmt::format("{} {}", to_text(flow.dimension), bytes_cell(flow.bytes));
    if (f == 0) out += fmt::format(" ({} -> {})", printable(flow.from), printable(flow.to));
  }
  if (link.flows.size() > shown) out += fmt::format(", {} more", link.flows.size() - shown);
  return out;
}

std::string hot_links(const Outcome& outcome) {
  return fitted([&](std::size_t name_max) {
    Table table({{"hottest link", left}, {"", left}, {"load %"}, {"bytes"}, {"flows", left}});
    for (const VariantOutcome& variant : outcome.variants) {
      const HotLink* hottest = nullptr;
      for (const JobRow& row : rows_of(variant))
        for (const HotLink& link : row.training().hottest_links)
          if (hottest == nullptr || link.load > hottest->load) hottest = &link;
      if (hottest == nullptr) continue;
      table.add({name_cell(variant.name, std::min<std::size_t>(name_max, 24)),
                 name_cell(hottest->link, name_max), percent_cell(hottest->load),
                 bytes_cell(hottest->bytes), clipped(flows_text(*hottest), name_max + 30)});
    }
    return table.row_count() > 0 ? "\n" + table.text() : std::string{};
  });
}

std::string waits_of(const VariantOutcome& variant) {
  constexpr std::size_t shown = 3;
  struct Item {
    const JobOutcome* job;
    const TrainingOutcome::Wait* wait;
  };
  std::vector<Item> items;
  const std::vector<JobRow> rows = rows_of(variant);
  for (const JobRow& row : rows)
    for (const TrainingOutcome::Wait& wait : row.training().waits)
      items.push_back({row.job, &wait});
  std::ranges::stable_sort(items, std::ranges::greater{},
                           [](const Item& i) { return i.wait->seconds; });
  std::string out;
  for (const JobRow& row : rows)
    for (const TrainingOutcome::Straggler& slow : row.training().stragglers)
      if (&slow == &row.training().stragglers.front())
        out += fmt::format("{}{}{} computes {:.2f} x its role", out.empty() ? "" : "; ",
                           rows.size() > 1 ? printable(row.job->name) + " " : "",
                           printable(slow.rank), slow.factor);
  for (std::size_t i = 0; i < std::min(shown, items.size()); ++i) {
    const auto& [job, wait] = items[i];
    const std::string_view between = out.empty() ? "" : i == 0 ? "; " : ", ";
    out += fmt::format("{}{}{}: {:.4g} GPU-s in {}", between,
                       rows.size() > 1 ? printable(job->name) + " " : "", printable(wait->rank),
                       wait->seconds, to_text(wait->dimension));
  }
  return out;
}

std::string wait_table(const Outcome& outcome) {
  Table table({{"waited for", left}, {"", left}});
  for (const VariantOutcome& variant : outcome.variants)
    if (const std::string waits = waits_of(variant); !waits.empty())
      table.add({name_cell(variant.name, 24), clipped(waits, line_columns_max - 26)});
  return table.row_count() > 0 ? "\n" + table.text() : std::string{};
}

// Variants whose job moves the same bytes share their rows.
struct SameBytes {
  JobRow first;
  std::size_t variants = 1;

  std::string text(std::size_t variants_of_all) const {
    if (variants == 1) return name_cell(first.variant->name, 28);
    if (variants == variants_of_all) return "all variants";
    return fmt::format("{} and {} more", name_cell(first.variant->name, 28), variants - 1);
  }
};

std::vector<SameBytes> same_bytes(const std::vector<JobRow>& rows) {
  std::vector<SameBytes> out;
  for (const JobRow& row : rows) {
    const auto same = std::ranges::find_if(out, [&](const SameBytes& known) {
      return known.first.job->name == row.job->name &&
             known.first.training().bytes == row.training().bytes;
    });
    if (same == out.end())
      out.push_back({row});
    else
      same->variants += 1;
  }
  return out;
}

std::string byte_table(const Outcome& outcome, const std::vector<JobRow>& rows) {
  Table table({{"bytes of a step", left},
               {"job", left},
               {""},
               {"in host"},
               {"in rack"},
               {"in zone"},
               {"cross-zone"}});
  for (const SameBytes& same : same_bytes(rows)) {
    std::string variants = same.text(outcome.variants.size());
    std::string job = name_cell(same.first.job->name, 16);
    for (std::size_t d = 0; d < model::dimension_count; ++d) {
      const auto& [host, rack, zone, cross_zone] = same.first.training().bytes[d];
      if (!(host > 0 || rack > 0 || zone > 0 || cross_zone > 0)) continue;
      table.add({std::exchange(variants, ""), std::exchange(job, ""),
                 std::string(to_text(static_cast<Dimension>(d))), bytes_cell(host),
                 bytes_cell(rack), bytes_cell(zone), bytes_cell(cross_zone)});
    }
  }
  return table.row_count() > 0 ? "\n" + table.text() : std::string{};
}

// Jobs by name, in order of first appearance.
std::vector<const JobOutcome*> distinct_jobs(const std::vector<JobRow>& rows) {
  std::vector<const JobOutcome*> out;
  for (const JobRow& row : rows)
    if (std::ranges::find(out, row.job->name, &JobOutcome::name) == out.end())
      out.push_back(row.job);
  return out;
}

// Few jobs as lettered columns, one line a variant.
std::string compact_part(const Outcome& outcome, std::span<const JobOutcome* const> jobs,
                         std::size_t first) {
  std::vector<Table::Head> heads{{"step time, MFU %", left}};
  Table legend({{"job", left}, {"", left}, {"GPUs"}, {"model", left}, {"plan", left}});
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const std::string number = fmt::format("#{}", first + j + 1);
    legend.add({number, name_cell(jobs[j]->name, 24), std::to_string(jobs[j]->gpus),
                name_cell(jobs[j]->training->model, 24), name_cell(jobs[j]->training->plan, 44)});
    heads.push_back({number});
    heads.push_back({""});
  }
  Table table(heads);
  for (const VariantOutcome& variant : outcome.variants) {
    std::vector<std::string> cells{name_cell(variant.name, 32)};
    for (const JobOutcome* wanted : jobs) {
      const auto job = std::ranges::find(variant.jobs, wanted->name, &JobOutcome::name);
      const bool ran = job != variant.jobs.end() && job->training;
      cells.push_back(ran ? or_unfinished(*job, time_cell(job->training->step_time_s)) : "-");
      cells.push_back(ran ? percent_cell(job->training->mfu) : "-");
    }
    table.add(std::move(cells));
  }
  return legend.text() + "\n" + table.text();
}

std::string compact_tables(const Outcome& outcome, const std::vector<JobRow>& rows) {
  constexpr std::size_t jobs_per_line = 4;
  const std::vector<const JobOutcome*> jobs = distinct_jobs(rows);
  std::string out;
  for (std::size_t first = 0; first < jobs.size(); first += jobs_per_line) {
    if (first > 0) out += '\n';
    const std::span rest = std::span(jobs).subspan(first);
    out += compact_part(outcome, rest.first(std::min(jobs_per_line, rest.size())), first);
  }
  return out +
         unfinished_lines(outcome, [](const JobOutcome& job) { return job.training.has_value(); });
}

}  // namespace

std::string training_text(const Outcome& outcome) {
  const std::vector<JobRow> rows = rows_of(outcome);
  if (rows.empty()) return {};
  if (rows.size() > job_rows_max) return compact_tables(outcome, rows);
  return step_table(outcome, rows) + front_end_table(rows) + hot_links(outcome) +
         wait_table(outcome) + byte_table(outcome, rows);
}

}  // namespace weft::plan::report
