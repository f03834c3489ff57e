#include "serve/controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "base/json_line.hpp"
#include "base/json_text.hpp"
#include "model/events/case.hpp"
#include "model/events/entity.hpp"
#include "operate/repair/repair_stats.hpp"
#include "operate/repair/what_if.hpp"
#include "serve/listing.hpp"

namespace weft::serve {

namespace repair = operate::repair;

namespace {

constexpr std::string_view snapshot_kind = "snapshot";
constexpr std::string_view controller_kind = "controller", replay_id = "replay";
constexpr std::int64_t mark_every_ns = ns_per_minute;
constexpr std::int64_t tidy_every_ns = ns_per_minute;
// Cases of records that reach further back than what was replayed begin so soon after its start.
constexpr std::int64_t truncated_ns = 10 * ns_per_minute;

// A record that the service itself makes: of what becomes of its orders, and of its fabric.
port::StoredEvent record_of_ours(Timestamp now, std::string_view id, Timestamp t,
                                 std::string_view entity, model::EventKind kind,
                                 const JsonObject& attrs,
                                 std::optional<double> value = std::nullopt) {
  JsonObject out;
  out.add("id", id)
      .add("t", t)
      .add("source", model::Source::controller)
      .add("entity", entity)
      .add("kind", kind);
  if (value) out.add("value", *value, decimals(4));
  return {0, now, "record", out.add("attrs", attrs).text()};
}

// How much was forgotten is of no interest.
Status done(const Result<std::uint64_t>& forgotten) {
  if (!forgotten) return std::unexpected(forgotten.error());
  return {};
}

}  // namespace

Controller::Controller(const Context& context, const ControllerSettings& settings,
                       repair::Policy policy, port::Store& store)
    : context_(context),
      settings_(settings),
      store_(store),
      intake_(context.fabric, context.inventory, context.catalogue),
      publisher_(context.settled, context.provisional),
      probe_monitor_(context.fabric, settings.probe_monitor),
      repair_(context.fabric, std::move(policy)),
      capacity_watch_(context.fabric, repair_.reserve(), repair_.policy()),
      failing_(context.fabric),
      feeds_(context.fabric),
      health_(context.fabric) {}

Status Controller::restore(Timestamp now, const std::function<bool()>& is_cancelled) {
  WEFT_TRY_STATUS(restore_cases());
  WEFT_TRY(const auto repairs,
           store_.documents(repair::Repair::document_kind, end_of_time, SIZE_MAX));
  WEFT_TRY_STATUS(repair_.restore(repairs, now));
  WEFT_TRY(const auto handlings, store_.documents(handling_kind, end_of_time, SIZE_MAX));
  WEFT_TRY_STATUS(handlings_.restore(handlings));
  WEFT_TRY_STATUS(replay(now, is_cancelled));
  is_restoring_ = true;
  publisher_.advance(now);
  take_changes(now);
  for (const CaseStatus& standing : publisher_.withdraw_stale()) take(standing, now);
  is_restoring_ = false;
  for (const std::string& id : repair_.open_cases())
    if (!open_.contains(id)) repair_.retract(id, "", now);
  return {};
}

Status Controller::restore_cases() {
  WEFT_TRY(const auto documents, store_.documents(case_kind, end_of_time, SIZE_MAX));
  // Oldest first, as they came to be.
  for (auto at = documents.rbegin(); at != documents.rend(); ++at) {
    const auto state = publisher_.restore(at->id, at->body);
    if (!state)
      return fail(Errc::parse, {}, fmt::format("case {} in the store has no state", quote(at->id)),
                  "the store was modified by another program; restore a backup");
    if (!is_over(*state)) open_[at->id] = *state;
  }
  return {};
}

Status Controller::replay(Timestamp now, const std::function<bool()>& is_cancelled) {
  if (const auto known = store_.document(controller_kind, replay_id)) {
    WEFT_TRY(const JsonLine line, JsonLine::parse(known->body, {"the store's replay mark", 0, 0}));
    Errors errors;
    replay_from_ = static_cast<std::uint64_t>(
        line.count("from", {}, 1, std::numeric_limits<std::int64_t>::max(), errors));
    if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  } else if (known.error().code != Errc::unknown) {
    return std::unexpected(known.error());
  }
  for (std::uint64_t from = replay_from_;;) {
    if (is_cancelled && is_cancelled()) return fail(Errc::io, {}, "cancelled");
    WEFT_TRY(const auto events, store_.events(from, event_rows));
    if (events.empty()) return {};
    if (from == replay_from_ && replay_from_ > 1)
      truncated_before_ = {events.front().received.ns + truncated_ns};
    from = events.back().seq + 1;
    // As they came: what was too late then is too late now.
    for (std::size_t i = 0, end = 0; i < events.size(); i = end) {
      while (end < events.size() && events[end].received == events[i].received) ++end;
      learn(std::span(events).subspan(i, end - i), now);
    }
  }
}

Result<std::vector<Receipt>> Controller::accept(std::span<const Batch> batches, Timestamp now) {
  std::vector<Receipt> receipts;
  port::Commit commit;
  for (const Batch& batch : batches)
    receipts.push_back(intake_.check(batch.feed, batch.lines, batch.sender, now, commit.events));
  if (commit.events.empty()) return receipts;
  const auto first = store_.commit(commit);
  if (!first) {
    ++counts_.failures;
    intake_.forget_checked();
    return std::unexpected(first.error());
  }
  ++counts_.commits;
  for (std::size_t i = 0; i < commit.events.size(); ++i) commit.events[i].seq = *first + i;
  learn(commit.events, now);
  return receipts;
}

void Controller::learn(std::span<const port::StoredEvent> events, Timestamp now) {
  WEFT_CHECK(!events.empty());
  Numbered said;
  model::EvidenceSet seen;
  intake_.keep(events, said, seen);
  note_orders(said);
  failing_.add(said.records);
  feeds_.add(said.records);
  const Timestamp received = events.front().received;
  for (const model::Record& row : said.records.rows)
    if (health_.take(said.records, row)) probe_monitor_.set_down(health_.cut_off(), received);
  for (const model::Evidence& row : seen.rows) feeds_.add_prober(row.src, received);
  WEFT_CHECK(said.records.rows.size() == said.numbers.size());
  publisher_.advance(std::max(publisher_.now(), std::min(received, now)));
  for (std::size_t i = 0; i < said.numbers.size(); ++i)
    publisher_.add(said.records, said.records.rows[i], said.numbers[i]);
  std::erase_if(seen.rows, [&](const model::Evidence& row) {
    const std::int64_t keep_ns = settings_.probe_monitor.keep_ns;
    counts_.evidence_late += row.t.ns < received.ns - keep_ns ? 1 : 0;  // not by our restart
    return row.t.ns < now.ns - keep_ns;
  });
  // Such a row would stay in the window until its time has come: long after it was true.
  const std::int64_t ahead_ns = context_.settled.rules.clock.ahead_ns;
  counts_.evidence_ahead += std::erase_if(seen.rows, [&](const model::Evidence& row) {
    if (row.t.ns <= received.ns + ahead_ns) return false;
    feeds_.add_ignored(row, received);
    return true;
  });
  probe_monitor_.add(seen);
  mark(events.front().seq, events.front().received);
  counts_.events += events.size();
}

void Controller::mark(std::uint64_t seq, Timestamp received) {
  WEFT_CHECK(marks_.empty() || seq > marks_.back().second);
  if (marks_.empty() || received.ns - marks_.back().first.ns >= mark_every_ns)
    marks_.emplace_back(received, seq);
}

std::uint64_t Controller::event_before(Timestamp t) const {
  const auto after = std::ranges::upper_bound(marks_, t, {}, [](const auto& m) { return m.first; });
  return after == marks_.begin() ? 1 : std::prev(after)->second;
}

Result<std::vector<repair::Order>> Controller::tick(Timestamp now) {
  if (const auto due = probe_monitor_.next_due(); due && *due <= now) note_out_of_service(now);
  if (const auto lines = probe_monitor_.look(now); !lines.empty()) {
    const Batch batch{Feed::record, lines, ""};
    WEFT_TRY(const auto receipts, accept({&batch, 1}, now));
    static_cast<void>(receipts);
  }
  publisher_.advance(now);
  WEFT_CHECK(!is_restoring_);
  // What the store would not take has to go first: later documents would otherwise overtake it.
  WEFT_TRY_STATUS(commit_pending());
  take_changes(now);
  repair::Step step = repair_.step(now);
  for (auto& document : step.commit.documents) {
    announcements_pending_.push_back({"repair", document.body});
    pending_.documents.push_back(std::move(document));
  }
  for (auto& entry : step.commit.audit) pending_.audit.push_back(std::move(entry));
  for (auto& order : step.orders) {
    if (order.kind == repair::OrderKind::act) announce_order(order, now);
    if (order.kind == repair::OrderKind::check) order.flows = failing_.of(order.entity);
    orders_.push_back(std::move(order));
  }
  announce_ends(now);
  announce_capacity(now);
  WEFT_TRY_STATUS(tidy(now));
  WEFT_TRY_STATUS(commit_pending());
  // No order goes out before what it rests on is kept.
  WEFT_CHECK(pending_.documents.empty() && pending_.audit.empty() && pending_.events.empty());
  counts_.orders += orders_.size();
  return std::exchange(orders_, {});
}

// An order is a fact like any other: kept before it is carried out, and so before its effects are
// told. Triage takes them for what they are.
void Controller::announce_order(const repair::Order& order, Timestamp now) {
  const bool is_drain = order.action.kind == port::ActionKind::drain;
  JsonObject attrs;
  attrs.add("who", "weft").add("case", order.case_id).add("repair", order.ticket);
  const repair::Ticket* ticket = repair_.find(order.ticket);
  if (!is_drain && ticket != nullptr && ticket->stage == repair::Stage::returning)
    attrs.add("verified", ticket->reason);
  const auto kind = is_drain ? model::EventKind::drain : model::EventKind::undrain;
  pending_.events.push_back(
      record_of_ours(now, "order-" + order.id, now, order.action.entity, kind, attrs));
}

// Drains that were ordered and came to nothing: what happens to the part later is no effect of
// theirs.
void Controller::announce_ends(Timestamp now) {
  if (ordered_out_.empty()) return;
  std::set<std::string> out;
  for (const model::Entity& part : repair_.held()) out.insert(name(context_.fabric, part));
  for (const auto& [part, since] : ordered_out_)
    if (!out.contains(part))
      pending_.events.push_back(record_of_ours(
          now, fmt::format("order-end-{}-{}", part, now.ns), now, part, model::EventKind::undrain,
          JsonObject().add("who", "weft").add("why", "the drain came to nothing")));
}

void Controller::announce_capacity(Timestamp now) {
  std::vector<model::Entity> gone = repair_.held();
  const std::vector<model::Entity> suspected = repair_.suspected();
  gone.insert(gone.end(), suspected.begin(), suspected.end());
  for (const repair::CapacityNews& news : capacity_watch_.look(std::move(gone), now)) {
    const std::string at = name(context_.fabric, news.at);
    pending_.events.push_back(record_of_ours(now, fmt::format("capacity-{}-{}", at, now.ns), now,
                                             at, news.kind, JsonObject().add("message", news.words),
                                             news.share));
  }
}

// What goes on for long is said again, so that a new life need not read back to its beginning.
void Controller::announce_again(Timestamp now) {
  for (const auto& [part, since] : ordered_out_)
    if (now.ns - since.said.ns > settings_.replay_ns / 2)
      pending_.events.push_back(
          record_of_ours(now, fmt::format("order-again-{}-{}", part, now.ns), since.ordered, part,
                         model::EventKind::drain,
                         JsonObject().add("who", "weft").add("why", "it is still drained")));
}

void Controller::note_orders(const Numbered& said) {
  for (const model::Record& row : said.records.rows) {
    if (row.source == model::Source::controller)
      capacity_watch_.recall(row.entity, row.kind, row.t);
    const bool is_drain = row.kind == model::EventKind::drain;
    if (!is_drain && row.kind != model::EventKind::undrain) continue;
    if (row.entity.kind == model::EntityKind::none) continue;
    if (row.source != model::Source::controller) {
      // Somebody else's hands: routes change all the same.
      std::erase_if(out_by_others_, [&](const auto& out) { return out.first == row.entity; });
      if (is_drain)
        out_by_others_.emplace_back(row.entity,
                                    row.until > row.t ? row.until : Timestamp{INT64_MAX});
      note_out_of_service(row.t);
      continue;
    }
    if (is_drain)
      ordered_out_[name(context_.fabric, row.entity)] = {row.t, row.received};
    else
      ordered_out_.erase(name(context_.fabric, row.entity));
    if (is_looking_back_) note_out_of_service(row.t);
  }
}

std::vector<model::Entity> Controller::ordered_out() const {
  std::vector<model::Entity> out;
  for (const auto& [part, since] : ordered_out_)
    if (const auto entity = model::find_entity(context_.fabric, {part, {}})) out.push_back(*entity);
  return out;
}

std::vector<model::Entity> Controller::out_of_service(Timestamp now) const {
  // There are no repairs where only the log is read.
  std::vector<model::Entity> out = is_looking_back_ ? ordered_out() : repair_.held();
  for (const auto& [part, until] : out_by_others_)
    if (until > now) out.push_back(part);
  return out;
}

void Controller::note_out_of_service(Timestamp now) {
  std::erase_if(out_by_others_, [&](const auto& out) { return out.second <= now; });
  const OutOfService parts{out_of_service(now), repair_.moving()};
  if (parts == told_out_) return;
  told_out_ = parts;
  const model::State state = repair::state_without(context_.fabric, parts.all);
  std::vector<model::Entity> still = parts.all;
  std::erase_if(still, [&](const auto& part) {
    return std::ranges::find(parts.moving, part) != parts.moving.end();
  });
  probe_monitor_.set_out_of_service(
      state, parts.moving.empty() ? state : repair::state_without(context_.fabric, still), now);
}

operate::health::Conditions Controller::link_conditions(Timestamp now) const {
  return health_.conditions(now, out_of_service(now));
}

std::optional<Timestamp> Controller::next_due() const {
  if (!pending_.documents.empty() || !pending_.audit.empty() || !pending_.events.empty())
    return Timestamp{};
  std::optional<Timestamp> out;
  for (const auto& due : {publisher_.next_due(), probe_monitor_.next_due(), repair_.next_due(),
                          capacity_watch_.next_due()})
    if (due && (!out || *due < *out)) out = due;
  return out;
}

// Cases as they changed, into the commit that waits and before the eyes of repair.
void Controller::take_changes(Timestamp now) {
  for (const CaseStatus& standing : publisher_.changes()) {
    const bool is_known = open_.contains(standing.body.id);
    if (is_restoring_ && !is_known && standing.body.opened < truncated_before_) continue;
    take(standing, now);
  }
}

void Controller::take(const CaseStatus& standing, Timestamp now) {
  if (!standing.json.empty()) note(standing, now);
  if (is_over(standing.state))
    open_.erase(standing.body.id);
  else
    open_[standing.body.id] = standing.state;
  if (standing.state == CaseStatus::State::superseded ||
      standing.state == CaseStatus::State::withdrawn) {
    repair_.retract(standing.body.id, standing.into, now);
    if (!standing.into.empty()) handlings_.merge(standing.body.id, standing.into, now, pending_);
    return;
  }
  model::Case seen = standing.body;
  // Some end by silence, never cleared: no more will be heard of them either.
  if (standing.state == CaseStatus::State::closed && !seen.closed)
    seen.closed = seen.members.empty() ? seen.opened : seen.members.back().at;
  repair_.see(seen, now);
}

void Controller::note(const CaseStatus& standing, Timestamp now) {
  const model::Case& c = standing.body;
  pending_.documents.push_back({std::string(case_kind), c.id, now, standing.json});
  announcements_pending_.push_back({"case", standing.json});
  const auto known = open_.find(c.id);
  if (known != open_.end() && known->second == standing.state) return;  // it only grew
  ++counts_.cases;
  pending_.audit.push_back({0, now, "weft", c.id, fmt::format("case_{}", to_text(standing.state)),
                            JsonObject()
                                .add("kind", c.kind)
                                .add("entity", root_name(context_.fabric, c))
                                .add("records", c.record_count())
                                .add("confidence", c.confidence, decimals(3))
                                .add("into", standing.into)
                                .text()});
}

Status Controller::commit_pending() {
  if (pending_.documents.empty() && pending_.audit.empty() && pending_.events.empty()) return {};
  // Lists are paged by this time, so no two may share it.
  for (port::Document& document : pending_.documents) {
    document.updated.ns = std::max(document.updated.ns, updated_.ns + 1);
    updated_ = document.updated;
  }
  const auto done = store_.commit(pending_);
  if (!done) {
    ++counts_.failures;
    return std::unexpected(done.error());
  }
  ++counts_.commits;
  for (const port::Document& document : pending_.documents)
    if (document.kind == handling_kind)
      announcements_.push_back({std::string(handling_kind), document.body});
  for (const port::AuditEntry& entry : pending_.audit)
    announcements_.push_back(
        {"audit", JsonObject()
                      .add("t", entry.t)
                      .add("actor", entry.actor)
                      .add("case", entry.subject)
                      .add("action", entry.action)
                      .add("detail", JsonText{entry.detail.empty() ? "{}" : entry.detail})
                      .text()});
  for (Announcement& announcement : announcements_pending_)
    announcements_.push_back(std::move(announcement));
  announcements_pending_.clear();
  auto events = std::exchange(pending_, {}).events;
  for (std::size_t i = 0; i < events.size(); ++i) events[i].seq = *done + i;
  if (!events.empty()) learn(events, events.back().received);
  return {};
}

// Once a minute: from where a new life would have to read, and what nobody needs any more.
Status Controller::tidy(Timestamp now) {
  if (now.ns - tidied_.ns < tidy_every_ns) return {};
  tidied_ = now;
  announce_again(now);
  const std::uint64_t wanted =
      std::min(publisher_.oldest_number(), event_before({now.ns - settings_.replay_ns}));
  if (wanted > replay_from_) {
    replay_from_ = wanted;
    pending_.documents.push_back({std::string(controller_kind), std::string(replay_id), now,
                                  JsonObject().add("from", replay_from_).text()});
  }
  const std::uint64_t useless =
      std::min(replay_from_, event_before({now.ns - settings_.events_ns}));
  WEFT_CHECK(forgotten_ <= replay_from_);
  if (useless > forgotten_) {
    WEFT_TRY_STATUS(done(store_.forget_events(useless)));
    forgotten_ = useless;
    while (marks_.size() > 1 && marks_[1].second <= useless) marks_.pop_front();
  }
  for (const std::string_view kind : {case_kind, snapshot_kind, handling_kind})
    WEFT_TRY_STATUS(done(store_.forget_documents(kind, forgettable(now))));
  return {};
}

// Documents that were written before then: of nothing that is still open.
Timestamp Controller::forgettable(Timestamp now) const {
  Timestamp out{now.ns - settings_.cases_ns};
  for (const auto& [id, state] : open_) {
    const auto c = publisher_.find(id);
    out = std::min(out, c ? c->opened : Timestamp{});
  }
  return out;
}

void Controller::outcome(const repair::Outcome& outcome, Timestamp now) {
  repair_.outcome(outcome, now);
  // What probes met before a drain or a return says nothing about the time after it.
  note_out_of_service(now);
}

void Controller::keep_snapshot(const std::string& case_id, std::string json, Timestamp now) {
  const std::string id = fmt::format("{}.{}", case_id, now.ns);
  if (const auto line = JsonLine::parse(json, {"a snapshot"}))
    json = JsonObject().add("id", id).add_all(line->but({"id"})).text();
  pending_.documents.push_back({std::string(snapshot_kind), id, now, std::move(json)});
}

std::vector<std::string> Controller::open_cases() const {
  std::vector<std::string> out;
  for (const auto& [id, state] : open_) out.push_back(id);
  return out;
}

Status Controller::command(const Command& command, Timestamp now) {
  const repair::Attribution word{command.who, command.reason};
  using enum Command::Kind;
  switch (command.kind) {
    case approve:
      return repair_.approve(command.case_id, word, now);
    case reject:
      return repair_.reject(command.case_id, word, now);
    case repaired:
      return repair_.repaired(command.case_id, word, now);
    case rma: {
      WEFT_TRY(const auto step, from_name<repair::RmaStep>({command.step, {}}));
      return repair_.rma(command.case_id, step, command.number, word, now);
    }
    case hold:
      return repair_.hold(command.case_id, repair::Switch::on, word, now);
    case release:
      return repair_.hold(command.case_id, repair::Switch::off, word, now);
    case kill_switch:
      repair_.set_kill_switch(repair::Switch::on, word, now);
      return {};
    case revive:
      repair_.set_kill_switch(repair::Switch::off, word, now);
      return {};
    case freeze:
      return repair_.freeze(now, command.until, word, now);
    case thaw:
      return repair_.thaw(word, now);
    case own:
    case disown:
    case comment:
      return handle(command, now);
  }
  return {};
}

Status Controller::handle(const Command& command, Timestamp now) {
  WEFT_TRY(const port::Document document, store_.document(case_kind, command.case_id));
  WEFT_TRY(const JsonLine line, JsonLine::parse(document.body, {"case " + document.id}));
  if (const auto into = line.node().member("into").text(); into && !into->empty())
    return fail(Errc::infeasible, {},
                fmt::format("case {} became part of case {}", document.id, *into),
                "send the command for that case");
  return handlings_.take(command, now, pending_);
}

std::string Controller::ledger() const {
  const auto rows = repair::ledger_rows(context_.fabric, repair_.tickets());
  return to_json(repair::repair_stats(rows, repair_.policy(), {-timestamp_ns_max}, end_of_time));
}

std::string Controller::view(View view, Timestamp now) const {
  switch (view) {
    case View::fabric:
      return fabric_view(context_.fabric);
    case View::capacity:
      return to_json(capacity_view(repair_, now));
    case View::probes:
      return to_json(probe_monitor_.view(now));
    case View::feeds:
      return feeds_.json();
    case View::network:
      return to_json(context_.fabric, network(now), nullptr);
  }
  return "{}";
}

std::string Controller::metrics(Timestamp now) const {
  std::string out;
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       std::uint64_t value) {
    fmt::format_to(std::back_inserter(out),
                   "# HELP weft_{0} {2}\n# TYPE weft_{0} {1}\nweft_{0} {3}\n", name, type, help,
                   value);
  };
  const auto& intake = intake_.counts();
  const auto& syslog = intake_.syslog_counts();
  const auto triage = publisher_.counts();
  add("lines_total", "counter", "Lines of all feeds.", intake.lines);
  add("lines_refused_total", "counter", "Lines that are invalid for their feed.", intake.refused);
  add("lines_known_total", "counter", "Records received before (duplicates).", intake.known);
  add("records_unknown_kind_total", "counter", "Records of a kind that is not known.",
      intake.unknown_kinds);
  add("records_unknown_entity_total", "counter", "Records of what the fabric does not have.",
      intake.unknown_entities);
  add("events_total", "counter", "Events kept since the service started.", counts_.events);
  add("events_unreadable_total", "counter", "Kept events that are no longer valid.",
      intake.unreadable);
  add("syslog_unknown_devices_total", "counter", "Messages from unknown devices.",
      syslog.unknown_devices);
  add("syslog_malformed_total", "counter", "Messages that are not syslog.", syslog.malformed);
  add("records_late_total", "counter", "Records too late for any case.", triage.queue.late);
  add("records_wrong_clock_total", "counter", "Records placed by time of receipt.",
      triage.records.wrong_clocks);
  add("evidence_rows_total", "counter", "Rows of probe results.", probe_monitor_.counts().rows);
  add("evidence_dropped_total", "counter", "Rows dropped for lack of space.",
      probe_monitor_.counts().dropped);
  add("evidence_late_total", "counter", "Rows of before the window that is looked at.",
      counts_.evidence_late);
  add("evidence_ahead_total", "counter", "Rows from the future, by a wrong clock; not used.",
      counts_.evidence_ahead);
  add("localise_runs_total", "counter", "Runs of the localiser.", probe_monitor_.counts().runs);
  add("verdicts_total", "counter", "Components named by the localiser.",
      probe_monitor_.counts().verdicts);
  add("evidence_old_paths_total", "counter", "Rows of probe results whose path was out of date.",
      probe_monitor_.counts().old_paths);
  add("case_changes_total", "counter", "Cases that began, ended or changed their state.",
      counts_.cases);
  add("cases_open", "gauge", "Open cases.", open_.size());
  add("repairs_under_way", "gauge", "Repairs in progress.",
      static_cast<std::uint64_t>(std::ranges::count_if(
          repair_.tickets(), [](const auto& row) { return !is_over(row.second.stage); })));
  add("repairs_at_vendor", "gauge", "Repairs whose part went back to its vendor.",
      static_cast<std::uint64_t>(std::ranges::count_if(repair_.tickets(), [](const auto& row) {
        return row.second.stage == repair::Stage::rma;
      })));
  add("kill_switch", "gauge", "1 while the kill switch is on.",
      repair_.kill_switch() == repair::Switch::on ? 1 : 0);
  add("orders_total", "counter", "Orders given to actuators.", counts_.orders);
  add("commits_total", "counter", "Commits of the store.", counts_.commits);
  add("commit_failures_total", "counter", "Commits that the store rejected.", counts_.failures);
  std::map<std::string, std::uint64_t> kinds;
  for (const auto& [id, state] : open_)
    if (const auto c = publisher_.find(id)) ++kinds[std::string(to_text(c->kind))];
  return out + network_metrics(probe_monitor_.view(now), capacity_view(repair_, now), kinds);
}

}  // namespace weft::serve
