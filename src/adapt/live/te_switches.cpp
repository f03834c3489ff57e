#include "adapt/live/te_switches.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace weft::adapt::live {

namespace te = operate::te;
using model::CableId;
using model::LinkId;
using model::NodeId;
using port::Instant;

namespace {

constexpr std::size_t settled_max = 256;

}  // namespace

TeSwitches::TeSwitches(Parts parts) : parts_(std::move(parts)) {
  for (const auto& [nic, address] : parts_.addresses) nic_of_[address] = nic;
  const auto add = [&](NodeId node, bool is_rack) {
    Switch& made = switches_[parts_.fabric.name(node)];
    made.name = parts_.fabric.name(node);
    made.node = node;
    made.is_rack = is_rack;
    by_node_[node] = &made;
  };
  for (const LinkId up : parts_.zone.up) {
    if (!up.valid()) continue;
    add(parts_.fabric.from(up), true);
    add(parts_.fabric.to(up), false);
  }
}

Result<LinkId> TeSwitches::link_of(const Switch& of, const std::string& name) const {
  const auto found = parts_.fabric.find_link({name, {}});
  if (found && parts_.fabric.from(*found) == of.node) return *found;
  return fail(Errc::value, {},
              fmt::format("{} has no cable {}: the agent's fabric file is not the service's",
                          of.name, quote(name)),
              "give both the same file");
}

void TeSwitches::report(std::string_view name, std::string_view body, std::int64_t wait_ns,
                        Answer answer) {
  Answers answers;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = switches_.find(name);
    const auto report = te::parse_report(body, std::string(name));
    if (found == switches_.end()) {
      answers.emplace_back(
          std::move(answer),
          fail(Errc::unknown, {}, fmt::format("{} is not a switch of the zone", quote(name)),
               "run weft agent --te on switches with cables between racks and "
               "spines"));
    } else if (!report) {
      answers.emplace_back(std::move(answer), std::unexpected(report.error()));
    } else if (const Status taken = take(found->second, *report); !taken) {
      answers.emplace_back(std::move(answer), std::unexpected(taken.error()));
    } else if (!report->done) {
      answers.emplace_back(std::move(answer), std::string("{}"));
    } else {
      Switch& of = found->second;
      if (of.held) answers.emplace_back(std::move(of.held->answer), std::string("{}"));
      of.held = Held{std::move(answer), parts_.clock.now() + wait_ns};
      if (wait_ns <= 0 || is_closed_ || is_due(of)) this->answer(of, answers);
    }
  }
  for (auto& [to, text] : answers) to(std::move(text));
}

Status TeSwitches::take(Switch& of, const te::SwitchReport& report) {
  of.heard = parts_.clock.now();
  if (of.agent != report.agent) {
    of.agent = report.agent;
    of.serial = 0;
    of.is_synced = false;
  }
  // Two connections: what was written later may come first.
  if (report.serial > of.serial) {
    WEFT_TRY_STATUS(take_ports(of, report));
    of.serial = report.serial;
  }
  if (report.done) {
    of.trouble = report.trouble;
    take_place(of, report);
  }
  settle();
  return {};
}

Status TeSwitches::take_ports(Switch& of, const te::SwitchReport& report) {
  bool is_news = false;
  for (const te::SwitchReport::Port& port : report.ports) {
    WEFT_TRY(const LinkId link, link_of(of, port.link));
    const bool was_up = !dark_.contains(link) && !dark_.contains(reverse(link));
    if (of.is_rack && port.carrier && !port.next_hop)
      no_hop_.insert(link);
    else
      no_hop_.erase(link);
    if (port.carrier && !no_hop_.contains(link))
      dark_.erase(link);
    else
      dark_.insert(link);
    const bool is_up = !dark_.contains(link) && !dark_.contains(reverse(link));
    if (was_up == is_up) continue;
    missing_.erase(link);
    missing_.erase(reverse(link));
    news_.push_back({model::cable_of(link), is_up});
    is_news = true;
  }
  for (const te::SwitchReport::Routes& routes : report.routes) {
    WEFT_TRY(const LinkId link, link_of(of, routes.link));
    if (dark_.contains(link)) continue;
    missing_[link] = routes.missing;
    is_news |= of.watch.contains(link);
  }
  if (is_news) parts_.wake();
  return {};
}

