#include "plan/report/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>

#include "base/text.hpp"
#include "plan/report/finding.hpp"
#include "plan/report/report.hpp"

namespace weft::plan::report {
namespace {

using model::JobOutcome;
using model::Note;
using model::TierOutcome;
using model::VariantOutcome;

std::string worst_mmr(const VariantOutcome& variant) {
  const TierOutcome* worst = nullptr;
  for (const TierOutcome& tier : variant.tiers)
    if (std::isfinite(tier.mmr) && (worst == nullptr || tier.mmr > worst->mmr)) worst = &tier;
  return worst == nullptr ? "-" : fmt::format("{:.2f} {}", worst->mmr, printable(worst->name));
}

// How many times as fast as the job of the same name in `first`.
std::string speed_against(const VariantOutcome& first, const JobOutcome& job) {
  const auto same = std::ranges::find(first.jobs, job.name, &JobOutcome::name);
  if (same == first.jobs.end()) return "-";
  return cell(same->time_mean_s / job.time_mean_s, 2);
}

// The others have a table of their own.
auto collectives_of(const VariantOutcome& variant) {
  return variant.jobs |
         std::views::filter([](const JobOutcome& job) { return !job.training.has_value(); });
}

std::string job_table(const Outcome& outcome) {
  const VariantOutcome& first = outcome.variants.front();
  using enum Table::Align;
  Table table({{"variant", left},
               {"job", left},
               {"time"},
               {"busbw GB/s"},
               {"x roofline"},
               {fmt::format("speed vs {}", printable(first.name))},
               {"worst MMR", left}});
  for (const VariantOutcome& variant : outcome.variants)
    for (const JobOutcome& job : collectives_of(variant)) {
      const std::vector<std::string> names{printable(variant.name), printable(job.name)};
      if (job.unfinished) {
        add_unfinished(table, names, job);
        continue;
      }
      table.add({names[0], names[1], time_cell(job.time_mean_s), cell(job.busbw_gbyte_s, 2),
                 cell(job.ratio, 2), speed_against(first, job), worst_mmr(variant)});
    }
  return table.text();
}

// Jobs as lettered columns, one line a variant: time over roofline, and what the letters stand for.
std::string variant_table(const Outcome& outcome) {
  using enum Table::Align;
  const VariantOutcome& first = outcome.variants.front();
  std::vector<Table::Head> heads{{"time / roofline", left}};
  Table legend({{"job", left}, {"", left}, {"GPUs"}, {"size"}, {"algorithm", left}, {"roofline"}});
  std::size_t j = 0;
  for (const JobOutcome& job : collectives_of(first)) {
    const std::string letter =
        j < 26 ? std::string(1, static_cast<char>('A' + j)) : fmt::format("#{}", j + 1);
    ++j;
    heads.push_back({letter, right});
    const auto bytes = static_cast<std::int64_t>(job.bytes_per_rank);
    legend.add({letter, printable(job.name), std::to_string(job.gpus), human(Bytes{bytes}),
                printable(job.algorithm), time_cell(job.roofline_s)});
  }
  heads.push_back({"worst MMR", left});
  Table table(heads);
  for (const VariantOutcome& variant : outcome.variants) {
    std::vector<std::string> cells{printable(variant.name)};
    for (const JobOutcome& wanted : collectives_of(first)) {
      const auto job = std::ranges::find(variant.jobs, wanted.name, &JobOutcome::name);
      cells.push_back(job == variant.jobs.end() ? "-" : or_unfinished(*job, cell(job->ratio, 2)));
    }
    cells.push_back(worst_mmr(variant));
    table.add(std::move(cells));
  }
  return legend.text() + "\n" + table.text() +
         unfinished_lines(outcome, [](const JobOutcome& job) { return !job.training; });
}

// Both kinds of jobs, each with its table.
std::string tables(const Outcome& outcome) {
  if (outcome.variants.empty()) return "no variants\n";
  std::ptrdiff_t rows = 0;
  for (const VariantOutcome& variant : outcome.variants)
    rows += std::ranges::distance(collectives_of(variant));
  const std::string training = training_text(outcome);
  if (rows == 0 && !training.empty()) return training;
  const bool many = rows > static_cast<std::ptrdiff_t>(job_rows_max);
  return (many ? variant_table(outcome) : job_table(outcome)) +
         (training.empty() ? "" : "\n" + training);
}

constexpr std::size_t notes_of_a_cause_max = 3;

// Notes of one cause: the same text but for its numbers.
std::string without_numbers(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || out.empty() || out.back() != '0') out += digit ? '0' : c;
  }
  return out;
}

