#include "model/fabric/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/rng.hpp"
#include "model/fabric/fault_catalogue.hpp"
#include "model/fabric/fec.hpp"

namespace weft::model {
namespace {

constexpr std::size_t names_shown = 4;

constexpr double slowdown_max = 1e6;  // of one fault; together they stay below 1e12

// Of 4,096 bytes of payload and 64 of headers, with preamble and gap.
constexpr double full_frame_bytes = 4180;
using Measure = FaultEffect::Measure;
using Spread = FaultEffect::Spread;

// Of the targets of kinds other than links, by the key that names them.
NodeKind node_kind_of(std::string_view target) {
  if (target == "switch") return NodeKind::fabric_switch;
  if (target == "nic") return NodeKind::nic;
  return target == "host" ? NodeKind::host : NodeKind::gpu;
}

struct Fault {
  Time at;
  std::optional<Time> until;
  Condition condition;
  std::vector<LinkId> links;
  std::vector<NodeId> nodes;
};

// GPUs and NICs, those of the front end too, by host. Made when first asked for.
class HostParts {
 public:
  explicit HostParts(const Fabric& fabric) : fabric_(fabric) {}

  void append(NodeId host, std::vector<NodeId>& out) {
    if (parts_.empty()) find();
    for (const auto& [in, part] : std::ranges::equal_range(parts_, host, {}, &Part::first))
      out.push_back(part);
  }

 private:
  using Part = std::pair<NodeId, NodeId>;  // (host, part)

  void find() {
    for (const Fabric::Role& role : fabric_.roles())
      if (role.kind == NodeKind::gpu || role.kind == NodeKind::nic)
        for (const NodeId node : role.nodes) parts_.emplace_back(fabric_.host_of(node), node);
    std::ranges::sort(parts_);
  }

  const Fabric& fabric_;
  std::vector<Part> parts_;  // sorted
};

// Reads one entry of the list.
class FaultReader {
 public:
  FaultReader(const Fabric& fabric, HostParts& parts, const Config& entry, std::size_t index,
              Rng rng, Errors& errors)
      : fabric_(fabric),
        parts_(parts),
        errors_(errors),
        reader_(entry, fmt::format("faults[{}]", index), errors),
        rng_(rng) {}

  Fault read() {
    const std::vector<std::string> names = fault_names(by_scenario);
    const std::size_t errors_before = errors_.size();
    const std::string& name = names[reader_.choice("kind", names, std::nullopt)];
    kind_ = &*std::ranges::find(fault_catalogue(), name, &FaultEntry::name);
    Fault fault;
    if (errors_.size() > errors_before) return fault;  // the other keys depend on the kind
    read_times(fault);
    fault.condition = read_condition();
    if (reader_.has("count")) {
      pick(fault);
    } else {
      read_names(fault);
    }
    reader_.finish();
    line_ = describe(fault);
    spread(fault);
    return fault;
  }
  const std::string& line() const { return line_; }

 private:
  bool is_link() const { return kind_->on == "link"; }

  void read_times(Fault& fault) {
    fault.at = Time{reader_.duration("at", Duration{}).ps};
    if (!reader_.has("until")) return;
    fault.until = Time{reader_.duration("until", duration_max).ps};
    if (*fault.until <= fault.at)
      reader_.error(Errc::value, reader_.where("until"),
                    fmt::format("the fault ends at {} but starts at {}",
                                to_text(*fault.until - Time{}), to_text(fault.at - Time{})),
                    "give an \"until\" after \"at\", or leave it out");
  }

  Condition read_condition() {
    Condition condition{kind_->effect.health};
    if (kind_->effect.measure == Measure::factor)
      condition.rate_factor = reader_.number("factor", std::nullopt, 1e-9, 1);
    if (kind_->effect.measure == Measure::loss) read_loss(condition);
    if (kind_->effect.measure == Measure::slowdown)
      condition.slowdown = reader_.number("factor", std::nullopt, 1, slowdown_max);
    return condition;
  }