// What is installed there, by what its agent has carried out.
void TeSwitches::take_place(Switch& of, const te::SwitchReport& report) {
  const bool is_ours = report.done->epoch == parts_.epoch;
  if (report.marks) {
    of.has.clear();
    of.strange.clear();
    for (const te::SwitchMark& mark : *report.marks) {
      const auto src = nic_of_.find(mark.src), dst = nic_of_.find(mark.dst);
      const auto link = link_of(of, mark.uplink);
      if (src == nic_of_.end() || dst == nic_of_.end() || !link)
        of.strange.push_back(mark);
      else
        of.has[{src->second, dst->second, mark.port}] = *link;
    }
    of.is_synced = true;
    of.version = report.done->version;
    of.in_flight.reset();
    parts_.wake();
  } else if (is_ours && of.in_flight && report.done->version == of.in_flight->version) {
    of.has = std::move(of.in_flight->table);
    of.strange.clear();
    of.version = of.in_flight->version;
    of.in_flight.reset();
  } else if (is_ours && report.done->version == of.version) {
    of.in_flight.reset();  // it did not arrive, or was refused
  } else {
    of.is_synced = false;
  }
}

bool TeSwitches::is_silent(const Switch& of) const {
  return !of.heard || parts_.clock.now() - *of.heard > parts_.lease_ns;
}

bool TeSwitches::is_due(const Switch& of) const {
  if (!of.is_synced || of.renewals_told != renewals_ || of.watch != of.watch_told) return true;
  return is_started_ && (of.has != of.wanted || !of.strange.empty());
}

te::SwitchMark TeSwitches::mark_of(const Key& key, LinkId uplink) const {
  const auto& [src, dst, port] = key;
  return {parts_.addresses.at(src), parts_.addresses.at(dst), port,
          uplink.valid() ? parts_.fabric.name(uplink) : std::string()};
}

te::SwitchOrders TeSwitches::orders(Switch& of) {
  te::SwitchOrders out{.place = {parts_.epoch, of.version}};
  if (!of.is_synced) {
    out.place.version = of.version = 0;
    out.wants_marks = true;
    of.in_flight.reset();
    return out;
  }
  if (is_started_) {
    out.changes = of.strange;
    for (te::SwitchMark& mark : out.changes) mark.uplink.clear();
    for (const auto& [key, uplink] : of.has)
      if (!of.wanted.contains(key)) out.changes.push_back(mark_of(key, {}));
    for (const auto& [key, uplink] : of.wanted)
      if (const auto at = of.has.find(key); at == of.has.end() || at->second != uplink)
        out.changes.push_back(mark_of(key, uplink));
  }
  if (!out.changes.empty()) {
    out.place.version = ++of.version_last;
    of.in_flight = InFlight{out.place.version, of.wanted};
  }
  out.renewals = of.renewals_told = renewals_;
  of.watch_told = of.watch;
  for (const LinkId link : of.watch) out.watch.push_back(parts_.fabric.name(link));
  return out;
}

void TeSwitches::answer(Switch& of, Answers& out) {
  out.emplace_back(std::move(of.held->answer), te::to_json(orders(of)));
  of.held.reset();
}

void TeSwitches::answer_due(Answers& out) {
  for (auto& [name, of] : switches_)
    if (of.held && is_due(of)) answer(of, out);
}