// A text that several variants have is one line; of many texts of one cause the first ones are
// shown. report.json has all of them.
std::string note_lines(const Outcome& outcome) {
  struct Line {
    const VariantOutcome *first, *last;
    const Note* note;
    std::size_t variants;
    std::string cause;
  };
  std::vector<Line> lines;
  std::map<std::pair<Note::Severity, std::string_view>, std::size_t> known;
  std::map<std::string, std::size_t> total_of;  // lines by cause
  for (const VariantOutcome& variant : outcome.variants)
    for (const Note& note : variant.notes) {
      const auto [at, is_new] = known.try_emplace({note.severity, note.text}, lines.size());
      if (is_new) {
        const char* severity = note.severity == Note::Severity::warning ? "warning" : "note";
        lines.push_back(
            {&variant, &variant, &note, 1,
             fmt::format("{}: {}: {}", severity, variant.name, without_numbers(note.text))});
        ++total_of[lines.back().cause];
      } else if (Line& line = lines[at->second]; line.last != &variant) {
        line.last = &variant;
        ++line.variants;
      }
    }
  std::string out;
  std::map<std::string, std::size_t> shown;
  for (const Line& line : lines) {
    const std::size_t total = total_of[line.cause], number = ++shown[line.cause];
    const bool folds = total > notes_of_a_cause_max + 1;
    if (folds && number > notes_of_a_cause_max) continue;
    const char* severity = line.note->severity == Note::Severity::warning ? "warning" : "note";
    const std::string others =
        line.variants == 1 ? "" : fmt::format(" and {} more", line.variants - 1);
    out += fmt::format("{}: {}{}: {}\n", severity, printable(line.first->name), others,
                       printable(line.note->text));
    if (folds && number == notes_of_a_cause_max)
      out += fmt::format("  ... and {} more that differ in numbers only; report.json has them\n",
                         total - notes_of_a_cause_max);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;
    if (c1) ++i;
    out += c1 || byte < 0x20 || byte == 0x7F ? '?' : text[i];
  }
  return out;
}

// Short enough for a line of the widest table, whose names shrink as far as they can.
constexpr std::size_t reason_columns_max = 96;

void add_unfinished(Table& table, std::vector<std::string> names, const JobOutcome& job) {
  names.push_back(clipped(printable(model::to_text(*job.unfinished)), reason_columns_max));
  table.add(std::move(names));
}

std::string or_unfinished(const JobOutcome& job, std::string text) {
  return job.unfinished ? "unfinished" : std::move(text);
}

std::string unfinished_lines(const Outcome& outcome, bool (*shown)(const JobOutcome& job)) {
  std::string out;
  std::size_t lines = 0;
  for (const VariantOutcome& variant : outcome.variants)
    for (const JobOutcome& job : variant.jobs)
      if (job.unfinished && shown(job) && ++lines <= job_rows_max)
        out += fmt::format("{}, {}: {}\n", printable(variant.name), printable(job.name),
                           printable(model::to_text(*job.unfinished)));
  if (lines > job_rows_max)
    out += fmt::format("... and {} more; report.json has them\n", lines - job_rows_max);
  return out.empty() ? out : "\n" + out;
}

