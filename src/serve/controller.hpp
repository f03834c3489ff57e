// Where everything meets: what is told, what it means, what is done about it, and what is kept.
//
// The controller has no thread and no clock of its own. What it acknowledges, publishes or orders
// is in the store before; a new controller on the same store goes on where the last one ended,
// however it ended.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operate/health/book.hpp"
#include "operate/repair/capacity_watch.hpp"
#include "operate/repair/repair.hpp"
#include "operate/triage/triage.hpp"
#include "port/store.hpp"
#include "serve/case_publisher.hpp"
#include "serve/failing_flows.hpp"
#include "serve/handling.hpp"
#include "serve/intake.hpp"
#include "serve/past.hpp"
#include "serve/probe_monitor.hpp"
#include "serve/service.hpp"
#include "serve/views.hpp"

namespace weft::serve {

struct ControllerSettings {
  ProvisionalSettings provisional;
  ProbeMonitorSettings probe_monitor;
  // Events that are read again at the start, at least: longer than faults talk. Open cases reach
  // back as far as they need.
  std::int64_t replay_ns = 21'600 * ns_per_s;
  std::int64_t events_ns = 604'800 * ns_per_s;    // a week; events are kept so long
  std::int64_t cases_ns = 34'560'000 * ns_per_s;  // 400 days; and manifests of snapshots
};

class Controller {
 public:
  // All must outlive the controller. `provisional` has provisional_rules() of the rules of
  // `settled`.
  struct Context {
    const model::Fabric& fabric;
    const observe::telemetry::Inventory& inventory;
    const observe::telemetry::Catalogue& catalogue;
    const operate::triage::Context& settled;
    const operate::triage::Context& provisional;
  };
  Controller(const Context& context, const ControllerSettings& settings,
             operate::repair::Policy policy, port::Store& store);

  // Reads what the store knows; before anything else. Fails: Errc::io, and what is wrong about
  // documents that were written by nobody of this version.
  // `is_cancelled` is asked now and then; once it is true, restore() returns at once and the
  // controller can only be destroyed. Cost: that of reading the events of `replay_ns`.
  Status restore(Timestamp now, const std::function<bool()>& is_cancelled = {});

  struct Batch {
    Feed feed = Feed::record;
    std::vector<std::string> lines;
    std::string sender;
  };
  // All batches in one commit; a receipt for each. Fails: Errc::io, and nothing was taken.
  Result<std::vector<Receipt>> accept(std::span<const Batch> batches, Timestamp now);

  // Everything that is due: verdicts about links, cases, repairs. Orders are to be carried out, and
  // each is to have its outcome. Fails: Errc::io; the next call tries the same again.
  Result<std::vector<operate::repair::Order>> tick(Timestamp now);
  // When tick() has something to do though nobody says or asks anything; none: never.
  // Cost: O(repairs under way).
  std::optional<Timestamp> next_due() const;
  void outcome(const operate::repair::Outcome& outcome, Timestamp now);
  bool may_act(const operate::repair::Order& order, Timestamp now) const {
    return repair_.may_act(order, now);
  }

  // A snapshot was taken of a case: JSON of where it is.
  void keep_snapshot(const std::string& case_id, std::string json, Timestamp now);

  Status command(const Command& command, Timestamp now);

  // The case as it stands; none for what is over and forgotten.
  std::optional<model::Case> find_case(const std::string& id) const { return publisher_.find(id); }

  std::size_t open_count() const { return open_.size(); }
  // Ids of those that are not over.
  std::vector<std::string> open_cases() const;
  // Times to repair, by problem type and part, and who comes back, as JSON.
  std::string ledger() const;

