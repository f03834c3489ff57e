#include "adapt/sim/score.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace weft::adapt::sim {
namespace {

constexpr std::size_t wrong_max = 1'000;

double pairs(double n) { return n * (n - 1) / 2; }

// A case as numbers: how many of its records are of which fault (0: background).
struct Content {
  std::map<std::uint32_t, std::uint64_t> of_fault;
  std::uint64_t size = 0;
  std::uint32_t owner = 0;  // the fault that most of it is of; 0: background
};

class Scorer {
 public:
  Scorer(const std::vector<model::Episode>& truth, const StormLabels& labels,
         const std::vector<ScoredCase>& cases)
      : truth_(truth), labels_(labels), cases_(cases) {}

  Result<Score> score() {
    WEFT_TRY_STATUS(read_truth());
    WEFT_TRY_STATUS(read_contents());
    count_cases();
    agree();
    judge_faults();
    return std::move(out_);
  }

 private:
  Status read_truth() {
    std::unordered_map<std::string, std::uint32_t> faults;
    for (std::uint32_t i = 0; i < truth_.size(); ++i) faults.emplace(truth_[i].id, i + 1);
    size_.assign(truth_.size() + 1, 0);
    label_.assign(labels_.record.size(), 0);
    for (std::uint32_t i = 0; i < labels_.record.size(); ++i) {
      if (!records_.emplace(labels_.record[i], i).second)
        return fail(Errc::value, {},
                    fmt::format("duplicate label for record {}", quote(labels_.record[i])),
                    "use the labels of one storm");
      if (!labels_.fault[i].empty()) {
        const auto known = faults.find(labels_.fault[i]);
        if (known == faults.end())
          return fail(Errc::unknown, {},
                      fmt::format("the truth has no fault {}", quote(labels_.fault[i])),
                      "use labels and truth of the same storm");
        label_[i] = known->second;
      }
      ++size_[label_[i]];
    }
    out_.records = label_.size();
    out_.fault_records = out_.records - size_[0];
    return {};
  }

  Status read_contents() {
    std::vector<bool> taken(label_.size(), false);
    for (const ScoredCase& one : cases_) {
      Content content;
      for (const std::string& member : one.members) {
        const auto known = records_.find(member);
        if (known == records_.end())
          return fail(Errc::unknown, {},
                      fmt::format("case {} has a member {}, which is not a record of the storm",
                                  quote(one.id), quote(member)),
                      "score cases against the storm that produced them");
        if (taken[known->second]) {
          ++out_.doubly_claimed;
          continue;
        }
        taken[known->second] = true;
        ++content.of_fault[label_[known->second]];
        ++content.size;
      }
      std::uint64_t most = 0;
      for (const auto& [fault, count] : content.of_fault)
        if (fault != 0 && count > most) {
          most = count;
          content.owner = fault;
        }
      const auto noise = content.of_fault.find(0);
      if (noise != content.of_fault.end()) {
        out_.background_taken += noise->second;
        if (noise->second > most) content.owner = 0;
      }
      contents_.push_back(std::move(content));
    }
    return {};
  }

  void count_cases() {
    out_.cases = static_cast<std::uint32_t>(cases_.size());
    owned_.assign(truth_.size() + 1, 0);
    for (const Content& content : contents_) ++owned_[content.owner];
    out_.false_cases = owned_[0];
    if (!cases_.empty())
      out_.compression = static_cast<double>(out_.fault_records) / static_cast<double>(out_.cases);
  }

  // Pairwise and B-cubed: each record of the background is a class of its own, and so is, among
  // the cases, each record that none has.
  void agree() {
    double common = 0, claimed = 0, true_pairs = 0, precise = 0, recalled = 0;
    std::uint64_t assigned = 0;
    std::vector<std::uint64_t> left = size_;
    for (const Content& content : contents_) {
      const auto n = static_cast<double>(content.size);
      claimed += pairs(n);
      for (const auto& [fault, count] : content.of_fault) {
        if (fault == 0) continue;
        const auto x = static_cast<double>(count);
        common += pairs(x);
        precise += x * x / n;
        recalled += x * x / static_cast<double>(size_[fault]);
        assigned += count;
        left[fault] -= count;
      }
    }
    for (std::size_t fault = 1; fault < size_.size(); ++fault) {
      const auto n = static_cast<double>(size_[fault]);
      true_pairs += pairs(n);
      if (n > 0) recalled += static_cast<double>(left[fault]) / n;
    }
    out_.unassigned = out_.fault_records - assigned;
    out_.pairwise = {claimed > 0 ? common / claimed : 0, true_pairs > 0 ? common / true_pairs : 0};
    if (out_.fault_records == 0) return;
    const auto all = static_cast<double>(out_.fault_records);
    out_.b_cubed = {(precise + static_cast<double>(out_.unassigned)) / all, recalled / all};
  }

  struct Best {
    double f1 = 0;
    std::uint64_t records = 0;
    std::size_t index = SIZE_MAX;  // of the case with most records of the fault
  };
  std::vector<Best> best_cases() const {
    std::vector<Best> best(truth_.size() + 1);
    for (std::size_t i = 0; i < contents_.size(); ++i)
      for (const auto& [fault, count] : contents_[i].of_fault) {
        Best& known = best[fault];
        const double f1 =
            2 * static_cast<double>(count) / static_cast<double>(contents_[i].size + size_[fault]);
        known.f1 = std::max(known.f1, f1);
        if (count > known.records) known = {known.f1, count, i};
      }
    return best;
  }