std::string cell(double value, int decimals) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : "-";
}

std::string time_cell(double seconds) {
  return std::isfinite(seconds) ? human_seconds(seconds) : "-";
}

std::string bytes_cell(double bytes) {
  if (!(bytes > 0)) return "-";
  if (bytes >= 0x1p62) return fmt::format("{:.3g} B", bytes);
  return human(Bytes{static_cast<std::int64_t>(bytes)});
}

// At most `columns` characters of UTF-8; what is cut ends in "..".
std::string clipped(std::string_view text, std::size_t columns) {
  std::size_t seen = 0, keep = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (continues(text[i])) continue;
    if (seen == columns - 2) keep = i;
    if (++seen > columns) return fmt::format("{}..", text.substr(0, keep));
  }
  return std::string(text);
}

// Once where all variants have the same fabric; else each fabric with its variants.
std::string fabric_lines(const Outcome& outcome) {
  std::vector<std::pair<const model::FabricSummary*, std::string>> fabrics;
  for (const VariantOutcome& variant : outcome.variants) {
    const auto same = std::ranges::find_if(
        fabrics, [&](const auto& known) { return *known.first == variant.fabric; });
    if (same == fabrics.end())
      fabrics.emplace_back(&variant.fabric, variant.name);
    else
      same->second += ", " + variant.name;
  }
  std::string out;
  for (const auto& [fabric, variants] : fabrics) {
    const std::string head = fabrics.size() == 1 ? "" : clipped(printable(variants), 60) + ": ";
    out += head + printable(fabric->text) + "\n";
    for (const std::string& line : fabric->oversubscription)
      out += fmt::format("{}oversubscription: {}\n", head, printable(line));
  }
  return out;
}

// Lines of at most `columns`, broken at spaces; words that are longer are cut.
std::string wrapped(std::string_view text, std::size_t columns) {
  std::string out;
  std::size_t used = 0;
  for (const std::string_view word : split(text, ' ')) {
    const std::string shown = clipped(word, columns - 2);
    const auto width = static_cast<std::size_t>(
        std::ranges::count_if(shown, [](char c) { return !continues(c); }));
    const bool fits = used + 1 + width <= columns || word.starts_with('%');  // "90 %"
    out += used == 0 ? "" : fits ? " " : "\n  ";
    used = used == 0 ? width : fits ? used + 1 + width : 2 + width;
    out += shown;
  }
  return out;
}

std::string finding_lines(const Outcome& outcome) {
  const std::vector<std::string> all = findings(outcome);
  constexpr std::size_t most = 10;
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i)
    out += "\n" + wrapped(printable(all[i]) + ".", 116);
  if (all.size() > most)
    out += fmt::format("\n... and {} more; report.json has them", all.size() - most);
  return out.empty() ? out : out + "\n";
}

std::string table_text(const Outcome& outcome) {
  const bool estimated = std::ranges::any_of(
      outcome.variants, [](const VariantOutcome& variant) { return variant.estimate.has_value(); });
  std::string out = fmt::format("{}  ({}, engine {}{}, seed {})\n", printable(outcome.scenario),
                                printable(outcome.file), printable(outcome.engine),
                                estimated ? ", estimated from a part" : "", outcome.seed);
  out += fabric_lines(outcome) + "\n";
  out += tables(outcome);
  out += finding_lines(outcome);
  if (const std::string failures = failures_text(outcome); !failures.empty())
    out += "\n" + failures;
  if (const std::string packet = packet_text(outcome); !packet.empty()) out += "\n" + packet;
  const std::string notes = note_lines(outcome);
  if (!notes.empty()) out += '\n';
  return out + notes;
}

std::string terminal_text(const Outcome& outcome) {
  return table_text(outcome) + fmt::format("\n{} of CPU time, {} elapsed\n",
                                           human_seconds(outcome.cpu_s),
                                           human_seconds(outcome.wall_s));
}

}  // namespace weft::plan::report