  // As a share of packets, or as what a code and the link's own retries leave of bit errors.
  void read_loss(Condition& condition) {
    constexpr double most = 1 - 1e-9;
    if (!reader_.has("ber")) {
      condition.loss = reader_.number("loss", std::nullopt, 0, most);
      return;
    }
    if (reader_.has("loss"))
      reader_.error(Errc::value, reader_.where("ber"), "\"ber\" and \"loss\" of one fault",
                    "give one of them");
    const std::array<std::string, 3> codes{"none", "rs528", "rs544"};
    const double ber = reader_.number("ber", std::nullopt, 0, 0.5);
    const std::size_t code = reader_.choice("fec", codes, 2);
    const bool retries = reader_.flag("retry", false);
    const double lost = std::min(frame_loss(ber, static_cast<Fec>(code), full_frame_bytes), most);
    (retries ? condition.rate_factor : condition.loss) = retries ? 1 - lost : lost;
    bit_errors_ =
        fmt::format(", ber {}, fec {}{}", ber, codes[code],
                    retries ? fmt::format(", retried: {:.6g} of the rate", 1 - lost) : "");
  }

  // `count` of a role's nodes or a tier's cables.
  void pick(Fault& fault) {
    const auto count =
        static_cast<std::size_t>(reader_.count("count", std::nullopt, 1, UINT32_MAX));
    const std::array<std::string, 2> ways{"first", "random"};
    const bool random = reader_.choice("pick", ways, 0) == 1;
    if (is_link()) {
      for (const LinkId link : choose(candidate_links(), count, random)) {
        fault.links.push_back(link);
        fault.links.push_back(reverse(link));
      }
    } else {
      fault.nodes = choose(candidate_nodes(), count, random);
    }
  }

  template <class IdType>
  std::vector<IdType> choose(std::vector<IdType> from, std::size_t count, bool random) {
    if (from.empty()) return {};
    if (count > from.size()) {
      reader_.error(Errc::infeasible, reader_.where("count"),
                    fmt::format("{} requested, but there are only {}", count, from.size()),
                    "reduce the count");
      return {};
    }
    if (random) rng_.shuffle(std::span(from));
    from.resize(count);
    std::ranges::sort(from);
    return from;
  }

  std::vector<NodeId> candidate_nodes() {
    const std::string name = reader_.text("role", std::nullopt);
    if (name.empty()) return {};
    const RoleId role = fabric_.find_role(name);
    if (role.valid() && fabric_.role(role).kind == node_kind_of(kind_->on))
      return fabric_.role(role).nodes;
    std::vector<std::string> known;
    for (const Fabric::Role& r : fabric_.roles())
      if (r.kind == node_kind_of(kind_->on)) known.push_back(r.name);
    unknown("role",
            fmt::format("\"{}\" is not a role of kind {}", name, to_text(node_kind_of(kind_->on))),
            name, known);
    return {};
  }

  std::vector<LinkId> candidate_links() {
    const std::string name = reader_.text("tier", std::nullopt);
    if (name.empty()) return {};
    const auto tier = std::ranges::find(fabric_.tiers(), name, &Fabric::Tier::name);
    if (tier != fabric_.tiers().end()) return tier->links;
    std::vector<std::string> known;
    for (const Fabric::Tier& t : fabric_.tiers()) known.push_back(t.name);
    unknown("tier", fmt::format("unknown tier \"{}\"", name), name, known);
    return {};
  }

  void unknown(std::string_view key, const std::string& what, const std::string& name,
               const std::vector<std::string>& known) {
    reader_.error(Errc::unknown, reader_.where(key), what + did_you_mean(name, known),
                  fmt::format("choose one of: {}", fmt::join(known, ", ")));
  }

  void read_names(Fault& fault) {
    std::vector<Token> tokens = reader_.texts(kind_->on);
    if (!is_link()) {
      const std::vector<Token> others = reader_.texts("node");
      tokens.insert(tokens.end(), others.begin(), others.end());
    }
    if (tokens.empty())
      reader_.error(Errc::parse, reader_.where(), fmt::format("{} has no target", kind_->name),
                    fmt::format("add \"{}: NAME\" or \"count: N\" with \"{}: NAME\"", kind_->on,
                                is_link() ? "tier" : "role"));
    for (const Token& token : tokens) {
      if (is_link()) {
        add_link(token, fault);
      } else {
        add_node(token, fault);
      }
    }
    unique(fault.links);
    unique(fault.nodes);
  }

  template <class IdType>
  static void unique(std::vector<IdType>& ids) {
    std::ranges::sort(ids);
    ids.erase(std::ranges::unique(ids).begin(), ids.end());
  }

