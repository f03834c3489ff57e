#include "adapt/sim/people.hpp"

#include <algorithm>
#include <cmath>

#include "base/json_line.hpp"

namespace weft::adapt::sim {

Status People::notify(const port::Notice& notice) {
  if (!notice.event.starts_with("repair_")) return {};
  WEFT_TRY(const JsonLine body, JsonLine::parse(notice.body, {"notice " + notice.id, 0, 0}));
  Errors errors;
  const auto repair = body.object("repair", errors);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  if (!repair) return fail(Errc::parse, {"notice " + notice.id, 0, 0}, "no repair", "");
  const std::string id = repair->text("id", {}, errors);
  const std::string drainable = repair->text("part", "", errors);
  const std::string part = drainable.empty() ? repair->text("root", "", errors) : drainable;
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  if (part.empty()) return {};
  const std::string& event = notice.event;
  if (event == "repair_closed" || event == "repair_returned" || event == "repair_rolled_back") {
    waiting_[part].erase(id);
    return {};
  }
  waiting_[part].insert(id);
  if (event == "repair_replace") {
    offenders_.insert(part);
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
  const auto waiting = waiting_.find(visit.entity);
  if (waiting == waiting_.end() || waiting->second.empty()) return;
  if (!visit.has_found) {
    net_.call_technician(visit.entity, offenders_.contains(visit.entity) ? Operations::Job::replace
                                                                         : Operations::Job::mend);
    return;
  }
  for (const std::string& repair : waiting->second) out.push_back({Word::Kind::repaired, repair});
  offenders_.erase(visit.entity);
}

}  // namespace weft::adapt::sim
