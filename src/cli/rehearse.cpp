#include "cli/rehearse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include "adapt/sim/memory_store.hpp"
#include "base/json_line.hpp"
#include "base/rng.hpp"
#include "cli/rehearse_minutes.hpp"
#include "operate/repair/reserve.hpp"
#include "operate/triage/rules.hpp"
#include "serve/desk.hpp"

namespace weft::cli {
namespace {

namespace repair = operate::repair;
namespace sim = adapt::sim;
using model::Entity;
using repair::OrderKind;
using sim::Break;

constexpr Timestamp start{1'800'000'000 * ns_per_s};
constexpr std::int64_t day_ns = std::int64_t{24} * 3600 * ns_per_s;
constexpr std::int64_t turn_ns = ns_per_s / 10;  // the service turns no more often
constexpr double month_days = 30;

// The parts of a fabric, by what can befall them.
struct Parts {
  explicit Parts(const model::Fabric& fabric, std::uint32_t ports_per_card) {
    for (const model::LinkId link : fabric.links()) {
      if (!fabric.on_wire(link) || link != model::forward(model::circuit_of(link))) continue;
      const bool is_trunk =
          fabric.is_switch(fabric.from(link)) && fabric.is_switch(fabric.to(link));
      (is_trunk ? trunks : leaves).push_back(model::entity(model::circuit_of(link)));
    }
    for (const model::NodeId node : fabric.nodes()) {
      if (!fabric.is_switch(node)) continue;
      const auto out = fabric.out(node);
      const bool has_hosts = std::ranges::any_of(
          out, [&](model::LinkId link) { return !fabric.is_switch(fabric.to(link)); });
      (has_hosts ? rack_switches : others).push_back(model::entity(node));
      switches.push_back(model::entity(node));
      if (out.size() <= ports_per_card) continue;
      for (std::uint32_t i = 0; i * ports_per_card < out.size(); ++i)
        cards.push_back(model::card_of(node, i));
    }
    for (const model::NodeId nic : fabric.nics()) nics.push_back(model::entity(nic));
    for (const model::NodeId host : fabric.hosts()) hosts.push_back(model::entity(host));
  }
  std::vector<Entity> trunks, leaves, rack_switches, others, switches, cards, nics, hosts;
};

// What is to begin, by time.
struct Plan {
  Timestamp t;
  Break kind = Break::cable;
  Entity part;
  double loss = 1;
  std::int64_t lasts_ns = 0;
  bool is_lemon = false;
};

class Planner {
 public:
  Planner(const Parts& parts, const RehearseOptions& options)
      : parts_(parts), options_(options), rng_(Rng(options.seed).stream("plan")) {}

  std::vector<Plan> plan() {
    const RehearseModel::Rates& r = options_.model.rates;
    const double months = options_.days / month_days;
    add(Break::cable, parts_.leaves, r.host_cable * months);
    add(Break::cable, parts_.trunks, r.trunk_cable * months);
    add(Break::device, parts_.rack_switches, r.rack_switch * months);
    add(Break::device, parts_.others, r.other_switch * months);
    add(Break::card, parts_.cards, r.line_card * months);
    add(Break::control_plane, parts_.switches, r.control_plane * months);
    add(Break::grey, parts_.trunks, r.grey * months);
    add(Break::optic, parts_.trunks, r.optic * months);
    add(Break::flap, parts_.trunks, r.flap * months);
    add(Break::nic, parts_.nics, r.host_nic * months);
    add(Break::host, parts_.hosts, r.host * months);
    for (const auto* cables : {&parts_.leaves, &parts_.trunks}) add_blips(*cables);
    add_lemons();
    std::ranges::stable_sort(out_, {}, &Plan::t);
    return std::move(out_);
  }

 private:
  std::int64_t around(std::int64_t mean_ns) {
    return static_cast<std::int64_t>(-std::log1p(-rng_.uniform()) * static_cast<double>(mean_ns));
  }
  Timestamp some_time(double share = 1) {
    return {start.ns + static_cast<std::int64_t>(rng_.uniform() * share *
                                                 static_cast<double>(options_.days * day_ns))};
  }
  double loss(Break kind) {
    const RehearseModel& m = options_.model;
    if (kind == Break::optic) return m.optic_loss;
    if (kind != Break::grey) return 1;
    return m.grey_least * std::pow(m.grey_most / m.grey_least, rng_.uniform());
  }
  // A Poisson process of each part together: exponential times between the faults of all.
  template <class F>
  void each(double expected, F&& f) {
    for (double at = -std::log1p(-rng_.uniform()); at < expected; at -= std::log1p(-rng_.uniform()))
      f();
  }
  void add(Break kind, const std::vector<Entity>& parts, double each_part) {
    each(each_part * static_cast<double>(parts.size()), [&] {
      const std::int64_t lasts =
          kind == Break::control_plane ? around(options_.model.control_plane_ns) + ns_per_s : 0;
      out_.push_back({some_time(), kind, parts[rng_.below(parts.size())], loss(kind), lasts});
    });
  }
  void add_blips(const std::vector<Entity>& cables) {
    const double expected =
        options_.model.rates.blips * options_.days * static_cast<double>(cables.size());
    each(expected, [&] {
      out_.push_back({some_time(), Break::flap, cables[rng_.below(cables.size())], 1,
                      ns_per_s / 5 + around(ns_per_s / 2)});
    });
  }
  // Each begins within the first third, so that it can be found out.
  void add_lemons() {
    std::vector<Entity> cables = parts_.trunks;
    rng_.shuffle(std::span<Entity>(cables));
    const std::size_t count = std::min<std::size_t>(options_.model.lemons, cables.size());
    constexpr std::array<Break, 3> kinds{Break::grey, Break::optic, Break::cable};
    for (std::size_t i = 0; i < count; ++i) {
      const Break kind = kinds[i % kinds.size()];
      out_.push_back({some_time(1.0 / 3), kind, cables[i], loss(kind), 0, true});
    }
  }

  const Parts& parts_;
  const RehearseOptions& options_;
  Rng rng_;
  std::vector<Plan> out_;
};

class Rehearsal {
 public:
  Rehearsal(const model::Fabric& fabric, const RehearseOptions& options)
      : fabric_(fabric),
        options_(options),
        rng_(Rng(options.seed).stream("people")),
        parts_(fabric, options.model.hands.ports_per_card),
        inventory_(fabric),
        catalogue_(observe::telemetry::Catalogue::built_in()),
        patient_(fabric, operate::triage::default_rules()),
        early_(fabric, serve::early_rules(operate::triage::default_rules(), {})),
        reserve_(fabric),
        net_(fabric, seeded(options), start),
        desk_({fabric, inventory_, catalogue_, patient_, early_}, {}, options.policy, store_) {}

  Result<RehearseReport> run(const RehearseProgress& progress) {
    WEFT_TRY_STATUS(desk_.restore(start));
    const std::vector<Plan> plan = Planner(parts_, options_).plan();
    const Timestamp end{start.ns + options_.days * day_ns};
    std::size_t next = 0;
    while (now_ < end) {
      Timestamp to = next < plan.size() ? std::min(end, plan[next].t) : end;
      to = std::max(earliest(to), {now_.ns + turn_ns});
      now_ = std::min(to, end);
      net_.advance(now_);
      for (; next < plan.size() && plan[next].t <= now_; ++next) begin(plan[next]);
      WEFT_TRY_STATUS(turn());
      progress(static_cast<double>(now_.ns - start.ns) / static_cast<double>(day_ns));
    }
    return report();
  }

 private:
  struct Answer {
    Timestamp t;
    std::string ticket;
  };

  static sim::OperationsSettings seeded(const RehearseOptions& options) {
    sim::OperationsSettings out = options.model.hands;
    out.seed = options.seed;
    return out;
  }
  Timestamp earliest(Timestamp t) const {
    for (const auto& due : {net_.next_due(), desk_.next_due()})
      if (due && *due < t) t = *due;
    for (const Answer& answer : answers_) t = std::min(t, answer.t);
    return t;
  }
  void begin(const Plan& plan) {
    if (plan.lasts_ns > 0 && plan.kind == Break::flap) ++report_.blips;
    const auto index = plan.is_lemon ? net_.begin_lemon(plan.kind, plan.part, plan.loss,
                                                        options_.model.lemon_again_ns)
                                     : net_.begin(plan.kind, plan.part, plan.loss, plan.lasts_ns);
    if (plan.is_lemon) lemons_.insert(model::name(fabric_, plan.part));
    if (plan.lasts_ns > 0 && plan.kind == Break::flap) blips_.insert(index);
  }

  Status turn() {
    ++report_.ticks;
    std::vector<std::string> lines;
    for (auto& line : net_.lines()) lines.push_back(std::move(line.text));
    report_.lines += lines.size();
    if (!lines.empty()) {
      const serve::Desk::Batch batch{serve::Feed::record, std::move(lines), ""};
      WEFT_TRY(const auto receipts, desk_.accept({&batch, 1}, now_));
      static_cast<void>(receipts);
    }
    answer();
    visits();
    WEFT_TRY(const auto orders, desk_.tick(now_));
    for (const repair::Order& order : orders) desk_.outcome(perform(order), now_);
    static_cast<void>(desk_.announcements());
    return {};
  }

  repair::Outcome perform(const repair::Order& order) {
    repair::Outcome out{.order = order.id};
    const auto set = [&](auto result, auto& to) {
      if (result)
        to = *result;
      else
        out.error = result.error();
    };
    switch (order.kind) {
      case OrderKind::act:
        if (!desk_.may_act(order, now_))
          out.error = Error{Errc::infeasible, {}, "it was forbidden before it was done", "", {}};
        else if (const Status done = net_.act(order.action); !done)
          out.error = done.error();
        break;
      case OrderKind::look:
        set(net_.state(order.entity), out.service);
        break;
      case OrderKind::check:
        set(net_.check(order.entity), out.check);
        break;
      case OrderKind::forecast:
        out.forecast = forecast(order);
        break;
      case OrderKind::notify:
        hear(order);
        break;
      case OrderKind::snapshot:
        break;
    }
    return out;
  }

  // All NICs send to other racks as fast as they can, and uplinks are shared ideally: the rack with
  // the least left upwards is slowed down by what it lacks.
  repair::Forecast forecast(const repair::Order& order) const {
    repair::Gone gone(fabric_);
    const auto slowdown = [&] {
      double worst = 1;
      for (const repair::Uplinks& row : reserve_.uplinks(gone))
        if (row.live_bps > 0 && row.nic_bps > 0)
          worst = std::max(worst, std::min(row.nic_bps, row.whole_bps) / row.live_bps);
      return worst;
    };
    const auto add = [&](const std::string& name) {
      if (const auto part = model::find_entity(fabric_, {name, {}})) gone.add(*part);
    };
    for (const std::string& out : order.out) add(out);
    const double before = slowdown();
    add(order.entity);
    return {.jobs = 1, .slowdown_max = slowdown() / before, .worst = "all racks"};
  }

  // ---- people ----

  void hear(const repair::Order& order) {
    const repair::Ticket* ticket = desk_.repair().find(order.ticket);
    if (ticket == nullptr || ticket->key().kind == model::EntityKind::none) return;
    const std::string& event = order.notice.event;
    const std::string part = model::name(fabric_, ticket->key());
    if (event == "repair_replace") {
      replaced_.insert(part);
      net_.call_technician(part, sim::Operations::Job::replace);
    } else if (event == "repair_drained" || event == "repair_verify_failed" ||
               event == "repair_blocked" || (event == "repair_proposed" && !ticket->has_part())) {
      net_.call_technician(part, sim::Operations::Job::mend);
    } else if (event == "repair_proposed" || event == "repair_failed") {
      const double wait =
          -std::log1p(-rng_.uniform()) * static_cast<double>(options_.model.approve_ns);
      answers_.push_back({{now_.ns + static_cast<std::int64_t>(wait)}, ticket->id});
      net_.call_technician(part, sim::Operations::Job::mend);
    }
  }
  void answer() {
    for (const Answer& a : answers_)
      if (a.t <= now_)
        static_cast<void>(desk_.command(
            {.kind = serve::Command::Kind::approve, .case_id = a.ticket, .who = "operator"}, now_));
    std::erase_if(answers_, [&](const Answer& a) { return a.t <= now_; });
  }
  void visits() {
    for (const sim::Operations::Visit& visit : net_.visits())
      for (const auto& [id, ticket] : desk_.repair().tickets()) {
        if (is_over(ticket.stage) || ticket.key().kind == model::EntityKind::none ||
            model::name(fabric_, ticket.key()) != visit.entity)
          continue;
        if (visit.has_found)
          words_.push_back(id);
        else
          net_.call_technician(visit.entity, ticket.is_offender ? sim::Operations::Job::replace
                                                                : sim::Operations::Job::mend);
      }
    for (const std::string& id : std::exchange(words_, {}))
      static_cast<void>(desk_.command(
          {.kind = serve::Command::Kind::repaired, .case_id = id, .who = "technician"}, now_));
  }

  // ---- what it came to ----

  Result<RehearseReport> report() {
    RehearseReport& out = report_;
    out.days = options_.days;
    out.seed = options_.seed;
    const auto rows = repair::ledger_rows(fabric_, desk_.repair().tickets());
    out.ledger = repair::make_ledger(rows, options_.policy, start, now_);
    WEFT_TRY(const auto audit, store_.audit(1, "", SIZE_MAX));
    const std::vector<Seen> seen = cases(audit);
    std::vector<bool> found(net_.faults().size());
    count_faults(seen, found);
    for (const port::AuditEntry& entry : audit)
      if (entry.action == "refused") ++out.refused[field(entry.detail, "guard")];
    const Minutes minutes(fabric_, parts_.rack_switches, net_, start, now_);
    out.rack_minutes = minutes.count();
    for (const Minutes::Bad& bad : minutes.bad(options_.model.bad_loss)) {
      RehearseReport::Problem& problem = out.problems[type_of(bad.fault)];
      ++(bad.is_across ? problem.bad_across : problem.bad_inside);
      out.bad_known += found[bad.fault] ? 1 : 0;
    }
    count_offenders(rows);
    count_cost();
    return std::move(report_);
  }

  struct Seen {
    Timestamp t;
    std::string kind;
    Entity root;
  };
  static std::string field(std::string_view json, std::string_view key) {
    const std::string start_of = fmt::format("\"{}\":\"", key);
    const std::size_t at = json.find(start_of);
    if (at == std::string_view::npos) return "";
    const std::size_t from = at + start_of.size();
    return std::string(json.substr(from, json.find('"', from) - from));
  }
  std::vector<Seen> cases(const std::vector<port::AuditEntry>& audit) const {
    std::vector<Seen> out;
    std::set<std::string, std::less<>> known;
    for (const port::AuditEntry& entry : audit) {
      if (entry.action != "case_open" && entry.action != "case_closed") continue;
      if (!known.insert(entry.subject).second) continue;
      const auto root = model::find_entity(fabric_, {field(entry.detail, "entity"), {}});
      out.push_back({entry.t, field(entry.detail, "kind"), root.value_or(Entity{})});
    }
    return out;
  }
  std::string type_of(std::uint32_t index) const {
    const sim::Operations::Fault& fault = net_.faults()[index];
    if (blips_.contains(index)) return "blip";
    if (fault.kind == Break::grey) return "cable";
    const bool is_rack =
        fault.kind == Break::device &&
        std::ranges::find(parts_.rack_switches, fault.part) != parts_.rack_switches.end();
    return is_rack ? "rack_switch" : std::string(to_text(fault.kind));
  }
  bool is_about(const sim::Operations::Fault& fault, const Seen& seen) const {
    constexpr std::int64_t late_ns = 120 * ns_per_minute;
    if (seen.t < fault.start || (fault.end && seen.t.ns > fault.end->ns + late_ns)) return false;
    if (seen.root == fault.part) return true;
    if (seen.root.kind == model::EntityKind::none) return false;
    const bool is_part = fault.part.kind == model::EntityKind::card &&
                         seen.root.kind == model::EntityKind::node && seen.root.id == fault.part.id;
    // The cable of a NIC, or the NIC of a cable; the cable said as a link.
    const auto a = net_.cables_of(fault.part), b = net_.cables_of(seen.root);
    return is_part || (a.size() == 1 && a == b);
  }
  void count_faults(const std::vector<Seen>& seen, std::vector<bool>& found) {
    report_.cases = seen.size();
    std::vector<bool> is_true(seen.size());
    const auto& faults = net_.faults();
    for (std::uint32_t i = 0; i < faults.size(); ++i) {
      bool is_named = false;
      for (std::size_t k = 0; k < seen.size(); ++k) {
        if (!is_about(faults[i], seen[k])) continue;
        found[i] = is_true[k] = true;
        is_named = is_named || seen[k].kind == type_of(i);
      }
      if (blips_.contains(i)) continue;
      RehearseReport::Problem& problem = report_.problems[type_of(i)];
      ++problem.faults;
      problem.found += found[i] ? 1 : 0;
      problem.named += is_named ? 1 : 0;
    }
    report_.cases_false = static_cast<std::uint64_t>(std::ranges::count(is_true, false));
  }
  // Parts with two repairs at least that found something: returns after nothing was found, and
  // rollbacks of one repair, make no offender.
  void count_offenders(const std::vector<repair::LedgerRow>& rows) {
    report_.lemons = lemons_.size();
    std::map<std::string, int> repairs;
    for (const repair::LedgerRow& row : rows)
      if (row.was_drained && (row.resolution == repair::Resolution::repaired ||
                              row.resolution == repair::Resolution::replaced))
        ++repairs[row.entity];
    for (const auto& [part, count] : repairs) {
      if (count < 2) continue;
      ++report_.offenders;
      report_.lemons_found += lemons_.contains(part) ? 1 : 0;
    }
    report_.replaced = replaced_.size();
  }
  void count_cost() {
    report_.visits = net_.visit_count();
    std::map<std::string, Timestamp> since;
    const auto add = [&](const std::string& name, Timestamp from, Timestamp to) {
      const auto part = model::find_entity(fabric_, {name, {}});
      const std::size_t cables = part ? net_.cables_of(*part).size() : 0;
      report_.drained_cable_hours +=
          static_cast<double>(to.ns - from.ns) / 3.6e12 * static_cast<double>(cables);
    };
    for (const sim::Operations::Effect& effect : net_.effects()) {
      if (effect.action.kind == port::ActionKind::drain) {
        ++report_.drains;
        since[effect.action.entity] = effect.t;
      } else if (const auto at = since.find(effect.action.entity); at != since.end()) {
        add(at->first, at->second, effect.t);
        since.erase(at);
      }
    }
    for (const auto& [name, from] : since) add(name, from, now_);
  }

  const model::Fabric& fabric_;
  const RehearseOptions& options_;
  Rng rng_;
  Parts parts_;
  observe::telemetry::Inventory inventory_;
  observe::telemetry::Catalogue catalogue_;
  operate::triage::Ground patient_, early_;
  repair::Reserve reserve_;
  sim::Operations net_;
  sim::MemoryStore store_;
  serve::Desk desk_;
  Timestamp now_ = start;
  std::vector<Answer> answers_;
  std::vector<std::string> words_;
  std::set<std::string> lemons_, replaced_;
  std::set<std::uint32_t> blips_;
  RehearseReport report_;
};

}  // namespace

Result<RehearseReport> rehearse(const model::Fabric& fabric, const RehearseOptions& options,
                                const RehearseProgress& progress) {
  if (fabric.nics().empty())
    return fail(Errc::infeasible, {}, "the fabric has no racks with NICs to judge minutes of",
                "rehearse a fabric with hosts");
  return std::make_unique<Rehearsal>(fabric, options)->run(progress);
}

}  // namespace weft::cli