  void add_link(const Token& token, Fault& fault) {
    if (token.text.find("->") != std::string_view::npos) {
      const auto link = fabric_.find_link(token);
      if (!link) return reader_.error(link.error());
      return fault.links.push_back(*link);
    }
    const auto cable = fabric_.find_cable(token);
    if (!cable) return reader_.error(cable.error());
    fault.links.push_back(forward(*cable));
    fault.links.push_back(reverse(forward(*cable)));
  }

  void add_node(const Token& token, Fault& fault) {
    const auto node = fabric_.find_node(token);
    if (!node) return reader_.error(node.error());
    if (fabric_.kind(*node) != node_kind_of(kind_->on))
      return reader_.error(
          Errc::value, token.where,
          fmt::format("{} is a {}, not a {}", fabric_.name(*node), to_text(fabric_.kind(*node)),
                      to_text(node_kind_of(kind_->on))),
          fmt::format("specify a {}, or choose another kind of fault",
                      to_text(node_kind_of(kind_->on))));
    fault.nodes.push_back(*node);
  }

  void spread(Fault& fault) {
    if (kind_->effect.spread == Spread::with_parts) {
      const std::vector<NodeId> hosts = fault.nodes;
      for (const NodeId host : hosts) parts_.append(host, fault.nodes);
    }
    if (kind_->effect.spread == Spread::cables || kind_->effect.spread == Spread::inward)
      move_to_cables(fault);
    if (kind_->effect.measure == Measure::slowdown) check_has_gpus(fault);
  }

  // From NICs and switches to what joins them to the network.
  void move_to_cables(Fault& fault) {
    for (const NodeId node : fault.nodes) {
      const std::size_t before = fault.links.size();
      for (const LinkId link : fabric_.out(node)) {
        const NodeId to = fabric_.to(link);
        if (!fabric_.is_switch(to) && fabric_.kind(to) != NodeKind::nic) continue;
        if (kind_->effect.spread == Spread::cables) fault.links.push_back(link);
        fault.links.push_back(reverse(link));
      }
      if (fault.links.size() == before)
        return reader_.error(Errc::infeasible, reader_.where(),
                             fmt::format("{} has no cables to the network", fabric_.name(node)),
                             fmt::format("choose a {} that has some", kind_->on));
    }
    fault.nodes.clear();
    unique(fault.links);
  }

  void check_has_gpus(const Fault& fault) {
    for (const NodeId node : fault.nodes)
      if (fabric_.kind(node) == NodeKind::host && fabric_.gpus_of(node).empty())
        return reader_.error(Errc::infeasible, reader_.where(),
                             fmt::format("{} has no GPUs to slow down", fabric_.name(node)),
                             "choose a host with GPUs");
  }

  std::string describe(const Fault& fault) const {
    std::vector<std::string> names;
    for (const NodeId node : fault.nodes)
      if (names.size() < names_shown) names.push_back(fabric_.name(node));
    std::size_t count = fault.nodes.size();
    for (std::size_t i = 0; i < fault.links.size(); ++i) {
      const LinkId link = fault.links[i];
      const bool both = i + 1 < fault.links.size() && fault.links[i + 1] == reverse(link);
      if (names.size() < names_shown)
        names.push_back(both ? fabric_.name(cable_of(link)) : fabric_.name(link));
      if (both) ++i;
      ++count;
    }
    std::string text = fmt::format("{} {}", kind_->name, fmt::join(names, ", "));
    if (count > names.size()) text += fmt::format(" and {} more", count - names.size());
    if (kind_->effect.measure == Measure::factor)
      text += fmt::format(", factor {}", fault.condition.rate_factor);
    if (kind_->effect.measure == Measure::slowdown)
      text += fmt::format(", factor {}", fault.condition.slowdown);
    if (kind_->effect.measure == Measure::loss)
      text += bit_errors_ + (fault.condition.rate_factor < 1
                                 ? std::string()
                                 : fmt::format(", loss {}", fault.condition.loss));
    if (fault.at > Time{}) text += fmt::format(", from {}", to_text(fault.at - Time{}));
    if (fault.until) text += fmt::format(", until {}", to_text(*fault.until - Time{}));
    return text;
  }

