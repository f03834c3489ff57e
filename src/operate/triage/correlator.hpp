// From evidence to cases: the smallest explanation of what is said, in event time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/events/case.hpp"
#include "operate/triage/event_queue.hpp"
#include "operate/triage/evidence.hpp"
#include "operate/triage/learned.hpp"
#include "operate/triage/maintenance.hpp"
#include "operate/triage/parts.hpp"
#include "operate/triage/planned.hpp"
#include "operate/triage/rules.hpp"

namespace weft::operate::triage {

using model::Case;
using model::CaseState;
using model::Relation;

// Counts by what was seen where; small, because every part with evidence has one.
struct Tally {
  std::array<std::uint8_t, 2 * model::source_count> downs{};  // by end and source
  KindMask kinds = 0;
  std::uint32_t records = 0, soft = 0, losses = 0, ups = 0, policies = 0, reasons = 0;
  std::uint32_t light = 0;  // of `soft`: what the optic itself says
  std::uint32_t full = 0;   // queues and pauses at the switch itself
  // The cable to a NIC that most of these are about, by majority vote (Boyer and Moore, 1981).
  PartId focus;
  std::uint32_t votes = 0;

  void add(const Evidence& evidence, Meaning meaning);
  void add(const Tally& other);
  void vote(PartId cable, std::uint32_t count);
  std::uint32_t downs_max() const;
  std::uint32_t observers() const;  // ends and sources that saw it go down
};

// What an onlooker knows of the open cases: a fingerprint of each, by its number.
using Cursor = std::map<std::uint64_t, std::uint64_t>;

// Takes evidence second by second, in order, and hands out each case when it has been quiet for
// long enough that nothing can join it any more.
class Correlator {
 public:
  struct Counts {
    std::uint64_t repeats = 0;    // said before, word for word
    std::uint64_t dismissed = 0;  // evidence too thin for a case
    std::uint64_t cases = 0, merged = 0, moved = 0, split = 0;
    std::uint64_t learned = 0;  // members by learned relations
    std::uint64_t planned = 0;  // effects of orders, and the orders
  };
  using Sink = std::function<void(Case)>;
  // Of records of one part, kind, source and end a case keeps the first and the last `rows`, and
  // counts those between. At least as many as any count of the rules, so that a case which is
  // split is weighed as if all were kept. By default all are kept.
  struct Bounds {
    std::size_t rows = SIZE_MAX / 2;
  };

  Correlator(const Parts& parts, const Suspects& suspects, const Rules& rules,
             const Interpreter& interpreter, const Maintenance& maintenance,
             const LearnedRelations& learned, Sink sink, Bounds bounds);

  // Evidence of one second, sorted by order(); seconds ascend.
  // Cost: O(1) for most; a decision costs the footprints of the causes it weighs.
  void add(const std::vector<Evidence>& second);
  // No evidence before `now` comes any more.
  void advance(std::int64_t now) {
    planned_.forget(now);
    run_timers(now);
  }
  // Decides everything that waits and hands out all cases.
  void finish();
  // The cases that are open, in the order of opening, as things stand.
  std::vector<Case> open_cases(CaseState state) const;
  // An open case under a number that it keeps until it closes or is taken over by another one.
  struct Numbered {
    std::uint64_t number = 0;
    Case body;
  };
  struct News {
    std::vector<Numbered> changed;    // or new, in the order of opening
    std::vector<std::uint64_t> gone;  // ascending
  };
  // What became of the open cases since the onlooker's last call.
  // Cost: O(parts of the open cases), and that of describing those that changed.
  News changes_since(Cursor& known, CaseState state) const;
  // No record with a smaller serial is needed any more. Cost: O(evidence held).
  std::uint64_t oldest_serial() const;
  // Appends the serials of all evidence held. Cost: O(evidence held).
  void append_serials(std::vector<std::uint64_t>& out) const;
  // Nor waits one for a decision.
  std::uint64_t oldest_waiting() const;
  // When advance() may have something to do though no evidence comes; none: never.
  std::optional<std::int64_t> next_timer() const;
  const Counts& counts() const { return counts_; }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  // What is kept of evidence: enough to think it over once more.
  struct Observation {
    std::int64_t at;
    std::uint64_t serial;
    PartId part;
    model::EventKind kind;
    model::Source source;
    std::uint8_t end : 1, is_policy : 1, has_reason : 1, is_indirect : 1, is_window : 1,
        is_repeat : 1;