  // What was made public since the last call.
  std::vector<Announcement> announcements() { return std::exchange(announcements_, {}); }
  std::string metrics(Timestamp now) const;
  std::string view(View view, Timestamp now) const;
  // Parts that are drained, by us or by orders of others.
  std::vector<model::Entity> out_of_service(Timestamp now) const;
  // Links that are not well, by what feeds said and what is out of service.
  operate::health::Conditions link_conditions(Timestamp now) const;
  // What probes met in the last `localise.keep`.
  model::EvidenceSet recent_evidence() const { return probe_monitor_.recent(); }
  // As Service has it; reads events from number `event` on. Any thread.
  Result<std::string> records(const RecordWish& wish, std::uint64_t event) const {
    return records_view({context_.fabric, context_.inventory, context_.catalogue}, store_, wish,
                        event);
  }
  // The network as it was at `at`, by reading the log again with the code that reads it at a start.
  // `open`: open_cases() of `now`. Any thread, beside all other calls. Cost: that of reading the
  // events of `replay_ns` before the oldest case that changed since, at most 2,000,000 of them.
  // Fails: Errc::value for an instant that the log does not reach; Errc::io.
  Result<std::unique_ptr<const Past>> past(Timestamp at, Timestamp now,
                                           const std::vector<std::string>& open,
                                           const IsCancelled& is_cancelled) const;
  const operate::repair::Repair& repair() const { return repair_; }
  // A number at or before that of the first event received at or after `t`.
  std::uint64_t event_before(Timestamp t) const;

 private:
  Status restore_cases();
  Status replay(Timestamp now, const std::function<bool()>& is_cancelled);
  void learn(std::span<const port::StoredEvent> events, Timestamp now);
  void mark(std::uint64_t seq, Timestamp received);
  void take_changes(Timestamp now);
  void take(const CaseStatus& standing, Timestamp now);
  void note(const CaseStatus& standing, Timestamp now);
  void announce_order(const operate::repair::Order& order, Timestamp now);
  void announce_ends(Timestamp now);
  void announce_again(Timestamp now);
  // Racks that several faults leave with too few uplinks, or that have enough again.
  void announce_capacity(Timestamp now);
  Status handle(const Command& command, Timestamp now);
  void note_orders(const Numbered& said);
  // Tells the probe monitor which parts are drained, by us or by orders of others.
  void note_out_of_service(Timestamp now);
  Status commit_pending();
  Status tidy(Timestamp now);
  Timestamp forgettable(Timestamp now) const;
  // Of a controller that only looks back. Cases as they were published, by id.
  struct LookedBack {
    std::map<std::string, port::Document> cases;
    std::uint64_t events = 0;
    Timestamp from;
  };
  // `whole_from`: nothing is missing of cases that began since; none: that is not known before.
  Result<LookedBack> look_back(std::uint64_t from, std::optional<Timestamp> whole_from,
                               Timestamp at, const IsCancelled& is_cancelled);
  void publish_past(Timestamp now, LookedBack& out);
  void publish_past_until(Timestamp t, LookedBack& out);
  NetworkView network(Timestamp now) const;
  // Parts that orders took out, by what the log says.
  std::vector<model::Entity> ordered_out() const;

  const Context context_;
  ControllerSettings settings_;
  port::Store& store_;
  Intake intake_;
  CasePublisher publisher_;
  ProbeMonitor probe_monitor_;
  operate::repair::Repair repair_;
  operate::repair::CapacityWatch capacity_watch_;
  Handlings handlings_;
  // What waits for the store: documents, audit and the orders that depend on them.
  port::Commit pending_;
  std::vector<operate::repair::Order> orders_;
  std::vector<Announcement> announcements_pending_, announcements_;
  std::map<std::string, CaseStatus::State> open_;          // cases that are not over
  std::deque<std::pair<Timestamp, std::uint64_t>> marks_;  // events by time of receipt
  // Parts that we ordered out, and not back since: when, and when that was last said.
  struct OrderedOut {
    Timestamp ordered, said;
  };
  std::map<std::string, OrderedOut> ordered_out_;
  std::vector<std::pair<model::Entity, Timestamp>> out_by_others_;  // until when
  struct OutOfService {
    std::vector<model::Entity> all, moving;
    friend bool operator==(const OutOfService&, const OutOfService&) = default;
  };
  OutOfService told_out_;  // as the probe monitor knows it
  FailingFlows failing_;
  FeedLog feeds_;
  operate::health::Book health_;
  std::uint64_t replay_from_ = 1, forgotten_ = 1;
  // While restoring: cases of before may lack records that were not read, and are no news.
  Timestamp truncated_before_{std::numeric_limits<std::int64_t>::min()};
  Timestamp tidied_, updated_;
  bool is_restoring_ = false, is_looking_back_ = false;
  struct Counts {
    std::uint64_t commits = 0, failures = 0, events = 0, orders = 0, cases = 0;
    std::uint64_t evidence_late = 0, evidence_ahead = 0;  // rows that were not looked at
  } counts_;
};

}  // namespace weft::serve