std::optional<Instant> TeSwitches::answer_late() {
  Answers answers;
  std::optional<Instant> next;
  {
    const std::scoped_lock lock(mutex_);
    const Instant now = parts_.clock.now();
    for (auto& [name, of] : switches_) {
      if (!of.held) continue;
      if (of.held->until <= now || is_due(of))
        answer(of, answers);
      else if (!next || of.held->until < *next)
        next = of.held->until;
    }
  }
  for (auto& [to, text] : answers) to(std::move(text));
  return next;
}

void TeSwitches::close() {
  Answers answers;
  {
    const std::scoped_lock lock(mutex_);
    is_closed_ = true;
    for (auto& [name, of] : switches_)
      if (of.held) answer(of, answers);
  }
  for (auto& [to, text] : answers) to(std::move(text));
}

bool TeSwitches::all_known() const {
  const std::scoped_lock lock(mutex_);
  return std::ranges::all_of(switches_, [](const auto& of) { return of.second.is_synced; });
}

void TeSwitches::set_drained(model::State drained) {
  const std::scoped_lock lock(mutex_);
  for (const LinkId up : parts_.zone.up) {
    if (!up.valid()) continue;
    const auto is_out = [&](const model::State& state) {
      const auto& fabric = parts_.fabric;
      return state.link(up).health != model::Health::up ||
             state.node(fabric.from(up)).health != model::Health::up ||
             state.node(fabric.to(up)).health != model::Health::up;
    };
    if (is_out(drained)) {
      undrained_.erase(model::cable_of(up));
    } else if (is_out(drained_)) {
      undrained_.insert(model::cable_of(up));
      missing_.erase(up);
      missing_.erase(reverse(up));
    }
  }
  drained_ = std::move(drained);
}

// Nothing is left to be done at switches that are there.
void TeSwitches::settle() {
  if (settled_ == applied_) return;
  for (const auto& [name, of] : switches_)
    if (!is_silent(of) && (!of.is_synced || of.has != of.wanted || !of.strange.empty())) return;
  settled_ = applied_;
  settled_at_.emplace_back(applied_, parts_.clock.now());
  if (settled_at_.size() > settled_max) settled_at_.pop_front();
}

std::uint64_t TeSwitches::applied() const {
  const std::scoped_lock lock(mutex_);
  return applied_;
}