    Observation(const Evidence& e, bool repeats)
        : at(e.at),
          serial(e.serial),
          part(e.part),
          kind(e.kind),
          source(e.source),
          end(e.end & 1U),
          is_policy(e.is_policy),
          has_reason(e.has_reason),
          is_indirect(e.is_indirect),
          is_window(e.begin < e.at),
          is_repeat(repeats) {}
    // Without the length of its window, and what only congestion has.
    Evidence evidence() const;
  };
  static_assert(sizeof(Observation) == 24);
  // A member by a learned relation. What is said again in its place belongs to it until then.
  struct LearnedMember {
    Observation said;
    std::int64_t until = 0;
    double confidence = 0;
  };
  // Rows that a case counts and does not keep, by what they have in common.
  using Stream = std::tuple<PartId, model::EventKind, model::Source, unsigned>;
  struct Omitted {
    Observation sample;
    std::uint64_t records = 0;
    std::int64_t first = 0, last = 0;
  };
  using OmittedRows = std::map<Stream, Omitted>;
  // Evidence on a part that no case explains yet.
  struct Pending {
    PartId part;
    std::int64_t first = 0, last = 0, due = 0;
    std::int64_t first_down = 0, slack = 0;
    bool has_down = false, is_clear = false, is_alarm = false;
    bool is_up = false;     // the carrier came back
    bool was_held = false;  // for a case that a learned relation may lead to
    Tally tally;
    std::vector<Observation> said;

    std::int64_t onset() const { return has_down ? first_down : first; }
  };
  struct PartState {
    std::uint32_t owner = none;  // the case that explains what is said of the part
    std::uint32_t pending = none;
    std::int64_t last = 0;  // its own evidence in that case
    bool has_spoken = false, was_down = false, is_clear = false;
  };
  struct OpenCase {
    bool is_open = false;
    CauseKind kind = CauseKind::unknown;
    SuspectId suspect;
    PartId root;
    model::Entity entity;
    std::uint64_t change = 0;
    std::uint64_t number = 0;  // order of opening
    std::int64_t onset = 0, last = 0, cleared_at = 0;
    bool is_clear = false;
    double confidence = 0;
    Tally tally;
    std::vector<Observation> members, unexplained;
    std::vector<LearnedMember> led;
    OmittedRows members_omitted, unexplained_omitted, led_omitted;
    std::uint64_t omitted = 0;  // records in these
    std::size_t thin_at = 0;    // rows kept by which thin() looks at them again
    std::vector<PartId> owned;
    bool is_apart = false;         // proven to be no part of what else fails around it
    std::string name, split_from;  // once it was split; else the name follows from its records
  };
  struct Commit {
    std::int64_t at;
    PartId device;
    std::uint64_t change;
    Observation said;
    bool is_taken = false;
  };
  struct Verdict {
    CauseKind kind = CauseKind::unknown;
    SuspectId suspect;  // none for a single part
    double score = -1;
    double runner_up = 0;

    bool is_set() const { return score >= 0; }
  };
  // What a score is made of, as far as opening the case needs it again.
  struct Weighing {
    double score = 0;
    std::uint32_t spoken = 0;
    double direct = 0;  // said of the root itself
  };
  using Timer = std::pair<std::int64_t, std::uint32_t>;
  using Timers = std::priority_queue<Timer, std::vector<Timer>, std::greater<>>;

  // Flow of evidence (correlator.cpp).
  void add_one(const Evidence& evidence, bool is_repeat);
  void add_change(const Evidence& evidence, bool is_repeat);
  // Effects of orders (orders.cpp).
  void add_order(const Evidence& order);
  bool is_planned(const Evidence& evidence) const;
  void forget_planned(PartId part);
  void forget_planned_commits();
  void clear_by_order(PartId part, const Evidence& order);
  Evidence resolve(const Evidence& evidence);
  bool joins(std::uint32_t slot, const Evidence& evidence) const;
  void join(std::uint32_t slot, const Evidence& evidence, bool is_repeat);
  void put_aside(const Evidence& evidence, bool is_repeat);
  std::int64_t due_after(const Pending& pending, const Evidence& evidence) const;
  void schedule(Pending& pending, std::int64_t due);
  void run_timers(std::int64_t now);
  void release(std::uint32_t slot);
  void retire(std::uint32_t slot);
  std::uint32_t open_pending(const Evidence& evidence);
  void close_pending(PartId part);
  void dismiss(PartId part);
  void alarm(PartId part, std::int32_t change);
  void count_recent(std::uint32_t slot);
  void forget_recent(std::int64_t now);
  bool is_live(const OpenCase& c, std::int64_t at) const;
  bool is_live_at(PartId part, std::int64_t at) const;
  bool explains(const OpenCase& c, model::EventKind kind) const;
  std::int64_t quiet_after(const OpenCase& c) const;

