#include "adapt/sim/people.hpp"

#include <algorithm>
#include <cmath>

#include "base/json_line.hpp"

namespace weft::adapt::sim {

Status People::notify(const port::Notice& notice) {
  const std::string& event = notice.event;
  if (!event.starts_with("case_") && !event.starts_with("repair_")) return {};
  const Where where{"notice " + notice.id, 0, 0};
  WEFT_TRY(const JsonLine body, JsonLine::parse(notice.body, where));
  Errors errors;
  const auto repair = body.object("repair", errors);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  if (!repair) return fail(Errc::parse, where, "no repair", "");
  const std::string id = repair->text("id", {}, errors);
  const std::string drainable = repair->text("part", "", errors);
  const std::string part = drainable.empty() ? repair->text("root", "", errors) : drainable;
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  open_.erase(id);
  if (part.empty() || repair->has("ended")) return {};
  open_[id] = {part, repair->node().member("is_offender").flag().value_or(false)};
  if (event == "repair_replace") {
    replaced_.insert(part);
    net_.call_technician(part, Operations::Job::replace);
  } else if (event == "repair_drained" || event == "repair_verify_failed" ||
             event == "repair_blocked" || (event == "repair_proposed" && drainable.empty())) {
    net_.call_technician(part, Operations::Job::mend);
  } else if (event == "repair_proposed" || event == "repair_failed") {
    Rng person = Rng(settings_.seed).stream("answer").stream(part).stream(asked_[part]++);
    const double wait =
        -std::log1p(-person.uniform()) * static_cast<double>(settings_.approve_mean_ns);
    answers_.push_back({{net_.now().ns + static_cast<std::int64_t>(wait)}, id});
    net_.call_technician(part, Operations::Job::mend);
  }
  return {};
}

std::optional<Timestamp> People::next_due() const {
  if (answers_.empty()) return std::nullopt;
  return std::ranges::min_element(answers_, {}, &Answer::t)->t;
}

std::vector<People::Word> People::words() {
  std::vector<Word> out;
  for (const Answer& answer : answers_)
    if (answer.t <= net_.now()) out.push_back({Word::Kind::approve, answer.repair});
  std::erase_if(answers_, [&](const Answer& answer) { return answer.t <= net_.now(); });
  for (const Operations::Visit& done : net_.visits()) visit(done, out);
  return out;
}

void People::visit(const Operations::Visit& visit, std::vector<Word>& out) {
  for (const auto& [id, repair] : open_) {
    if (repair.part != visit.entity) continue;
    if (visit.has_found)
      out.push_back({Word::Kind::repaired, id});
    else
      net_.call_technician(visit.entity,
                           repair.is_offender ? Operations::Job::replace : Operations::Job::mend);
  }
}

}  // namespace weft::adapt::sim
