#include "foreign_storm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/hash.hpp"
#include "base/rng.hpp"

namespace weft::foreign {
namespace {

using model::CableId;
using model::Entity;
using model::entity;
using model::EventKind;
using model::Fabric;
using model::LinkId;
using model::NodeId;
using model::ScopeId;
using model::Source;

constexpr double start_s = 1'800'000'000;
constexpr std::uint32_t card_ports = 36;  // of the spines in the tests' fabric

class Maker {
 public:
  Maker(const Fabric& fabric, const Options& options)
      : fabric_(fabric),
        options_(options),
        rng_(mix64(options.seed * 2 + (options.half == Half::held_out))) {
    for (const NodeId node : fabric.nodes())
      if (fabric.is_switch(node)) (has_hosts(node) ? tors_ : spines_).push_back(node);
    for (const CableId cable : ids<CableId>(fabric.cable_count())) {
      const LinkId link = model::forward(cable);
      if (!fabric.on_wire(link)) continue;
      const bool is_trunk =
          fabric.is_switch(fabric.from(link)) && fabric.is_switch(fabric.to(link));
      (is_trunk ? trunks_ : access_).push_back(cable);
    }
  }

  Storm make();

 private:
  using Cables = std::vector<CableId>;
  // A tale: told from `t` on, returns when it is over.
  using Tale = std::function<double(double t)>;
  struct Cast {
    Cables cables;
    Tale tale;
  };