  // Learned relations (lead.cpp).
  struct Lead {
    std::uint32_t slot = none;
    std::int64_t at = 0;  // of the reason
    std::int64_t until = 0;
    double confidence = 0;
    std::int64_t wait = 0;  // where there is no such case: one may be decided by then
  };
  void note_reason(const Evidence& evidence);
  Lead find_lead(const Observation& said) const;
  void look_for_lead(const Observation& said, const LearnedRelation& relation,
                     const std::deque<Observation>& reasons, Lead& best) const;
  Lead continued_lead(const Observation& said) const;
  std::uint32_t followed(PartId part) const;
  std::uint32_t holder(const Observation& said) const;
  bool follow(const Observation& said);
  bool follow_lead(PartId part, std::optional<CauseKind> written, std::int64_t now);
  std::size_t reason_row(model::NodeId device) const;
  void follow_unexplained(std::uint32_t slot);

  // Bounded cases (thin.cpp).
  void thin(OpenCase& c) const;
  template <class Row>
  std::uint64_t thin(std::vector<Row>& rows, OmittedRows& omitted) const;
  static void merge(OmittedRows& to, const OmittedRows& from);
  static Stream stream_of(const Observation& said);
  static std::size_t row_count(const OpenCase& c) {
    return c.members.size() + c.unexplained.size() + c.led.size();
  }
  void add_summary(const Omitted& omitted, Relation relation,
                   std::vector<Case::Summary>& out) const;
  void place_omitted(const OpenCase& whole);

  // Cases that turn out to be several (split.cpp).
  void doubt(std::uint32_t slot, const Evidence& evidence);
  bool split_by_leaf(PartId part, CauseKind kind, std::int64_t now);
  bool may_split(const OpenCase& c) const;
  double weigh_without(std::uint32_t slot, std::span<const PartId> apart) const;
  double weigh_ports_without(std::uint32_t slot, std::span<const PartId> apart) const;
  double weigh_lesser(std::uint32_t slot, SuspectId lesser) const;
  void split(std::uint32_t slot, const Verdict& apart, PartId part, std::int64_t now);
  void open_apart(const Verdict& apart, PartId part, std::int64_t now);
  void place_again(const Observation& said);
  void name_split(const OpenCase& whole, std::uint64_t from);

  // Decisions (decide.cpp).
  void decide(PartId part, std::int64_t now);
  void decide_alone(PartId part, std::int64_t now);
  bool hold_blip(Pending& pending, std::int64_t now);
  Verdict weigh(PartId part, const Pending& pending) const;
  Weighing weigh(SuspectId suspect, std::int64_t onset) const;
  double score_max(SuspectId suspect) const;
  double weigh_cable(PartId part, const CauseRule& rule, const Suspects::Suspect& row,
                     SuspectId suspect, std::int64_t onset, Weighing& sum) const;
  double weigh_other(PartId part, const CauseRule& rule, SuspectId suspect, std::int64_t onset,
                     Weighing& sum) const;
  double refund(PartId part, SuspectId suspect, std::int64_t onset) const;
  double score_of_part(SuspectId whole, CauseKind kind, double direct, std::int64_t onset) const;
  // Nats to say which of the ports they were: one by one, or run by run.
  static double price_of_ports(double spoken, double ports, double runs);
  double score_of_lesser(std::span<const PartId> spoken, CauseKind kind, std::int64_t onset) const;
  std::uint32_t lesser_at_once(PartId part, SuspectId whole, std::int64_t onset) const;
  double score_of_case(std::uint32_t slot) const;
  bool is_silenced(PartId part, std::int64_t onset) const;
  bool speaks_at_once(PartId part, std::int64_t onset) const;
  bool speaks(const Pending& pending, const CauseRule& rule, CauseKind kind,
              std::int64_t onset) const;
  bool is_near(const Pending& pending, std::int64_t onset) const;
  bool is_lesser(const OpenCase& c, PartId part, SuspectId suspect, std::int64_t onset) const;
  std::optional<CauseKind> leaf(PartId part, const Pending& pending) const;
  std::optional<CauseKind> leaf_of_cable(PartId part, const Pending& pending) const;
  std::optional<CauseKind> leaf_of_node(PartId part, const Pending& pending) const;
  CauseKind leaf_kind(PartId cable, const Tally& tally) const;