  static bool names(const model::Episode& fault, const std::string& entity) {
    if (std::ranges::find(fault.entities, entity) != fault.entities.end()) return true;
    return std::ranges::any_of(fault.attrs, [&](const auto& attribute) {
      return attribute.first == "change" &&
             (entity == attribute.second || entity == "change:" + attribute.second);
    });
  }

  void tell_wrong(const model::Episode& fault, const Best& best, std::uint64_t size) {
    if (out_.wrong.size() >= wrong_max) return;
    const std::string answer = fault.entities.empty() ? "" : fault.entities.front();
    out_.wrong.push_back(
        best.index == SIZE_MAX
            ? fmt::format("{} {} {}: no case", fault.id, fault.kind, answer)
            : fmt::format("{} {} {}: case {} says {} {}, with {} of its {} records", fault.id,
                          fault.kind, answer, cases_[best.index].id, cases_[best.index].kind,
                          cases_[best.index].entity, best.records, size));
  }

  void judge_faults() {
    const std::vector<Best> best = best_cases();
    for (std::uint32_t i = 1; i <= truth_.size(); ++i) {
      const model::Episode& fault = truth_[i - 1];
      if (size_[i] == 0) {
        ++out_.silent_faults;
        continue;
      }
      const ScoredCase* one = best[i].index == SIZE_MAX ? nullptr : &cases_[best[i].index];
      const bool kind = one != nullptr && one->kind == fault.kind;
      const bool entity = one != nullptr && names(fault, one->entity);
      const std::uint32_t splits = owned_[i] > 1 ? owned_[i] - 1 : 0;
      const std::uint32_t lost = owned_[i] == 0 ? 1 : 0;
      ++out_.faults;
      out_.splits += splits;
      out_.lost += lost;
      out_.macro_f1 += best[i].f1;
      out_.top1 += kind && entity ? 1 : 0;
      out_.top1_entity += entity ? 1 : 0;
      out_.top1_kind += kind ? 1 : 0;
      if (!(kind && entity)) tell_wrong(fault, best[i], size_[i]);
      if (const auto type = problem_type(fault.kind)) {
        Score::PerType& row = out_.types[static_cast<std::size_t>(*type)];
        ++row.faults;
        row.splits += splits;
        row.lost += lost;
        row.macro_f1 += best[i].f1;
        row.top1 += kind && entity ? 1 : 0;
      }
    }
    for (double* mean : {&out_.macro_f1, &out_.top1, &out_.top1_entity, &out_.top1_kind})
      if (out_.faults > 0) *mean /= out_.faults;
    for (Score::PerType& row : out_.types)
      if (row.faults > 0) {
        row.macro_f1 /= row.faults;
        row.top1 /= row.faults;
      }
  }

  const std::vector<model::Episode>& truth_;
  const StormLabels& labels_;
  const std::vector<ScoredCase>& cases_;
  std::unordered_map<std::string, std::uint32_t> records_;
  std::vector<std::uint32_t> label_;  // by record: fault from 1, or 0
  std::vector<std::uint64_t> size_;   // by fault: its records
  std::vector<Content> contents_;     // by case
  std::vector<std::uint32_t> owned_;  // by fault: its cases
  Score out_;
};

}  // namespace

Result<Score> score_cases(const std::vector<model::Episode>& truth, const StormLabels& labels,
                          const std::vector<ScoredCase>& cases) {
  return Scorer(truth, labels, cases).score();
}

std::string to_table(const Score& s) {
  std::string out = fmt::format(
      "cases            {} for {} faults ({} splits, {} lost, {} false)\n"
      "per-fault F1     {:.4f} (macro)\n"
      "pairwise         F1 {:.4f}  precision {:.4f}  recall {:.4f}\n"
      "B-cubed          F1 {:.4f}  precision {:.4f}  recall {:.4f}\n"
      "cause, top 1     {:.4f}  entity {:.4f}  kind {:.4f}\n"
      "records          {} of faults, {} of them in no case; {} of the background in cases\n"
      "compression      {:.0f} fault records to a case\n",
      s.cases, s.faults, s.splits, s.lost, s.false_cases, s.macro_f1, s.pairwise.f1(),
      s.pairwise.precision, s.pairwise.recall, s.b_cubed.f1(), s.b_cubed.precision,
      s.b_cubed.recall, s.top1, s.top1_entity, s.top1_kind, s.fault_records, s.unassigned,
      s.background_taken, s.compression);
  if (s.silent_faults > 0)
    out += fmt::format("not scored       {} faults without any record\n", s.silent_faults);
  if (s.doubly_claimed > 0)
    out +=
        fmt::format("claimed twice    {} members, counted in the first case\n", s.doubly_claimed);
  Table table({{"type", Table::Align::left}, {"faults"}, {"F1"}, {"top 1"}, {"splits"}, {"lost"}});
  for (std::size_t i = 0; i < problem_type_count; ++i) {
    const Score::PerType& row = s.types[i];
    if (row.faults == 0) continue;
    table.add({std::string(problem_type_names[i]), fmt::format("{}", row.faults),
               fmt::format("{:.4f}", row.macro_f1), fmt::format("{:.4f}", row.top1),
               fmt::format("{}", row.splits), fmt::format("{}", row.lost)});
  }
  return out + "\n" + table.text();
}

}  // namespace weft::adapt::sim
