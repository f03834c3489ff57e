// A ticket: one part of the fabric on its way from suspicion back to service.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/events/case.hpp"
#include "model/events/entity.hpp"
#include "model/fabric/fabric.hpp"
#include "operate/repair/policy.hpp"
#include "port/actuator.hpp"

namespace weft::operate::repair {

using model::Entity;

// Spans of documents are added to each other: a bound that cannot overflow, some 31 years.
inline constexpr std::int64_t spent_ns_max = 1'000'000'000'000'000'000;

// detected > triaged > [forecasting] > draining > drained > repairing > verifying > returning >
// soaking > returned is the way of all that goes well; a part that goes back to its vendor is in
// rma between repairing and repairing.
enum class Stage : std::uint8_t {
  detected,     // a case, not to be believed yet
  watched,      // policy only observes, confidence is low, or maintenance explains it
  triaged,      // to be believed; what to do is decided at once
  proposed,     // waits for a person
  blocked,      // a guard refuses; `reason` says why, `retry_at` when it is tried again
  forecasting,  // its capacity is reserved; what does it cost the jobs?
  draining,     // asked for, and not confirmed by the network's state
  drained,      // confirmed; does test traffic show the fault?
  repairing,    // for people, who were told
  verifying,    // test traffic must come through clean
  returning,    // undrain asked for, and not confirmed
  soaking,      // in service again, under watch
  undoing,      // a drain that failed or lost its reason is taken back
  failed,       // needs a person
  rma,          // with its vendor
  returned,     // over: in service
  rolled_back,  // over: in service, and the drain was not what it took
  closed,       // over: nothing was done
};
inline constexpr auto stage_names = std::to_array<std::string_view>(
    {"detected", "watched", "triaged", "proposed", "blocked", "forecasting", "draining", "drained",
     "repairing", "verifying", "returning", "soaking", "undoing", "failed", "rma", "returned",
     "rolled_back", "closed"});
inline constexpr std::size_t stage_count = stage_names.size();
constexpr std::span<const std::string_view> names_of(Stage) { return stage_names; }
constexpr std::string_view to_text(Stage stage) { return name_of(stage); }
constexpr bool is_over(Stage s) { return s >= Stage::returned; }
// An action is under way.
constexpr bool does_act(Stage s) {
  return s == Stage::draining || s == Stage::returning || s == Stage::undoing;
}
// Nothing has been done to the part yet.
constexpr bool is_before_act(Stage s) { return s <= Stage::forecasting; }

enum class Resolution : std::uint8_t {
  none,
  repaired,        // the fault was seen, or a person mended it, and it is gone
  replaced,        // a repeat offender, by a person
  no_fault_found,  // drained, and test traffic never showed anything
  healed,          // by itself, before anything was done
  moved,           // another part turned out to be the cause
  rejected,        // by a person
  observed,        // the policy wanted no more
};
inline constexpr auto resolution_names = std::to_array<std::string_view>(
    {"none", "repaired", "replaced", "no_fault_found", "healed", "moved", "rejected", "observed"});
inline constexpr std::size_t resolution_count = resolution_names.size();
constexpr std::span<const std::string_view> names_of(Resolution) { return resolution_names; }
constexpr std::string_view to_text(Resolution resolution) { return name_of(resolution); }

// What the fluid engine says of a drain.
struct Forecast {
  std::uint32_t jobs = 0, stalled = 0;
  double slowdown_max = 1;  // of the worst job that still runs: its time with over without
  std::string worst;        // that job's name
  friend bool operator==(const Forecast&, const Forecast&) = default;
};

enum class OrderKind : std::uint8_t { act, look, check, forecast, snapshot, notify };
inline constexpr auto order_kind_names =
    std::to_array<std::string_view>({"act", "look", "check", "forecast", "snapshot", "notify"});
constexpr std::span<const std::string_view> names_of(OrderKind) { return order_kind_names; }
constexpr std::string_view to_text(OrderKind kind) { return name_of(kind); }

// A case that a ticket follows, as last seen.
struct Followed {
  std::string id;
  CauseKind kind = CauseKind::unknown;
  Entity root;
  model::CaseState state = model::CaseState::provisional;
  double confidence = 0;
  Timestamp opened;  // first evidence
  bool is_open = true;
  bool is_moved = false;   // it turned out to be about another part, or to be none
  bool is_probed = false;  // it rests on lost probes alone: no device says anything is wrong
  std::string told = {};   // its cause, as people were told; "": they know of no open case
  friend bool operator==(const Followed&, const Followed&) = default;
};

// An action under way.
struct ActionAttempt {
  enum class Phase : std::uint8_t {
    ask,      // to be ordered as soon as it may
    asked,    // ordered, no result yet
    confirm,  // taken; the state must show it
    doubt,    // nobody knows whether it was taken: the state decides
  };
  port::ActionKind kind = port::ActionKind::drain;
  std::string id;  // port::Action::id
  Phase phase = Phase::ask;
  std::uint32_t tries = 0;
  Timestamp since;  // of the phase
  friend bool operator==(const ActionAttempt&, const ActionAttempt&) = default;
};
inline constexpr auto phase_names =
    std::to_array<std::string_view>({"ask", "asked", "confirm", "doubt"});
constexpr std::span<const std::string_view> names_of(ActionAttempt::Phase) { return phase_names; }
constexpr std::string_view to_text(ActionAttempt::Phase phase) { return name_of(phase); }

// An order whose result is awaited.
struct Pending {
  std::string id;
  OrderKind kind = OrderKind::look;
  Timestamp since;
  friend bool operator==(const Pending&, const Pending&) = default;
};

// A return of the part to its vendor, step by step.
enum class RmaStep : std::uint8_t { ordered, shipped, received };
inline constexpr auto rma_step_names =
    std::to_array<std::string_view>({"ordered", "shipped", "received"});
constexpr std::span<const std::string_view> names_of(RmaStep) { return rma_step_names; }
constexpr std::string_view to_text(RmaStep step) { return name_of(step); }

struct Rma {
  std::string number;  // the vendor's
  Timestamp ordered;
  std::optional<Timestamp> shipped, received;  // the old part; the new one
  Stage from = Stage::repairing;               // where the repair goes on
  friend bool operator==(const Rma&, const Rma&) = default;
};
inline constexpr std::size_t rma_number_bytes_max = 128;

// Something people are to be told.
struct Message {
  std::string id, case_id, event, summary;
  std::uint32_t tries = 0;
  Timestamp due;
  bool is_pending = false;
  friend bool operator==(const Message&, const Message&) = default;
};

struct Ticket {
  std::string id;            // that of its first case and its serial: "C/17"
  std::uint64_t serial = 0;  // never used again
  std::uint64_t orders = 0;  // given so far
  CauseKind kind = CauseKind::unknown;
  Entity root;
  Entity part;  // what is drained; of kind none: nothing can or may be
  std::vector<Followed> cases;