  const Fabric& fabric_;
  HostParts& parts_;
  Errors& errors_;
  Reader reader_;
  Rng rng_;
  const FaultEntry* kind_ = nullptr;
  std::string bit_errors_;  // in words, where a loss was given so
  std::string line_;
};

// The faults that hold at a moment, per link and node, in file order.
class Sweep {
 public:
  explicit Sweep(const std::vector<Fault>& faults) : faults_(faults) {}

  void start(std::uint32_t fault) {
    change(fault,
           [&](Active& active) { active.insert(std::ranges::lower_bound(active, fault), fault); });
  }
  void end(std::uint32_t fault) {
    change(fault, [&](Active& active) { std::erase(active, fault); });
  }

  // Brings the state up to date with every start and end so far.
  const State& settle() {
    apply(touched_links_, links_);
    apply(touched_nodes_, nodes_);
    return state_;
  }
  // The most faults that any link or node had at a time.
  std::size_t overlap() const { return overlap_; }

 private:
  using Active = std::vector<std::uint32_t>;

  template <class Change>
  void change(std::uint32_t fault, Change&& edit) {
    for (const LinkId link : faults_[fault].links) {
      edit(links_[link]);
      touched_links_.push_back(link);
    }
    for (const NodeId node : faults_[fault].nodes) {
      edit(nodes_[node]);
      touched_nodes_.push_back(node);
    }
  }

  template <class IdType>
  void apply(std::vector<IdType>& touched, std::map<IdType, Active>& active) {
    for (const IdType id : touched) {
      const auto it = active.find(id);
      if (it == active.end()) continue;
      overlap_ = std::max(overlap_, it->second.size());
      state_.set(id, combined(it->second));
      if (it->second.empty()) active.erase(it);
    }
    touched.clear();
  }

  Condition combined(const Active& active) const {
    Condition out;
    for (const std::uint32_t fault : active) {
      const Condition& one = faults_[fault].condition;
      out.health = std::max(out.health, one.health);
      out.rate_factor *= one.rate_factor;
      out.loss += one.loss - out.loss * one.loss;
      out.slowdown *= one.slowdown;
    }
    // Many factors may underflow or overflow, many losses round to 1: all stay in their ranges.
    out.rate_factor = std::max(out.rate_factor, 1e-9);
    out.loss = std::min(out.loss, 1 - 1e-9);
    out.slowdown = std::min(out.slowdown, slowdown_max * slowdown_max);
    return out;
  }

  const std::vector<Fault>& faults_;
  std::map<LinkId, Active> links_;
  std::map<NodeId, Active> nodes_;
  std::vector<LinkId> touched_links_;
  std::vector<NodeId> touched_nodes_;
  State state_;
  std::size_t overlap_ = 0;
};

struct Event {
  Time at;
  std::uint32_t fault;
  bool ends;
};

std::vector<Event> events_of(const std::vector<Fault>& faults) {
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < faults.size(); ++i) {
    events.push_back({faults[i].at, i, false});
    if (faults[i].until) events.push_back({*faults[i].until, i, true});
  }
  std::ranges::sort(events, {}, [](const Event& e) { return std::pair(e.at, e.fault); });
  return events;
}

// Faults in order of time, within limits.
class TimelineBuilder {
 public:
  TimelineBuilder(const std::vector<Fault>& faults, const FaultLimits& limits, Where where)
      : faults_(faults), limits_(limits), where_(std::move(where)), sweep_(faults) {}

  Status add_snapshots(std::vector<FaultTimeline::Snapshot>& out) {
    WEFT_TRY_STATUS(check_strikes());
    out.push_back({Time{}, State{}});
    const std::vector<Event> events = events_of(faults_);
    for (std::size_t i = 0; i < events.size();) {
      const Time now = events[i].at;
      for (; i < events.size() && events[i].at == now; ++i) {
        if (events[i].ends) {
          sweep_.end(events[i].fault);
        } else {
          sweep_.start(events[i].fault);
        }
      }
      keep(now, sweep_.settle(), out);
      WEFT_TRY_STATUS(check_work());
    }
    return {};
  }

 private:
  void keep(Time now, const State& state, std::vector<FaultTimeline::Snapshot>& out) {
    if (state.version() == out.back().state.version()) return;
    exceptions_ += state.troubled_links().size() + state.troubled_nodes().size();
    if (now == Time{}) out.clear();
    out.push_back({now, state});
  }

