#include "operate/repair/repair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "operate/repair/driver.hpp"

namespace weft::operate::repair {
namespace {

using model::EntityKind;
using model::LinkId;
using model::NodeId;

constexpr std::size_t cases_max = 200;  // that one ticket remembers

Timestamp evidence_of(const model::Case& c) {
  return c.members.empty() ? c.opened : std::max(c.opened, c.members.back().at);
}

bool is_out(Stage stage) {
  return stage == Stage::drained || stage == Stage::repairing || stage == Stage::verifying ||
         stage == Stage::rma;
}

// Of clocks that may be far off.
std::int64_t elapsed_ns(Timestamp from, Timestamp to) {
  if (to <= from) return 0;
  const auto ns = static_cast<std::uint64_t>(to.ns) - static_cast<std::uint64_t>(from.ns);
  return static_cast<std::int64_t>(std::min<std::uint64_t>(ns, spent_ns_max));
}

JsonObject why(const Attribution& word) { return JsonObject().add("why", word.why); }

std::unexpected<Error> not_now(const Ticket& t, std::string_view what, std::string hint) {
  return fail(Errc::infeasible, {}, fmt::format("{} is {}: {}", t.id, to_text(t.stage), what),
              std::move(hint));
}

}  // namespace

bool Step::empty() const {
  return orders.empty() && commit.documents.empty() && commit.audit.empty();
}

Repair::Repair(const model::Fabric& fabric, Policy policy)
    : fabric_(fabric), policy_(std::move(policy)), reserve_(fabric) {}

void Repair::say(std::string_view actor, const Ticket* ticket, std::string_view action,
                 const JsonObject& detail) {
  port::AuditEntry entry{.t = now_, .actor = std::string(actor), .action = std::string(action)};
  JsonObject all;
  if (ticket != nullptr) {
    entry.subject = ticket->cases.empty() ? ticket->id : ticket->lead().id;
    all.add("repair", ticket->id);
  }
  entry.detail = all.add_all(detail).text();
  audit_.push_back(std::move(entry));
}

std::string Repair::name_or_none(const Entity& e) const {
  return e.kind == EntityKind::none ? std::string() : name(fabric_, e);
}

Subject Repair::subject_of(const Ticket& t) const {
  return {t.kind, name_or_none(t.root), name_or_none(t.part)};
}

// Cables between switches and switches can be drained; what hosts hang on alone is people's.
Entity Repair::part_of(CauseKind kind, const Entity& root) const {
  const DrainTarget target = policy_.problem(kind).drain;
  if (target == DrainTarget::cable &&
      (root.kind == EntityKind::cable || root.kind == EntityKind::link ||
       root.kind == EntityKind::port)) {
    const model::CableId cable =
        root.kind == EntityKind::cable ? model::CableId(root.id) : model::cable_of(LinkId(root.id));
    const LinkId link = model::forward(cable);
    if (fabric_.is_switch(fabric_.from(link)) && fabric_.is_switch(fabric_.to(link)))
      return model::entity(cable);
  }
  if (target == DrainTarget::device &&
      (root.kind == EntityKind::node || root.kind == EntityKind::card) &&
      fabric_.is_switch(NodeId(root.id)))
    return model::entity(NodeId(root.id));
  return {};
}

std::optional<Timestamp> Repair::hold_until(const Entity& part) const {
  const Timing& timing = policy_.timing;
  const std::string known = name(fabric_, part);
  std::int64_t hold = 0;
  for (const Past& past : machine_.past)
    if (past.part == known && past.t.ns > now_.ns - timing.again_ns)
      hold = std::min(hold == 0 ? timing.hold_ns : 2 * hold, timing.hold_max_ns);
  return hold == 0 ? std::nullopt : std::optional(Timestamp{now_.ns + hold});
}

bool Repair::is_about(const Ticket& ticket, const model::Case& c) const {
  const Entity part = part_of(c.kind, c.root);
  if (part.kind != EntityKind::none) return ticket.part == part;
  return !ticket.has_part() && ticket.root == c.root;
}

// Cases without a root, and those for which nothing is drained but of another kind, have nothing
// in common.
Ticket* Repair::under_way_about(const model::Case& c) {
  for (const std::string& id : active_) {
    Ticket& ticket = tickets_.find(id)->second;
    if (is_over(ticket.stage) || !is_about(ticket, c)) continue;
    if (ticket.has_part() || (ticket.kind == c.kind && c.root.kind != EntityKind::none))
      return &ticket;
  }
  return nullptr;
}

bool Repair::is_believable(const Followed& c) const {
  const Problem& problem = policy_.problem(c.kind);
  if (c.state == model::CaseState::maintenance || problem.mode == Mode::observe) return false;
  if (c.state == model::CaseState::provisional && !problem.acts_early) return false;
  return c.confidence >= problem.confidence;
}

void Repair::open_ticket(const model::Case& c) {
  Ticket ticket{.serial = ++machine_.serial, .kind = c.kind, .root = c.root};
  machine_dirty_ = true;
  ticket.id = fmt::format("{}/{}", c.id, ticket.serial);
  ticket.part = part_of(c.kind, c.root);
  ticket.opened = c.opened;
  ticket.seen = ticket.since = now_;
  ticket.spent_ns[static_cast<std::size_t>(TtrPart::detect)] = elapsed_ns(c.opened, now_);
  const std::string id = ticket.id;
  Ticket& kept = tickets_.emplace(id, std::move(ticket)).first->second;
  active_.insert(id);
  say("weft", &kept, "opened", to_object(Opening{kept.serial, kept.opened, subject_of(kept)}));
  follow(kept, c);
}

void Repair::follow(Ticket& ticket, const model::Case& c) {
  Followed now{.id = c.id,
               .kind = c.kind,
               .root = c.root,
               .state = c.state,
               .confidence = std::isfinite(c.confidence) ? c.confidence : 0,
               .opened = c.opened,
               .is_open = !c.closed.has_value(),
               .is_probed = !c.members.empty() &&
                            std::ranges::all_of(c.members, [](const model::Case::Member& m) {
                              return m.relation == model::Relation::probe_over;
                            })};
  if (Followed* before = followed(c.id); before != nullptr && !before->told.empty()) {
    now.told = std::exchange(before->told, {});
    touch(tickets_.find(ticket_of_case_.find(c.id)->second)->second);
  }
  ticket_of_case_[c.id] = ticket.id;
  auto at = std::ranges::find(ticket.cases, c.id, &Followed::id);
  if (at != ticket.cases.end()) at->told = now.told;
  const bool is_new = at == ticket.cases.end();
  if (is_new || *at != now) {
    const bool is_told = is_new || std::tuple(at->kind, at->state, at->is_open) !=
                                       std::tuple(now.kind, now.state, now.is_open);
    if (is_new) {
      if (ticket.cases.size() >= cases_max) ticket.cases.erase(ticket.cases.begin());
      ticket.cases.push_back(now);
    } else {
      *at = now;
    }
    touch(ticket);
    if (is_told)
      say("weft", &ticket, "case",
          JsonObject()
              .add("case", now.id)
              .add("kind", now.kind)
              .add("state", now.state)
              .add("confidence", now.confidence, decimals(3))
              .add("open", now.is_open));
  }
  if (!ticket.has_open_case()) ticket.check_at = now_;
  if (ticket.stage == Stage::soaking && now.is_open && !ticket.has_relapsed && is_believable(now) &&
      evidence_of(c).ns > ticket.returned_at->ns + policy_.timing.grace_ns) {
    ticket.has_relapsed = true;
    touch(ticket);
  }
  const bool is_told = now.is_open && evidence_of(c) > ticket.told_at;
  if (is_out(ticket.stage) && policy_.problem(ticket.kind).quiet_ns > 0 && is_told) {
    ticket.told_at = evidence_of(c);
    touch(ticket);
  }
  retarget(ticket);
}

// What the ticket is about follows its leading case, as long as nothing was done.
void Repair::retarget(Ticket& ticket) {
  const Followed& lead = ticket.lead();
  if (ticket.kind == lead.kind && ticket.root == lead.root) return;
  const Entity part = part_of(lead.kind, lead.root);
  if (!is_before_act(ticket.stage)) {
    if (part != ticket.part) return;
    ticket.kind = lead.kind;
    ticket.root = lead.root;
    return;
  }
  ticket.kind = lead.kind;
  ticket.root = lead.root;
  WEFT_CHECK(!ticket.deed);
  ticket.part = part;
  touch(ticket);
  Driver(*this).start_over(ticket, "the case changed");
}

void Repair::let_go(Ticket& ticket, std::string_view case_id) {
  for (Followed& c : ticket.cases)
    if (c.id == case_id) {
      c.is_open = false;
      c.is_moved = true;
    }
  if (!ticket.has_open_case()) ticket.check_at = now_;
  touch(ticket);
}

// The case as the ticket knows it that followed it last.
Followed* Repair::followed(std::string_view case_id) {
  const auto known = ticket_of_case_.find(case_id);
  if (known == ticket_of_case_.end()) return nullptr;
  Ticket& ticket = tickets_.find(known->second)->second;
  const auto at = std::ranges::find(ticket.cases, case_id, &Followed::id);
  return at == ticket.cases.end() ? nullptr : &*at;
}

// A case that outlived its ticket is over: people who were told of it are told so.
void Repair::end_case(std::string_view case_id) {
  Followed* c = followed(case_id);
  if (c == nullptr || !c->is_open) return;
  const Ticket& ticket = tickets_.find(ticket_of_case_.find(case_id)->second)->second;
  c->is_open = false;
  active_.insert(ticket.id);
  touch(ticket);
}

// A case that no ticket under way follows.
void Repair::place(const model::Case& c) {
  if (Ticket* other = under_way_about(c); other != nullptr)
    follow(*other, c);
  else
    open_ticket(c);
}

void Repair::see(const model::Case& c, Timestamp now) {
  advance_clock(now);
  if (c.id.empty() || c.id == machine_id)
    return say("weft", nullptr, "ignored", JsonObject().add("why", "a case without a name"));
  if (machine_.muted.contains(c.id)) {
    if (!c.closed) return;
    machine_dirty_ = machine_.muted.erase(c.id) > 0;
    return end_case(c.id);
  }
  const auto known = ticket_of_case_.find(c.id);
  if (known == ticket_of_case_.end()) return place(c);
  Ticket& ticket = tickets_.find(known->second)->second;
  if (is_over(ticket.stage)) {
    const bool is_fresh =
        ticket.ended && evidence_of(c).ns > ticket.ended->ns + policy_.timing.grace_ns;
    if (c.closed) return end_case(c.id);
    if (is_fresh) place(c);
    return;
  }
  if (is_about(ticket, c)) return follow(ticket, c);
  const auto open = std::ranges::count_if(ticket.cases, &Followed::is_open);
  const bool is_alone = open == 0 || (open == 1 && ticket.lead().id == c.id);
  if (is_before_act(ticket.stage) && is_alone && under_way_about(c) == nullptr)
    return follow(ticket, c);
  say("weft", &ticket, "moved",
      JsonObject().add("case", c.id).add("to", model::root_name(fabric_, c)));
  let_go(ticket, c.id);
  if (!ticket.is_orphan()) retarget(ticket);
  place(c);
}

void Repair::retract(std::string_view case_id, std::string_view into, Timestamp now) {
  advance_clock(now);
  if (const auto muted = machine_.muted.find(case_id); muted != machine_.muted.end()) {
    machine_.muted.erase(muted);
    machine_dirty_ = true;
  }
  const auto known = ticket_of_case_.find(case_id);
  if (known == ticket_of_case_.end()) return;
  Ticket& ticket = tickets_.find(known->second)->second;
  if (is_over(ticket.stage)) return end_case(case_id);
  say("weft", &ticket, "retracted", JsonObject().add("case", case_id).add("into", into));
  let_go(ticket, case_id);
  if (!ticket.is_orphan()) retarget(ticket);
}

std::vector<std::string> Repair::open_cases() const {
  std::set<std::string> out(machine_.muted.begin(), machine_.muted.end());
  for (const std::string& id : active_) {
    const Ticket& ticket = tickets_.find(id)->second;
    if (is_over(ticket.stage)) continue;
    for (const Followed& c : ticket.cases)
      if (c.is_open) out.insert(c.id);
  }
  return {out.begin(), out.end()};
}

void Repair::set_outside(std::vector<Entity> out, Timestamp now) {
  advance_clock(now);
  std::ranges::sort(out);
  if (out == machine_.outside) return;
  machine_.outside = std::move(out);
  machine_dirty_ = true;
  std::vector<std::string> parts;
  for (const Entity& e : machine_.outside) parts.push_back(name(fabric_, e));
  say("weft", nullptr, "outside", JsonObject().add("parts", parts));
}

void Repair::outcome(const Outcome& outcome, Timestamp now) {
  advance_clock(now);
  Driver(*this).take(outcome);
}

Result<Ticket*> Repair::under_way(std::string_view id) {
  auto at = tickets_.find(id);
  if (const auto by_case = ticket_of_case_.find(id); by_case != ticket_of_case_.end())
    at = tickets_.find(by_case->second);
  if (at != tickets_.end() && !is_over(at->second.stage)) return &at->second;
  if (at != tickets_.end())
    return fail(Errc::infeasible, {},
                fmt::format("{} is over: {}", at->second.id, to_text(at->second.stage)));
  return fail(Errc::unknown, {}, fmt::format("no repair is known for {}", quote(id)),
              "specify a case or a repair in progress");
}

Status Repair::approve(std::string_view id, const Attribution& word, Timestamp now) {
  advance_clock(now);
  WEFT_TRY(Ticket * t, under_way(id));
  if (t->stage == Stage::proposed) {
    if (!t->has_part())
      return not_now(*t, "nothing to drain", "repair it, then report it as repaired");
    if (policy_.problem(t->kind).mode == Mode::propose)
      return not_now(*t, "the policy leaves drains for this problem to operators",
                     "drain it manually, or set mode approve for the problem type");
  } else if (t->stage != Stage::failed) {
    return not_now(*t, "nothing is waiting for approval", {});
  }
  say(word.who, t, "approved", why(word));
  t->approved_by = word.who;
  Driver(*this).resume(*t);
  return {};
}

Status Repair::reject(std::string_view id, const Attribution& word, Timestamp now) {
  advance_clock(now);
  WEFT_TRY(Ticket * t, under_way(id));
  if (t->stage == Stage::returning || t->stage == Stage::soaking)
    return not_now(*t, "it is already being returned to service", {});
  say(word.who, t, "rejected", why(word));
  for (Followed& c : t->cases)
    if (c.is_open) machine_.muted.insert(c.id);
  machine_dirty_ = true;
  Driver(*this).give_back(*t, fmt::format("rejected by {}", word.who));
  return {};
}

Status Repair::repaired(std::string_view id, const Attribution& word, Timestamp now) {
  advance_clock(now);
  WEFT_TRY(Ticket * t, under_way(id));
  const bool is_without_drain = t->stage == Stage::proposed && !t->has_part();
  if (!is_without_drain && t->stage != Stage::drained && t->stage != Stage::repairing &&
      t->stage != Stage::verifying && t->stage != Stage::failed && t->stage != Stage::rma)
    return not_now(*t, "it is not out of service",
                   "its repair ends automatically when its case closes");
  if (t->stage == Stage::rma) {
    if (!t->rma->received) t->rma->received = now_;
    Driver(*this).back_from_vendor(*t, fmt::format("{} reports it as repaired", word.who));
  }
  say(word.who, t, "repaired", why(word));
  t->repaired_by = word.who;
  if (t->is_offender) {
    t->is_offender = false;
    t->resolution = Resolution::replaced;
    std::erase_if(machine_.past, [&](const Past& p) { return p.part == name(fabric_, t->part); });
    machine_dirty_ = true;
  }
  Driver(*this).mended(*t);
  return {};
}

Status Repair::rma(std::string_view id, RmaStep step, std::string_view number,
                   const Attribution& word, Timestamp now) {
  advance_clock(now);
  WEFT_TRY(Ticket * t, under_way(id));
  const bool is_without_drain = t->stage == Stage::proposed && !t->has_part();
  const bool is_away = t->stage == Stage::rma;
  if (step != RmaStep::ordered && !is_away)
    return not_now(*t, "nothing is with a vendor", "order it first");
  if (!is_away && !is_without_drain && t->stage != Stage::repairing)
    return not_now(*t, "nothing waits for a person's repair", {});
  if (step == RmaStep::ordered && (number.empty() || number.size() > rma_number_bytes_max ||
                                   find_not_text(number) != std::string_view::npos))
    return fail(Errc::value, {}, "the vendor's number is missing, too long or not text",
                fmt::format("give 1 to {} bytes", rma_number_bytes_max));
  if (step == RmaStep::ordered && !is_away) t->rma = Rma{.ordered = now_, .from = t->stage};
  if (step == RmaStep::ordered) t->rma->number = number;
  if (step == RmaStep::shipped) t->rma->shipped = now_;
  if (step == RmaStep::received) t->rma->received = now_;
  touch(*t);
  say(word.who, t, fmt::format("rma_{}", to_text(step)), why(word).add("number", t->rma->number));
  const std::string reason =
      fmt::format("RMA {} {} by {}", t->rma->number, to_text(step), word.who);
  if (step == RmaStep::received)
    Driver(*this).back_from_vendor(*t, reason);
  else if (!is_away)
    Driver(*this).send_away(*t, reason);
  else
    t->reason = reason;
  return {};
}

Status Repair::hold(std::string_view id, Switch state, const Attribution& word, Timestamp now) {
  advance_clock(now);
  WEFT_TRY(Ticket * t, under_way(id));
  say(word.who, t, state == Switch::on ? "held" : "released", why(word));
  t->is_held = state == Switch::on;
  touch(*t);
  return {};
}

void Repair::set_kill_switch(Switch state, const Attribution& word, Timestamp now) {
  advance_clock(now);
  machine_.kill_switch = state;
  machine_dirty_ = true;
  say(word.who, nullptr, state == Switch::on ? "killed" : "revived", why(word));
}

Status Repair::freeze(Timestamp from, Timestamp until, const Attribution& word, Timestamp now) {
  advance_clock(now);
  if (until <= from) return fail(Errc::value, {}, "the freeze ends before it begins");
  WEFT_TRY_STATUS(check_range(from));
  WEFT_TRY_STATUS(check_range(until));
  if (machine_.freezes.size() >= freezes_max)
    return fail(Errc::infeasible, {}, fmt::format("{} freezes are already set", freezes_max),
                "end some first");
  machine_.freezes.push_back({from, until, word.why, word.who});
  machine_dirty_ = true;
  say(word.who, nullptr, "frozen",
      JsonObject().add("from", from).add("until", until).add("why", word.why));
  return {};
}

Status Repair::thaw(const Attribution& word, Timestamp now) {
  advance_clock(now);
  if (machine_.freezes.empty())
    return fail(Errc::infeasible, {}, "no freeze is set",
                "one of the policy is lifted in the configuration");
  machine_.freezes.clear();
  machine_dirty_ = true;
  say(word.who, nullptr, "thawed", why(word));
  for (const std::string& id : active_) {
    Ticket& t = tickets_.find(id)->second;
    if (t.stage != Stage::blocked || t.refused_by != "freeze") continue;
    t.retry_at = now_;
    touch(t);
  }
  return {};
}

Situation Repair::situation(const Ticket* but) const {
  Situation s{.fabric = &fabric_, .reserve = &reserve_, .policy = &policy_.guards, .now = now_};
  for (const std::string& id : active_) {
    const Ticket& t = tickets_.find(id)->second;
    if (&t == but || is_over(t.stage)) continue;
    if (t.is_reserved)
      s.held.push_back(t.part);
    else if (t.stage != Stage::soaking && t.exonerations == 0 && t.has_open_case() &&
             t.key().kind != EntityKind::none && policy_.problem(t.kind).counts_as_gone)
      s.suspected.push_back(t.key());
  }
  s.suspected.insert(s.suspected.end(), machine_.outside.begin(), machine_.outside.end());
  s.drains.assign(machine_.drains.begin(), machine_.drains.end());
  s.freezes = policy_.freezes;
  s.freezes.insert(s.freezes.end(), machine_.freezes.begin(), machine_.freezes.end());
  s.is_killed = machine_.kill_switch == Switch::on;
  return s;
}

std::vector<Refusal> Repair::refusals(const Entity& part, Timestamp now) const {
  Situation s = situation(nullptr);
  s.now = std::max(now, now_);
  std::erase(s.held, part);
  return all_refusals(s, part);
}

std::vector<Entity> Repair::held() const { return situation(nullptr).held; }
std::vector<Entity> Repair::suspected() const { return situation(nullptr).suspected; }

std::vector<Entity> Repair::moving() const {
  std::vector<Entity> out;
  for (const std::string& id : active_) {
    const Ticket& t = tickets_.find(id)->second;
    if (t.is_reserved && (does_act(t.stage) || t.stage == Stage::forecasting))
      out.push_back(t.part);
  }
  return out;
}

std::map<std::string, std::uint32_t> Repair::repairs_of_parts() const {
  std::map<std::string, std::uint32_t> out;
  for (const Past& past : machine_.past) ++out[past.part];
  return out;
}

const Ticket* Repair::find(std::string_view id) const {
  const auto by_case = ticket_of_case_.find(id);
  const auto at = tickets_.find(by_case != ticket_of_case_.end() ? by_case->second : id);
  return at == tickets_.end() ? nullptr : &at->second;
}

bool Repair::may_act(const Order& order, Timestamp now) const {
  if (order.kind != OrderKind::act) return true;
  const auto at = tickets_.find(order.ticket);
  if (at == tickets_.end()) return false;
  const Ticket& t = at->second;
  if (!t.pending || t.pending->id != order.id || !t.deed) return false;
  Situation s = situation(&t);
  s.now = std::max(now, now_);
  return !Driver::hindrance(t, order.action.kind, s).has_value();
}

Step Repair::step(Timestamp now) {
  advance_clock(now);
  while (!machine_.drains.empty() && machine_.drains.front().t.ns <= now_.ns - ns_per_hour)
    machine_.drains.pop_front();
  Driver driver(*this);
  const std::vector<std::string> ids(active_.begin(), active_.end());
  for (const std::string& id : ids) driver.drive(tickets_.find(id)->second);
  forget_old();
  WEFT_CHECK(active_.size() <= tickets_.size() && ended_.size() <= tickets_.size());
  WEFT_CHECK(active_.size() + ended_.size() >= tickets_.size());
  Step out;
  for (const std::string& id : dirty_)
    if (const auto at = tickets_.find(id); at != tickets_.end())
      out.commit.documents.push_back(document(at->second));
  if (machine_dirty_)
    out.commit.documents.push_back(
        {std::string(document_kind), std::string(machine_id), now_, machine_json()});
  dirty_.clear();
  machine_dirty_ = false;
  out.commit.audit = std::exchange(audit_, {});
  out.orders = std::exchange(orders_, {});
  return out;
}

port::Document Repair::document(const Ticket& ticket) const {
  return {std::string(document_kind), ticket.id, now_, to_json(fabric_, ticket)};
}

// What is over long enough, and returns and freezes that no longer count.
void Repair::forget_old() {
  const std::int64_t before = now_.ns - policy_.timing.remember_ns;
  while (!machine_.past.empty() &&
         machine_.past.front().t.ns <= now_.ns - policy_.guards.offender_ns) {
    machine_.past.pop_front();
    machine_dirty_ = true;
  }
  if (std::erase_if(machine_.freezes, [&](const Freeze& f) { return f.until <= now_; }) > 0)
    machine_dirty_ = true;
  for (auto ended = ended_.begin(); ended != ended_.end() && ended->first.ns <= before;) {
    const std::string& id = ended->second;
    if (active_.contains(id)) {  // people are still to be told
      ++ended;
      continue;
    }
    // A ticket's own list of cases has lost the oldest of very many.
    std::erase_if(ticket_of_case_, [&](const auto& row) { return row.second == id; });
    WEFT_CHECK(tickets_.erase(id) == 1);
    ended = ended_.erase(ended);
  }
}

std::optional<Timestamp> Repair::next_due() const {
  if (!dirty_.empty() || machine_dirty_ || !audit_.empty() || !orders_.empty()) return now_;
  std::optional<Timestamp> due;
  for (const std::string& id : active_) {
    const auto own = Driver::due(*this, tickets_.find(id)->second);
    if (own && (!due || *own < *due)) due = own;
  }
  return due;
}

}  // namespace weft::operate::repair
