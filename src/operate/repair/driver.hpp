// What a step, an outcome or a person's word does to a ticket. Internal to the room.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "operate/repair/repair.hpp"

namespace weft::operate::repair {

class Driver {
 public:
  explicit Driver(Repair& repair) : r_(repair) {}

  // As far as the ticket comes by now: stages, orders, notices.
  void drive(Ticket& t);
  void take(const Outcome& outcome);

  void start_over(Ticket& t, std::string why);  // before anything was done
  void resume(Ticket& t);                       // a person approved
  void give_back(Ticket& t, std::string why);   // a person rejected
  void mended(Ticket& t);                       // a person repaired
  void send_away(Ticket& t, std::string why);   // to its vendor; back_from_vendor() ends that
  void back_from_vendor(Ticket& t, std::string why);
  // Of a ticket that was read from its document: what was under way is taken up.
  void take_up(Ticket& t);

  // What forbids an action whatever the capacity: a hold, the kill switch, a freeze.
  static Verdict hindrance(const Ticket& t, port::ActionKind kind, const Situation& s);
  // When it has something to do without being told.
  static std::optional<Timestamp> due(const Repair& repair, const Ticket& t);

 private:
  Timestamp now() const { return r_.now_; }
  Timestamp in(std::int64_t ns) const { return {r_.now_.ns + ns}; }
  const Problem& problem(const Ticket& t) const { return r_.policy_.problem(t.kind); }
  bool is_due(Timestamp t) const { return t <= r_.now_; }
  bool is_lost(const Pending& pending) const {
    return is_due({pending.since.ns + r_.policy_.timing.order_ns});
  }
  std::string name(const Ticket& t) const;

  // One move, if there is one.
  bool advance(Ticket& t);
  void move(Ticket& t, Stage to, std::string why);
  void close(Ticket& t);

  // Until something is done (decide.cpp).
  bool detected(Ticket& t);
  bool watch(Ticket& t, std::string why);
  bool lost_its_case(Ticket& t);
  bool triaged(Ticket& t);
  bool propose(Ticket& t, std::string why);
  void tell_proposal(Ticket& t);
  bool blocked(Ticket& t);
  bool proposed(Ticket& t);
  bool try_reserve(Ticket& t);
  bool block(Ticket& t, const Refusal& refusal);
  bool forecasting(Ticket& t);
  bool must_check_first(const Ticket& t) const;
  void exonerate(Ticket& t);
  void forecast_known(Ticket& t, const Outcome& outcome);

  // Actions and their confirmation (act.cpp).
  void begin(Ticket& t, port::ActionKind kind, Stage stage, std::string why);
  void undo(Ticket& t, Stage after, std::string why);
  bool work(Ticket& t);
  bool ask(Ticket& t);
  bool draining(Ticket& t);
  void act_done(Ticket& t, const Outcome& outcome);
  void forget_drain(const Ticket& t);
  void looked(Ticket& t, const Outcome& outcome);
  void try_again(Ticket& t, std::string why);
  void confirmed(Ticket& t);
  void gave_up(Ticket& t, std::string why);
  void fail(Ticket& t, Stage retry, std::string why);
  bool failed(Ticket& t);
  Verdict objection(const Ticket& t) const;

  // Test traffic and the way back (verify.cpp).
  bool drained(Ticket& t);
  bool repairing(Ticket& t);
  bool away(Ticket& t);
  bool verifying(Ticket& t);
  bool judge_round(Ticket& t);
  bool passes(const Ticket& t, const port::Check& check) const;
  bool baseline_known(Ticket& t);
  std::uint64_t packets_needed(const Ticket& t) const;
  bool clean(Ticket& t);
  bool soaking(Ticket& t);
  void checked(Ticket& t, const Outcome& outcome);
  void put_off_check(Ticket& t);
  void refute(Ticket& t, std::string found);
  static Timestamp quiet_until(const Repair& repair, const Ticket& t);
  static Timestamp verify_at(const Repair& repair, const Ticket& t);

  // Orders and notices.
  void issue(Ticket& t, OrderKind kind);
  Order order(const Ticket& t, OrderKind kind, std::string id) const;
  void issue_act(Ticket& t);
  void tell(Ticket& t, std::string event, std::string summary) {
    tell_of(t, t.lead().id, std::move(event), std::move(summary));
  }
  void tell_of(Ticket& t, std::string case_id, std::string event, std::string summary);
  void tell_cases(Ticket& t);
  // The part of the time to repair that runs, and when its objective is missed; none where people
  // do not know of the case, or know that.
  struct Objective {
    TtrPart part = TtrPart::drain;
    Timestamp end;
  };
  static std::optional<Objective> objective(const Repair& repair, const Ticket& t);
  void tell_overdue(Ticket& t);
  std::string notice_body(const Ticket& t, const std::string& case_id) const;
  void send_messages(Ticket& t);
  void message_done(Ticket& t, Message& m, const Outcome& outcome);
  void keep_snapshot(Ticket& t);
  void snapshot_done(Ticket& t, const Outcome& outcome);
  void say_outcome(const Ticket& t, const Outcome& outcome, std::string_view what,
                   const JsonObject& detail);

  Repair& r_;
};

}  // namespace weft::operate::repair