  // ---- chance ----
  // Evenly in the logarithm, from the quarters of the half.
  double draw(double low, double high) {
    const std::uint64_t quarter = 2 * rng_.below(2) + (options_.half == Half::held_out ? 1 : 0);
    const double at = (static_cast<double>(quarter) + rng_.uniform()) / 4;
    return low * std::pow(high / low, at);
  }
  int count(double low, double high) { return static_cast<int>(std::lround(draw(low, high))); }
  bool chance(double p) { return rng_.uniform() < p; }
  double soon() { return rng_.uniform() * 0.6; }  // for a device to notice and stamp it
  template <class T>
  const T& any(const std::vector<T>& from) {
    return from[rng_.below(from.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& all) {
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[rng_.below(i)]);
  }

  // ---- words ----
  void say(double t, const Entity& about, EventKind kind, Source source = Source::syslog,
           model::Attributes attrs = {}, double value = 1) {
    model::Record row;
    row.t = row.until = {static_cast<std::int64_t>((start_s + t) * 1e9)};
    row.entity = about;
    row.kind = kind;
    row.source = source;
    row.value = value;
    row.attrs = storm_.set.add_attributes(std::move(attrs));
    const bool is_port = about.kind == model::EntityKind::port;
    told_.push_back({row, now_, is_port ? fabric_.from(LinkId(about.id)).value : about.id});
  }
  // ---- the network ----
  bool has_hosts(NodeId node) const {
    return std::ranges::any_of(fabric_.out(node),
                               [&](LinkId out) { return !fabric_.is_switch(fabric_.to(out)); });
  }
  Cables cables_of(NodeId node) const {
    Cables out;
    for (const LinkId link : fabric_.out(node))
      if (fabric_.on_wire(link)) out.push_back(cable_of(link));
    return out;
  }
  // The cable's carrier at one end, as whoever stands there tells it.
  void carrier(double t, LinkId out, bool is_up, std::string_view why = "interface") {
    const NodeId at = fabric_.from(out);
    if (mute_.contains(at) || mute_.contains(fabric_.host_of(at))) return;
    const double seen = t + soon();
    if (!fabric_.is_switch(at))
      return say(seen, entity(at), is_up ? EventKind::nic_up : EventKind::nic_down, Source::agent);
    say(seen, model::port_of(out), is_up ? EventKind::link_up : EventKind::link_down);
    if (fabric_.is_switch(fabric_.to(out))) session(seen + soon(), out, is_up, why);
  }
  void session(double t, LinkId out, bool is_up, std::string_view why) {
    if (mute_.contains(fabric_.from(out))) return;
    model::Attributes attrs;
    if (!is_up && !why.empty()) attrs.emplace_back("reason", why);
    say(t, model::port_of(out), is_up ? EventKind::bgp_up : EventKind::bgp_down, Source::syslog,
        std::move(attrs));
  }
  void both(double t, CableId cable, bool is_up) {
    carrier(t, model::forward(cable), is_up);
    carrier(t, model::reverse(model::forward(cable)), is_up);
  }
  // In any order, over so long; how long it took.
  double one_by_one(double t, Cables cables, double over, bool is_up) {
    shuffle(cables);
    for (const CableId cable : cables) both(t + rng_.uniform() * over, cable, is_up);
    return t + over;
  }
  std::string name(NodeId node) const { return std::string(fabric_.name(node)); }

  // ---- faults ----
  Fault& fault() { return storm_.faults.back(); }
  void expect(std::vector<std::string> causes, std::vector<std::string> roots) {
    fault().causes = std::move(causes);
    fault().roots = std::move(roots);
  }
  Cast cable();
  Cast optic();
  Cast flap();
  Cast card();
  Cast whole_switch(const std::vector<NodeId>& from, const char* cause, bool is_announced);
  Cast control_plane();
  Cast power_of_rack();
  Cast power_of_feed();
  Cast host();
  Cast nic();
  Cast misconfiguration();
  Cast congestion();
  double dark_rack(double t, NodeId tor, double over);
  void background();
  void deliver();

  const Fabric& fabric_;
  const Options& options_;
  Rng rng_;
  Storm storm_;
  std::vector<NodeId> tors_, spines_;
  Cables trunks_, access_;
  std::set<NodeId> mute_;
  std::map<CableId, std::vector<std::pair<double, double>>> taken_;  // when faults were told of it
  struct Told {
    model::Record row;
    std::int32_t fault;
    std::uint32_t teller;
  };
  std::vector<Told> told_;
  std::int32_t now_ = -1;
};

// Pulled, cut or dead: both ends see it, or the light of one direction alone is gone.
Maker::Cast Maker::cable() {
  const CableId it = any(trunks_);
  return {{it}, [this, it](double t) {
            expect({"cable"}, {std::string(fabric_.name(it))});
            const double end = t + draw(200, 7000);
            if (!chance(0.3)) {
              both(t, it, false);
              both(end, it, true);
              return end;
            }
            const LinkId out =
                chance(0.5) ? model::forward(it) : model::reverse(model::forward(it));
            carrier(t, out, false);
            session(t + draw(0.5, 30), model::reverse(out), false, "hold_timer");
            carrier(end, out, true);
            session(end + draw(1, 20), model::reverse(out), true, "");
            return end + 20;
          }};
}

// Light fades, errors grow, in the end perhaps the carrier goes.
Maker::Cast Maker::optic() {
  const CableId it = any(trunks_);
  return {{it}, [this, it](double t) {
            expect({"optic"}, {std::string(fabric_.name(it))});
            const LinkId out =
                chance(0.5) ? model::forward(it) : model::reverse(model::forward(it));
            const double pause = draw(5, 70);
            const int signs = count(5, 40);
            for (int i = 0; i < signs; ++i, t += pause * (0.5 + rng_.uniform()))
              say(t, model::port_of(out),
                  chance(0.4)   ? EventKind::rx_power
                  : chance(0.7) ? EventKind::prefec_ber
                                : EventKind::crc_errors,
                  Source::snmp);
            if (!chance(0.5)) return t;
            both(t, it, false);
            const double end = t + draw(200, 3000);
            both(end, it, true);
            return end;
          }};
}

Maker::Cast Maker::flap() {
  const CableId it = any(trunks_);
  return {{it}, [this, it](double t) {
            expect({"port_flap"}, {std::string(fabric_.name(it))});
            const double pause = draw(3, 240), off = std::min(draw(0.3, 25), pause / 2);
            const int downs = count(4, 16);
            for (int i = 0; i < downs; ++i, t += pause * (0.7 + 0.6 * rng_.uniform())) {
              both(t, it, false);
              both(t + off, it, true);
            }
            return t;
          }};
}

Maker::Cast Maker::card() {
  const NodeId spine = any(spines_);
  const auto links = fabric_.out(spine);
  const auto index =
      static_cast<std::uint32_t>(rng_.below((links.size() + card_ports - 1) / card_ports));
  Cables cables;
  for (std::size_t i = std::size_t{index} * card_ports;
       i < std::min<std::size_t>(links.size(), (std::size_t{index} + 1) * card_ports); ++i)
    cables.push_back(cable_of(links[i]));
  return {cables, [this, cables, spine, index](double t) {
            const Entity it = model::card_of(spine, index);
            expect({"line_card"}, {model::name(fabric_, it)});
            if (chance(0.7)) say(t + draw(0.1, 8), it, EventKind::card_fail);
            one_by_one(t, cables, draw(0.3, 25), false);
            const double back = t + draw(200, 3000);
            say(back, it, EventKind::card_ok);
            return one_by_one(back + 5, cables, draw(2, 30), true);
          }};
}

// It dies port by port, or is taken down by its owner, who first closes its sessions.
Maker::Cast Maker::whole_switch(const std::vector<NodeId>& from, const char* cause,
                                bool is_announced) {
  const NodeId it = any(from);
  const Cables cables = cables_of(it);
  return {cables, [this, it, cables, cause, is_announced](double t) {
            expect({cause}, {name(it)});
            if (is_announced) {
              const double over = draw(1, 10);
              for (const LinkId out : fabric_.out(it))
                if (fabric_.on_wire(out) && fabric_.is_switch(fabric_.to(out)))
                  session(t + rng_.uniform() * over, model::reverse(out), false,
                          chance(0.7) ? "policy" : "graceful");
              t += over + draw(20, 90);
            } else if (chance(0.3)) {
              say(t, entity(it), EventKind::asic_error);
            }
            mute_.insert(it);
            for (const LinkId out : fabric_.out(it))
              if (!fabric_.is_switch(fabric_.to(out)) && chance(0.5))
                say(t + draw(15, 60), entity(fabric_.host_of(fabric_.to(out))),
                    EventKind::probe_host, Source::probe);
            one_by_one(t, cables, is_announced ? 1 : draw(0.2, 12), false);
            if (chance(0.6))
              say(t + draw(8, 60), entity(it), EventKind::device_unreachable, Source::snmp);
            mute_.clear();
            const double back = t + draw(180, 1500);
            say(back, entity(it), EventKind::device_boot);
            return one_by_one(back + draw(1, 20), cables, draw(2, 30), true);
          }};
}

Maker::Cast Maker::control_plane() {
  const NodeId it = chance(0.5) ? any(spines_) : any(tors_);
  return {cables_of(it), [this, it](double t) {
            expect({"control_plane"}, {name(it)});
            if (chance(0.6)) say(t, entity(it), EventKind::process_crash);
            const double over = draw(4, 20), share = draw(0.5, 1), back = t + draw(60, 600);
            for (const LinkId out : fabric_.out(it)) {
              if (!fabric_.is_switch(fabric_.to(out)) || !chance(share)) continue;
              session(t + rng_.uniform() * over, model::reverse(out), false, "hold_timer");
              session(back + rng_.uniform() * 20, model::reverse(out), true, "");
            }
            if (chance(0.5)) say(back - 5, entity(it), EventKind::process_start);
            return back + 20;
          }};
}

double Maker::dark_rack(double t, NodeId tor, double over) {
  const ScopeId rack = fabric_.enclosing(tor, model::ScopeKind::rack);
  mute_.insert(tor);
  std::set<NodeId> hosts;
  for (const LinkId out : fabric_.out(tor))
    if (const NodeId host = fabric_.host_of(fabric_.to(out)); host.valid()) hosts.insert(host);
  mute_.insert(hosts.begin(), hosts.end());
  if (chance(0.6)) say(t + draw(0.1, 5), entity(rack), EventKind::power_lost, Source::oob);
  say(t + draw(2, 20), entity(tor), EventKind::oob_unreachable, Source::oob);
  one_by_one(t, cables_of(tor), over, false);
  for (const NodeId host : hosts) {
    say(t + draw(15, 60), entity(host), EventKind::probe_host, Source::probe);
    // Its management controller is dark as well, which a dead switch does not do.
    say(t + draw(2, 20), entity(host), EventKind::oob_unreachable, Source::oob);
  }
  mute_.clear();
  return t;
}

Maker::Cast Maker::power_of_rack() {
  const NodeId tor = any(tors_);
  return {cables_of(tor), [this, tor](double t) {
            const ScopeId rack = fabric_.enclosing(tor, model::ScopeKind::rack);
            expect({"power"}, {std::string(fabric_.name(rack))});
            dark_rack(t, tor, draw(0.2, 3));
            const double back = t + draw(300, 3000);
            say(back, entity(rack), EventKind::power_ok, Source::oob);
            return one_by_one(back + 90, cables_of(tor), draw(5, 60), true);
          }};
}

// A feed's racks die one after the other, as their batteries do.
Maker::Cast Maker::power_of_feed() {
  const auto& [feed, names] = any(options_.feeds);
  std::vector<NodeId> tors;
  for (const NodeId tor : tors_)
    if (std::ranges::find(names, fabric_.name(fabric_.enclosing(tor, model::ScopeKind::rack))) !=
        names.end())
      tors.push_back(tor);
  Cables cables;
  for (const NodeId tor : tors) std::ranges::copy(cables_of(tor), std::back_inserter(cables));
  return {cables, [this, tors, cables, feed](double t) {
            expect({"power"}, {feed});
            const double over = draw(0.5, 120);
            for (const NodeId tor : tors) dark_rack(t + rng_.uniform() * over, tor, draw(0.2, 3));
            const double back = t + over + draw(300, 3000);
            return one_by_one(back, cables, draw(10, 90), true);
          }};
}

// It hangs or reboots; while it boots its links bounce.
Maker::Cast Maker::host() {
  const NodeId it = any(std::vector<NodeId>(fabric_.hosts().begin(), fabric_.hosts().end()));
  Cables cables;
  for (const NodeId nic : fabric_.nics_of(it))
    std::ranges::copy(cables_of(nic), std::back_inserter(cables));
  return {cables, [this, it, cables](double t) {
            expect({"host"}, {name(it)});
            mute_.insert(it);
            one_by_one(t, cables, draw(0.1, 4), false);
            say(t + draw(10, 60), entity(it), EventKind::agent_silent, Source::prometheus);
            if (chance(0.7))
              say(t + draw(10, 60), entity(it), EventKind::probe_host, Source::probe);
            double back = t + draw(90, 900);
            const auto bounces = rng_.below(4);
            for (std::uint64_t i = 0; i < bounces; ++i) {
              one_by_one(back, cables, 2, true);
              back += draw(4, 60);
              one_by_one(back, cables, 2, false);
              back += draw(4, 60);
            }
            mute_.clear();
            say(back, entity(it), EventKind::host_boot, Source::agent);
            return one_by_one(back, cables, 4, true);
          }};
}

Maker::Cast Maker::nic() {
  const CableId it = any(access_);
  return {{it}, [this, it](double t) {
            const LinkId link = model::forward(it);
            const NodeId card =
                fabric_.is_switch(fabric_.from(link)) ? fabric_.to(link) : fabric_.from(link);
            const bool flaps = chance(0.4);
            // Who sees a port flap can not tell the NIC from its cable.
            expect(flaps ? std::vector<std::string>{"host_nic", "port_flap"}
                         : std::vector<std::string>{"host_nic"},
                   {name(card), std::string(fabric_.name(it))});
            const int downs = flaps ? count(3, 8) : 1;
            const double pause = draw(4, 200);
            for (int i = 0; i < downs; ++i, t += pause) {
              both(t, it, false);
              both(flaps ? t + pause / 3 : t + draw(200, 3000), it, true);
            }
            return t + 3000;
          }};
}

Maker::Cast Maker::misconfiguration() {
  std::vector<NodeId> devices = tors_;
  shuffle(devices);
  devices.resize(static_cast<std::size_t>(count(2, 8)));
  Cables cables;
  for (const NodeId device : devices)
    std::ranges::copy(cables_of(device), std::back_inserter(cables));
  return {cables, [this, devices](double t) {
            const std::string change = fmt::format("{}", 100'000 + storm_.faults.size());
            expect({"misconfiguration"}, {"change:" + change});
            const double back = t + draw(60, 1200);
            for (const NodeId device : devices) {
              const double at = t + draw(0.5, 8);
              say(at, entity(device), EventKind::config_commit, Source::syslog,
                  {{"change", change}});
              for (const LinkId out : fabric_.out(device)) {
                if (!fabric_.is_switch(fabric_.to(out)) || !chance(0.6)) continue;
                session(at + draw(0.3, 8), model::reverse(out), false, "policy");
                session(back + rng_.uniform() * 9, model::reverse(out), true, "");
              }
            }
            return back + 9;
          }};
}

Maker::Cast Maker::congestion() {
  const CableId it = any(access_);
  return {{it}, [this, it](double t) {
            const LinkId a = model::forward(it);
            const LinkId out = fabric_.is_switch(fabric_.from(a)) ? a : model::reverse(a);
            expect({"congestion"}, {name(fabric_.to(out)), std::string(fabric_.name(it))});
            const double pause = draw(3, 25);
            const int signs = count(8, 40);
            for (int i = 0; i < signs; ++i, t += pause)
              say(t, model::port_of(out),
                  chance(0.6) ? EventKind::queue_depth : EventKind::ecn_marks, Source::gnmi);
            return t;
          }};
}

// Single bounces, single bit errors, chatter.
void Maker::background() {
  now_ = -1;
  const double end = options_.hours * 3600;
  const std::size_t speech = told_.size();
  for (std::size_t i = 0; i < speech; ++i) {
    const NodeId node = chance(0.5) ? any(tors_) : any(spines_);
    say(rng_.uniform() * end, entity(node), EventKind::info);
  }
  for (int i = 0; i < 60; ++i)
    say(rng_.uniform() * end, model::port_of(model::forward(any(trunks_))), EventKind::crc_errors,
        Source::snmp);
  for (int i = 0; i < 60; ++i) {
    const double t = rng_.uniform() * end;
    const CableId cable = any(trunks_);
    if (std::ranges::any_of(taken_[cable], [&](const auto& span) {
          return t > span.first - 2400 && t < span.second + 2400;
        }))
      continue;
    taken_[cable].emplace_back(t, t);
    both(t, cable, false);
    both(t + draw(0.2, 3), cable, true);
  }
  for (int i = 0; i < 20; ++i)
    say(rng_.uniform() * end, entity(any(tors_)), EventKind::cpu_high, Source::snmp);
}

// Lost, doubled, late, and stamped by clocks that are off.
void Maker::deliver() {
  std::map<std::uint32_t, double> clock;
  struct Out {
    std::int64_t received;
    std::uint32_t told;
  };
  std::vector<Out> out;
  for (std::uint32_t i = 0; i < told_.size(); ++i) {
    model::Record& row = told_[i].row;
    if (chance(0.03)) continue;
    const auto [off, is_new] = clock.emplace(told_[i].teller, 0);
    if (is_new && chance(0.05)) off->second = (rng_.uniform() - 0.5) * 60;
    const double delay = chance(0.03) ? 2 + 18 * rng_.uniform() : 0.02 + 0.3 * rng_.uniform();
    row.received = {row.t.ns + static_cast<std::int64_t>(delay * 1e9)};
    row.t.ns += static_cast<std::int64_t>(off->second * 1e9);
    row.until = row.t;
    for (int copies = chance(0.03) ? 2 : 1; copies > 0; --copies)
      out.push_back({row.received.ns + (copies - 1) * std::int64_t{700'000'000}, i});
  }
  std::ranges::sort(out, {}, [](const Out& o) { return std::pair(o.received, o.told); });
  for (const Out& o : out) {
    model::Record row = told_[o.told].row;
    row.received = {o.received};
    row.id = storm_.set.add_id(fmt::format("f{}", storm_.set.rows.size()));
    storm_.set.rows.push_back(row);
    storm_.fault_of.push_back(told_[o.told].fault);
    if (told_[o.told].fault >= 0)
      ++storm_.faults[static_cast<std::size_t>(told_[o.told].fault)].records;
  }
}

Storm Maker::make() {
  struct Kind {
    const char* name;
    double weight;
    std::function<Cast()> cast;
  };
  std::vector<Kind> kinds{
      {"cable", 24, [&] { return cable(); }},
      {"optic", 18, [&] { return optic(); }},
      {"port flap", 27, [&] { return flap(); }},
      {"line card", 9, [&] { return card(); }},
      {"switch", 6, [&] { return whole_switch(spines_, "switch", false); }},
      {"rack switch", 8, [&] { return whole_switch(tors_, "rack_switch", false); }},
      {"maintenance", 5, [&] { return whole_switch(spines_, "switch", true); }},
      {"control plane", 9, [&] { return control_plane(); }},
      {"power of a rack", 5, [&] { return power_of_rack(); }},
      {"host", 15, [&] { return host(); }},
      {"host NIC", 15, [&] { return nic(); }},
      {"misconfiguration", 4, [&] { return misconfiguration(); }},
      {"congestion", 5, [&] { return congestion(); }}};
  if (!options_.feeds.empty())
    kinds.push_back({"power of a feed", 4, [&] { return power_of_feed(); }});
  double weights = 0;
  for (const Kind& kind : kinds) weights += kind.weight;
  // What lies near a fault is left alone for a while: who could tell two faults of one port apart?
  for (std::uint32_t i = 0; i < options_.faults; ++i) {
    double at = rng_.uniform() * weights;
    const Kind* kind = kinds.data();
    while (at > kind->weight) at -= (kind++)->weight;
    for (int tries = 0; tries < 50; ++tries) {
      const double t = 60 + rng_.uniform() * (options_.hours * 3600 - 120);
      const Cast cast = kind->cast();
      constexpr double longest = 9000, rest = 2400;
      const bool is_free = std::ranges::none_of(cast.cables, [&](CableId c) {
        return std::ranges::any_of(taken_[c], [&](const auto& span) {
          return t < span.second + rest && t + longest > span.first;
        });
      });
      if (!is_free) continue;
      now_ = static_cast<std::int32_t>(storm_.faults.size());
      storm_.faults.push_back({.kind = kind->name});
      const double end = cast.tale(t);
      for (const CableId c : cast.cables) taken_[c].emplace_back(t, end);
      break;
    }
  }
  background();
  deliver();
  return std::move(storm_);
}

}  // namespace

Storm make_storm(const Fabric& fabric, const Options& options) {
  return Maker(fabric, options).make();
}

}  // namespace weft::foreign
