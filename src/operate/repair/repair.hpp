// The state machine that turns cases into safe, audited repairs.
//
// It does nothing itself: no clock, no I/O, no threads. The caller tells it what is known, asks for
// the next step, makes the step's commit durable, and only then performs its orders:
//
//   repair.see(c, now);                    // any number of these, and of outcome() and people
//   Step step = repair.step(now);
//   store.commit(step.commit);             // fails: try the same commit again, or start anew with
//   for (Order& o : step.orders) ...       // restore(); perform nothing before it succeeded
//   repair.outcome({o.id, ...}, now);      // of every order, failed or not, in any order
//
// No call has an effect that lasts before the next step() has been committed. Orders are idempotent
// by id. The same calls give the same steps, and a machine restored from its documents goes on like
// the one that wrote them, but for acts whose result was not known: these are looked at first.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_text.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/events/case.hpp"
#include "model/fabric/fabric.hpp"
#include "operate/repair/audit.hpp"
#include "operate/repair/guards.hpp"
#include "operate/repair/policy.hpp"
#include "operate/repair/reserve.hpp"
#include "operate/repair/ticket.hpp"
#include "port/actuator.hpp"
#include "port/notifier.hpp"
#include "port/store.hpp"

namespace weft::operate::repair {

// What the caller is to do. Fields beyond the first four are those of its kind.
struct Order {
  std::string id;  // "17.3"; the same when it is given again after a restart
  OrderKind kind = OrderKind::look;
  std::string ticket, case_id;
  std::string entity;  // of act, look, check, forecast and snapshot: a name of the fabric
  // act: port::Actuator::act(action). Just before, ask may_act(): the world may have changed since.
  port::Action action;
  // check: test traffic until about so many packets went over the entity; with these flows among
  // it, which were lost there (the caller knows them).
  std::uint64_t packets = 0;
  std::vector<port::Flow> flows;
  // forecast: what does it cost the jobs if `entity` is drained while `out` is out of service?
  std::vector<std::string> out;
  // notify
  port::Notice notice;
};

// What became of an order. Of an act an error of Errc::io leaves open whether it had an effect,
// any other says that it had none. An act that may_act() stopped is reported with
// Errc::infeasible. Of a check, Errc::unsupported says that there is no means, and people have to
// confirm repairs.
struct Outcome {
  std::string order;
  std::optional<Error> error = {};
  port::Service service = port::Service::unknown;  // of look
  port::Check check = {};
  Forecast forecast = {};
  std::string note = {};  // for the audit log: a snapshot's manifest, ...
};

struct Step {
  port::Commit commit;
  std::vector<Order> orders;
  bool empty() const;
};

enum class Switch : std::uint8_t { off, on };

// Who wants something, and why.
struct Attribution {
  std::string who, why;
};

class Repair {
 public:
  // `fabric` must outlive the machine. Cost: O(links).
  Repair(const model::Fabric& fabric, Policy policy);

  static constexpr std::string_view document_kind = "repair";
  // The document of what belongs to no ticket: kill switch, freezes, history of parts.
  static constexpr std::string_view machine_id = "@machine";

  // Goes on where the documents of kind "repair" say, in any order; only before anything else.
  // Orders without a known result are given again by the next step(), acts are looked at instead.
  // Fails: Errc::parse, Errc::unknown with the document's id; the machine is of no use then.
  Status restore(std::span<const port::Document> documents, Timestamp now);

  // The latest word on a case: new, changed, or closed (`closed` set, or in maintenance). What is
  // unchanged changes nothing. Cost: some microseconds, and O(tickets under way) for a new case.
  void see(const model::Case& c, Timestamp now);
  // The case is no more: it has become part of `into`, or was withdrawn ("").
  void retract(std::string_view case_id, std::string_view into, Timestamp now);
  // Cases that tickets follow and that were open when last seen: after a restart, those of them
  // that triage does not know any more are to be retracted.
  std::vector<std::string> open_cases() const;
  // Parts that others have taken out of service, all of them: they are not relied on.
  void set_outside(std::vector<Entity> out, Timestamp now);

  // Results of unknown or given-up orders are written down and otherwise ignored.
  void outcome(const Outcome& outcome, Timestamp now);

  // People's words; `id` is that of a case or a ticket.
  // Fails: Errc::unknown for an id without a ticket under way; Errc::infeasible with what the
  // ticket is at instead.
  Status approve(std::string_view id, const Attribution& word, Timestamp now);
  // No to a proposal or a blocked drain; of a drain under way or done: take it back. The case is
  // left alone until it closes.
  Status reject(std::string_view id, const Attribution& word, Timestamp now);
  // The part was mended (of a repeat offender: replaced): verify it.
  Status repaired(std::string_view id, const Attribution& word, Timestamp now);
  // The part goes back to its vendor under the vendor's number, is on its way, or its replacement
  // is there: from `ordered` to `received` (or repaired()) the repair waits for that. `ordered`
  // again changes the number. Fails: as repaired(); Errc::value for a number that is none.
  Status rma(std::string_view id, RmaStep step, std::string_view number, const Attribution& word,
             Timestamp now);
  // On: nothing is done to the part any more, whatever happens; looks and checks go on.
  Status hold(std::string_view id, Switch state, const Attribution& word, Timestamp now);
  // On: no act is ordered from now on, and may_act() forbids those that were; undrains only where
  // the policy allows them.
  void set_kill_switch(Switch state, const Attribution& word, Timestamp now);
  // No new drains in [from, until). Fails: Errc::value for an empty window and for times beyond
  // time_ns_max, Errc::infeasible for more than 1,000 of them.
  Status freeze(Timestamp from, Timestamp until, const Attribution& word, Timestamp now);
  // Ends all windows that people set, now or in future; drains that waited for them are tried again
  // at once. Fails: Errc::infeasible without such a window.
  Status thaw(const Attribution& word, Timestamp now);