  // Cases (open.cpp).
  std::uint32_t new_case(CauseKind kind, PartId root, model::Entity entity, std::int64_t onset);
  double confidence(const Tally& tally) const;
  void open_leaf(CauseKind kind, PartId part, std::int64_t now);
  void open_suspect(const Verdict& verdict, std::int64_t onset);
  void open_part(const Verdict& verdict, std::int64_t onset);
  bool open_config(PartId part);
  std::uint32_t config_nearby(PartId cable, std::int64_t onset) const;
  void take_sessions(std::uint32_t slot, PartId device);
  const Commit* find_commit(PartId cable, std::int64_t onset) const;
  std::uint32_t config_case(const Commit* commit, std::int64_t onset, PartId device);
  std::uint32_t rename_config(std::uint64_t change, std::int64_t onset);
  void take_commits(std::uint32_t slot);
  enum class Silent : std::uint8_t { leave, own };
  void take(std::uint32_t slot, PartId part, Silent silent);
  void own(std::uint32_t slot, PartId part);
  void absorb_lesser(std::uint32_t slot, std::int64_t onset);
  void promote_racks(std::uint32_t slot);
  void merge_racks(SuspectId scope, const std::vector<std::uint32_t>& dark, std::int64_t onset);
  void absorb(std::uint32_t slot, std::uint32_t lesser);
  void retype(OpenCase& c) const;
  Case describe(const OpenCase& c, CaseState state) const;
  void describe_rows(const OpenCase& c, Case& out) const;
  std::uint64_t fingerprint(const OpenCase& c) const;
  Relation relation(const OpenCase& c, const Observation& said) const;
  static const Observation* first_member(const OpenCase& c);
  std::string name_of(const OpenCase& c) const;

  const Parts& parts_;
  const Suspects& suspects_;
  const Rules& rules_;
  const Interpreter& interpreter_;
  const Maintenance& maintenance_;
  const LearnedRelations& learned_;
  PlannedChanges planned_;
  Sink sink_;
  const Bounds bounds_;
  KindMask down_, session_, silence_, alarming_;
  std::vector<PartState> states_;  // by PartId
  std::vector<Pending> pendings_;
  std::vector<std::uint32_t> free_pendings_;
  std::vector<OpenCase> cases_;
  std::vector<std::uint32_t> free_cases_;
  std::map<std::uint64_t, std::uint32_t> by_number_;  // of the open cases
  std::vector<std::uint32_t> case_of_suspect_;
  std::deque<Commit> commits_;
  std::vector<std::pair<std::int64_t, PartId>> last_paused_;  // by NodeId: when and by whom
  Timers part_timers_, case_timers_;
  // By SuspectId: pending alarms in the footprint, and cases that began there not long ago. Most
  // suspects have too few of both to be worth weighing.
  std::vector<std::uint32_t> alarms_, recents_;
  std::deque<std::pair<std::int64_t, PartId>> recent_roots_;
  std::array<double, cause_kind_count> worth_max_{};  // of one alarm, at most
  double price_max_ = 0;
  // With learned relations: what may lead to others, by the device that said it, not older than
  // that matters; what is said of scopes stands last.
  std::vector<std::deque<Observation>> reasons_;
  // By PartId: 1 and the number of the case that what was said there last followed; 0: none did.
  std::vector<std::uint64_t> followed_;
  std::vector<std::uint32_t> to_follow_;  // cases with something new that is not explained
  bool is_splitting_ = false;
  std::uint64_t next_number_ = 0;
  Counts counts_;
};

}  // namespace weft::operate::triage