  Status check_strikes() const {
    std::size_t strikes = 0;
    for (const Fault& fault : faults_) strikes += fault.links.size() + fault.nodes.size();
    if (strikes <= limits_.strikes) return {};
    return fail(
        Errc::infeasible, where_,
        fmt::format("the faults hit {} links and nodes, more than {}", strikes, limits_.strikes),
        "target switches instead of their links");
  }

  Status check_work() const {
    if (sweep_.overlap() > limits_.overlap)
      return fail(Errc::infeasible, where_,
                  fmt::format("more than {} simultaneous faults hit the same link or switch",
                              limits_.overlap),
                  "let faults end (\"until\"), or merge them");
    if (exceptions_ > limits_.exceptions)
      return fail(Errc::infeasible, where_,
                  fmt::format("the faults cause more than {} state changes", limits_.exceptions),
                  "use fewer simultaneous faults, or target switches instead of their links");
    return {};
  }

  const std::vector<Fault>& faults_;
  const FaultLimits& limits_;
  Where where_;
  Sweep sweep_;
  std::size_t exceptions_ = 0;
};

}  // namespace

Result<FaultTimeline> read_faults(const Fabric& fabric, const Config& section, std::uint64_t seed,
                                  const FaultLimits& limits) {
  if (section.kind != Config::Kind::null && section.kind != Config::Kind::list)
    return fail(Errc::parse, section.where, "\"faults\" must be a list of maps, one per fault",
                "write \"- {kind: link_down, link: a--b}\" lines");
  if (section.items.size() > limits.faults)
    return fail(Errc::infeasible, section.where,
                fmt::format("{} faults, more than {}", section.items.size(), limits.faults),
                "hit several targets with one fault: every target may be a list");
  FaultTimeline out;
  Errors errors;
  std::vector<Fault> faults;
  HostParts parts(fabric);
  const Rng rng = Rng(seed).stream("faults");
  for (std::size_t i = 0; i < section.items.size(); ++i) {
    FaultReader reader(fabric, parts, section.items[i], i, rng.stream(i), errors);
    faults.push_back(reader.read());
    out.lines.push_back(reader.line());
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  TimelineBuilder builder(faults, limits, section.where);
  WEFT_TRY_STATUS(builder.add_snapshots(out.snapshots));
  return out;
}

namespace {

// `news` without what `routes` still have as down.
State not_before(const State& news, const State& routes) {
  State out = news;
  const auto keep = [&](auto id, const Condition& condition, Condition known) {
    if (condition.health != Health::down) return;
    known.health = Health::down;
    out.set(id, known);
  };
  for (const auto& [link, condition] : routes.troubled_links())
    keep(link, condition, news.link(link));
  for (const auto& [node, condition] : routes.troubled_nodes())
    keep(node, condition, news.node(node));
  return out;
}

}  // namespace

std::vector<FaultTimeline::Snapshot> heard_late(std::span<const FaultTimeline::Snapshot> snapshots,
                                                const Lateness& late) {
  std::vector<Time> times;
  for (const auto& [at, state] : snapshots)
    for (const Duration delay : {Duration{}, late.seen, late.routed, late.noticed})
      if (at.ps > 0 || delay == Duration{}) times.push_back(at + delay);
  std::ranges::sort(times);
  const auto repeats = std::ranges::unique(times);
  times.erase(repeats.begin(), repeats.end());
  // The last that holds at a time, where those after the start count from `delay` on.
  const State healthy;
  const auto last = [&](Time time, Duration delay) {
    const auto after = std::ranges::find_if(snapshots, [&](const auto& snapshot) {
      return snapshot.at.ps > 0 && snapshot.at + delay > time;
    });
    return after == snapshots.begin() ? &healthy : &std::prev(after)->state;
  };
  std::vector<FaultTimeline::Snapshot> out;
  for (const Time time : times) {
    const State* const now = last(time, Duration{});
    const State* const routed = last(time, late.routed);
    const auto view = [&](const State* then, bool before_routes) {
      if (before_routes && then != routed)
        return std::make_shared<const State>(not_before(*then, *routed));
      return then == now ? nullptr : std::make_shared<const State>(*then);
    };
    out.push_back({time, *now});
    State& state = out.back().state;
    state.set_seen(view(last(time, late.seen), late.seen < late.routed));
    state.set_routed(view(routed, false));
    state.set_noticed(view(last(time, late.noticed), false));
  }
  return out;
}

}  // namespace weft::model