  // Everything that is due by `now`. Deterministic. Cost: O(tickets under way) and, for each drain
  // that is considered, O(links).
  Step step(Timestamp now);
  // When step() has something to do without being told anything; none: never.
  std::optional<Timestamp> next_due() const;

  // Whether an act that was ordered still may be done: not under the kill switch, a hold or a
  // freeze that came since, and not when the order was given up. True for all other kinds.
  bool may_act(const Order& order, Timestamp now) const;

  // The ticket of that id, or the last one of the case of that id; nullptr when there is none.
  const Ticket* find(std::string_view id) const;
  // All that are remembered, in order of id.
  const std::map<std::string, Ticket, std::less<>>& tickets() const { return tickets_; }
  Switch kill_switch() const { return machine_.kill_switch; }
  const std::vector<Freeze>& freezes() const { return machine_.freezes; }
  const Policy& policy() const { return policy_; }
  const Reserve& reserve() const { return reserve_; }
  const model::Fabric& fabric() const { return fabric_; }
  // Why a drain of `part` would be refused now: all guards' words; empty: it would not.
  std::vector<Refusal> refusals(const Entity& part, Timestamp now) const;
  // Parts that count as out by our hands, and those that are suspected or out by others'.
  std::vector<Entity> held() const;
  std::vector<Entity> suspected() const;
  // Of held(): those whose drain or return is under way, so that routes may or may not avoid them.
  std::vector<Entity> moving() const;
  // Repairs of each part that are remembered, by name: its history as an offender.
  std::map<std::string, std::uint32_t> repairs_of_parts() const;

 private:
  friend class Driver;  // what a step does to each ticket

  // A return to service.
  struct Past {
    Timestamp t;
    std::string part;
    friend bool operator==(const Past&, const Past&) = default;
  };
  // What belongs to no ticket.
  struct Machine {
    Switch kill_switch = Switch::off;
    std::uint64_t serial = 0;  // of the newest ticket
    std::vector<Freeze> freezes;
    std::deque<PastDrain> drains;  // of the last hour
    std::deque<Past> past;         // within the offender window
    std::vector<Entity> outside;
    std::set<std::string, std::less<>> muted;  // rejected cases that are still open
  };

  const model::Fabric& fabric_;
  Policy policy_;
  Reserve reserve_;
  Machine machine_;
  std::map<std::string, Ticket, std::less<>> tickets_;
  std::set<std::string, std::less<>> active_;          // tickets that are not over
  std::set<std::pair<Timestamp, std::string>> ended_;  // those that are
  std::map<std::string, std::string, std::less<>> ticket_of_case_;
  std::set<std::string, std::less<>> dirty_;
  bool machine_dirty_ = false;
  std::vector<port::AuditEntry> audit_;
  std::vector<Order> orders_;
  Timestamp now_;

  void advance_clock(Timestamp now) { now_ = now > now_ ? now : now_; }
  // What a case would have drained; of kind none where there is nothing, or the policy has nothing.
  Entity part_of(CauseKind kind, const Entity& root) const;
  // Until when a part that is drained now is kept out: longer each time it fails again.
  std::optional<Timestamp> hold_until(const Entity& part) const;
  // Whether the case is about what the ticket is about.
  bool is_about(const Ticket& ticket, const model::Case& c) const;
  Ticket* under_way_about(const model::Case& c);
  Result<Ticket*> under_way(std::string_view id);
  void open_ticket(const model::Case& c);
  // The case joins, or what is known of it changes.
  void follow(Ticket& ticket, const model::Case& c);
  void place(const model::Case& c);
  void let_go(Ticket& ticket, std::string_view case_id);
  Followed* followed(std::string_view case_id);
  void end_case(std::string_view case_id);
  bool is_believable(const Followed& c) const;
  void retarget(Ticket& ticket);
  Situation situation(const Ticket* but) const;
  // An entry for the audit log.
  void say(std::string_view actor, const Ticket* ticket, std::string_view action,
           const JsonObject& detail);
  // "" of no part.
  std::string name_or_none(const Entity& e) const;
  Subject subject_of(const Ticket& t) const;
  void touch(const Ticket& ticket) { dirty_.insert(ticket.id); }
  void forget_old();
  std::string machine_json() const;
  Status read_machine(std::string_view json);
  port::Document document(const Ticket& ticket) const;
};

}  // namespace weft::operate::repair