  Stage stage = Stage::detected;
  Timestamp since;  // of the stage
  Timestamp opened, seen;
  std::string reason;  // of the stage, in words
  std::optional<Timestamp> retry_at;
  Resolution resolution = Resolution::none;
  std::array<std::int64_t, ttr_part_count> spent_ns{};  // of the stages left so far

  bool is_reserved = false;   // its part counts as out of service by our hands
  bool was_drained = false;   // ever
  bool is_rejected = false;   // by a person
  bool has_relapsed = false;  // evidence came since it was returned
  bool is_offender = false;   // repaired too often: to be replaced
  bool is_held = false;       // a person wants nothing to be done
  bool no_means = false;      // test traffic cannot be sent over it
  std::string approved_by, repaired_by;
  port::Service service = port::Service::unknown;  // as last seen
  std::optional<ActionAttempt> deed;
  Stage after_undo = Stage::rolled_back;
  Stage retry = Stage::triaged;  // where a person's approval leads from `failed`
  std::string refused_by;        // the guard that people were told of last
  // Checks in a row, before it is drained, that found nothing wrong with it.
  std::uint32_t exonerations = 0;
  std::optional<Timestamp> held_until;  // out of service at least so long: it failed again
  std::optional<Pending> pending;
  std::optional<Pending> snapshot;
  std::uint32_t snapshot_tries = 0;
  Timestamp look_at;
  std::optional<Forecast> forecast;
  port::Check baseline, verify;     // first check after the drain; the round under way
  port::Check loss;                 // of all checks that lost packets: how rare the loss is
  std::uint32_t checks_failed = 0;  // in a row, without a result
  std::uint32_t verifications = 0;  // that found losses
  Timestamp check_at;               // the next one nobody asked for
  Timestamp told_at;                // last evidence while it is out, where it has to be quiet
  std::uint32_t rollbacks = 0;
  std::optional<Timestamp> drained_at, returned_at, ended;
  std::vector<Message> messages;
  std::optional<Rma> rma;     // the last one
  std::uint32_t overdue = 0;  // bit i: people were told that TtrPart i missed its objective

  bool has_part() const { return part.kind != model::EntityKind::none; }
  // What it stands for among others: its part, or the root where nothing can be drained.
  const Entity& key() const { return has_part() ? part : root; }
  bool has_open_case() const;
  // All its cases are about something else by now.
  bool is_orphan() const;
  // The case that says what it is about: the first that is open, or else the last.
  const Followed& lead() const;
  friend bool operator==(const Ticket&, const Ticket&) = default;
};

// Whether a ticket of that stage holds capacity. One that failed may, until its part is seen back.
bool needs_reserve(const Ticket& ticket, Stage stage);

// The part of the time to repair that a stage belongs to; none of what is soaking or over. Where
// nothing is drained, waiting for a person is repair. `next`: the stage that followed, if it is
// over: a verification after which the repair goes on is repair.
std::optional<TtrPart> ttr_part(const Ticket& ticket, Stage stage, std::optional<Stage> next = {});

// All of it as one JSON object, and the same back: parts by name. Fails: Errc::parse, Errc::unknown
// for parts that this fabric does not have.
std::string to_json(const model::Fabric& fabric, const Ticket& ticket);
std::string ticket_schema();  // the JSON Schema of that
Result<Ticket> read_ticket(const model::Fabric& fabric, std::string_view json);

}  // namespace weft::operate::repair