std::optional<Instant> TeSwitches::settled(std::uint64_t applied) const {
  const std::scoped_lock lock(mutex_);
  const auto at =
      std::ranges::find_if(settled_at_, [&](const auto& one) { return one.first >= applied; });
  return at == settled_at_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<TeSwitches::SwitchState> TeSwitches::switches() const {
  const std::scoped_lock lock(mutex_);
  std::vector<SwitchState> out;
  for (const auto& [name, of] : switches_) {
    SwitchState one{.name = name,
                    .is_rack = of.is_rack,
                    .is_silent = is_silent(of),
                    .marks = of.has.size() + of.strange.size(),
                    .wanted = of.wanted.size(),
                    .trouble = of.trouble};
    for (const LinkId link : no_hop_)
      if (parts_.fabric.from(link) == of.node) one.without_hop.push_back(parts_.fabric.name(link));
    if (of.heard) one.heard_ns = parts_.clock.now() - *of.heard;
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<std::string> TeSwitches::cables_down() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> out;
  for (const LinkId up : parts_.zone.up)
    if (up.valid() && (dark_.contains(up) || dark_.contains(reverse(up))))
      out.push_back(parts_.fabric.name(model::cable_of(up)));
  return out;
}

std::vector<port::LinkNews> TeSwitches::news() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(news_, {});
}

void TeSwitches::watch(Switch& of, LinkId link, bool is_wanted) {
  if (is_wanted)
    of.watch.insert(link);
  else
    of.watch.erase(link);
}

// At a rack the others may be missing that have lost all cables to that spine; at a spine the
// cable's own rack may not. A switch that is silent is not relied upon.
bool TeSwitches::has_routes(const Switch& of, LinkId link) {
  const auto found = missing_.find(link);
  if (is_silent(of) || found == missing_.end()) return false;
  return std::ranges::all_of(found->second, [&](const std::string& rack) {
    if (!of.is_rack) return false;
    return std::ranges::none_of(parts_.zone.up, [&](LinkId up) {
      return up.valid() && parts_.fabric.to(up) == parts_.fabric.to(link) &&
             parts_.fabric.name(parts_.fabric.from(up)) == rack && !dark_.contains(up) &&
             !dark_.contains(reverse(up)) && drained_.link(up).health == model::Health::up &&
             drained_.node(parts_.fabric.from(up)).health == model::Health::up;
    });
  });
}

bool TeSwitches::is_routed(CableId cable) {
  bool out = true;
  for (const LinkId link : {forward(cable), reverse(forward(cable))}) {
    const auto at = by_node_.find(parts_.fabric.from(link));
    if (at == by_node_.end()) continue;  // of a host
    out &= has_routes(*at->second, link);
  }
  for (const LinkId link : {forward(cable), reverse(forward(cable))})
    if (const auto at = by_node_.find(parts_.fabric.from(link)); at != by_node_.end())
      watch(*at->second, link, !out);
  return out;
}

std::vector<CableId> TeSwitches::routed(std::span<const CableId> cables) {
  Answers answers;
  std::vector<CableId> out;
  {
    const std::scoped_lock lock(mutex_);
    for (const CableId cable : cables)
      if (is_routed(cable)) out.push_back(cable);
    answer_due(answers);
  }
  for (auto& [to, text] : answers) to(std::move(text));
  return out;
}

model::State TeSwitches::drained() {
  Answers answers;
  model::State out;
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(undrained_, [this](CableId cable) { return is_routed(cable); });
    out = drained_;
    for (const CableId cable : undrained_)
      for (const LinkId link : {forward(cable), reverse(forward(cable))})
        out.set(link, {.health = model::Health::draining});
    answer_due(answers);
  }
  for (auto& [to, text] : answers) to(std::move(text));
  return out;
}

Status TeSwitches::apply(std::span<const port::RouteMark> changes) {
  Answers answers;
  {
    const std::scoped_lock lock(mutex_);
    for (const port::RouteMark& mark : changes) {
      const std::uint32_t rack = parts_.zone.rack_of[mark.src];
      const auto has_cable = [&](LinkId up) { return up.valid(); };
      const std::span<const LinkId> ups(
          parts_.zone.up.data() + std::size_t{rack} * parts_.zone.columns, parts_.zone.columns);
      const auto any = std::ranges::find_if(ups, has_cable);
      if (any == ups.end() ||
          (mark.uplink.valid() && std::ranges::find(ups, mark.uplink) == ups.end()))
        return fail(Errc::unknown, {},
                    fmt::format("no such uplink at the rack of {}", parts_.fabric.name(mark.src)));
      Table& wanted = by_node_.at(parts_.fabric.from(*any))->wanted;
      const Key key{mark.src, mark.dst, mark.port};
      if (mark.uplink.valid())
        wanted[key] = mark.uplink;
      else
        wanted.erase(key);
    }
    ++applied_;
    settle();
    answer_due(answers);
  }
  for (auto& [to, text] : answers) to(std::move(text));
  return {};
}

Result<std::vector<port::RouteMark>> TeSwitches::installed() {
  const std::scoped_lock lock(mutex_);
  is_started_ = true;
  std::vector<port::RouteMark> out;
  for (auto& [name, of] : switches_) {
    of.wanted = of.is_synced ? of.has : Table();
    for (const auto& [key, uplink] : of.wanted)
      out.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), uplink});
  }
  std::ranges::sort(out);
  return out;
}

Status TeSwitches::renew() {
  Answers answers;
  {
    const std::scoped_lock lock(mutex_);
    ++renewals_;
    settle();
    answer_due(answers);
  }
  for (auto& [to, text] : answers) to(std::move(text));
  return {};
}

}  // namespace weft::adapt::live
