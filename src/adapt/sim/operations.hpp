// A simulated network that is operated: parts break, tell of it, are drained, mended and returned.
//
// Nothing is simulated packet by packet: what a part would lose is known, and devices, probers,
// actuators and technicians act accordingly. The same calls after the same seed give the same
// lines. Every fault, and every visit, act and check of a part, draws from a random stream of its
// own, so that one fault more or another policy leaves the draws of all others as they were.
// Constants and assumptions: docs/rehearse.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_text.hpp"
#include "base/rng.hpp"
#include "base/timestamp.hpp"
#include "model/events/entity.hpp"
#include "model/events/event_kind.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/fault_catalogue.hpp"
#include "model/fabric/state.hpp"
#include "port/actuator.hpp"

namespace weft::adapt::sim {

// How a part can be broken: the kinds of the catalogue that a simulated network has. A rehearsal
// plans the first nine.
enum class FaultKind : std::uint8_t {
  cable,          // no carrier
  grey,           // a share of the packets is lost in one direction, carrier on
  optic,          // one end gets less and less light; in the end packets are lost
  flap,           // bursts in which the carrier comes and goes
  device,         // a whole switch
  card,           // a line card of a switch
  control_plane,  // a switch loses its sessions and forwards on
  nic,            // of a host
  host,
  dead_link,     // nothing passes, the carrier stays until sessions time out
  degraded,      // a share of a cable's rate is left
  corrupt,       // a bit of a share of the packets flips, and no frame check sees it
  delay,         // a time more
  jitter,        // up to a time more
  reorder,       // neither loss nor delay that a probe would see
  duplicate,     // the same
  lossy_switch,  // a share is lost on all cables of a switch
  lossy_nic,
  daemon_kill,  // sessions of a switch close, and routes lead around it
  daemon_stop,
  daemon_hang,
  blackhole,       // a switch drops what goes to one host
  icmp_ratelimit,  // no traffic suffers
};
inline constexpr std::size_t break_count = 23;
// Directions of a cable.
enum class Way : std::uint8_t { forward, reverse, both };
inline constexpr std::uint32_t optic_turns = 10;  // of less and less light, before packets are lost
const model::FaultEntry& catalogued(FaultKind kind);

struct OperationsSettings {
  std::uint64_t seed = 1;
  std::uint32_t ports_per_card = 36;  // switches with no more ports have no line cards
  std::uint64_t check_packets = 10'000;
  // What may become of an act, each with its probability; otherwise it works at once.
  struct ActuatorFaults {
    double fails = 0;                      // Errc::io, no effect
    double unheard = 0;                    // Errc::io, and it works, perhaps late
    double lies = 0;                       // success, no effect
    double late = 0;                       // success, and it works later
    double refuses = 0;                    // Errc::infeasible, no effect
    double blind = 0;                      // of looks and checks: Errc::io
    std::int64_t late_ns = 10 * ns_per_s;  // the longest delay
  } actuators;
  // Whoever is called comes after `visit_least_ns` and an exponential time with this mean.
  std::int64_t visit_least_ns = 30 * ns_per_minute;
  std::int64_t visit_mean_ns = 240 * ns_per_minute;
  double nothing_found = 0.2;  // of visits to what does not fail all the time
  // Probers name a part that loses; then say so again after `probe_every_ns`, and in the long run
  // every `probe_later_ns`. Not where probes are drawn from troubles() (world.hpp): their evidence
  // is for the service's own localiser.
  std::int64_t probe_every_ns = ns_per_s, probe_later_ns = 5 * ns_per_minute;
  bool tells_probes = true;
};

class Operations final : public port::Actuator {
 public:
  struct Fault {
    FaultKind kind = FaultKind::cable;
    model::Entity part;
    Timestamp start;
    std::optional<Timestamp> end;  // it lasts
    double loss = 1;               // of the packets that cross it, at its worst
    Way way = Way::forward;        // of a cable: the directions that suffer
    std::int64_t delay_ns = 0;     // of delay and jitter
    double rate_factor = 1;        // of degraded
    model::NodeId victim;          // of a black hole: the host that is not reached
    std::int64_t lasts_ns = 0;     // and ends by itself then; 0: never
    bool is_lemon = false;         // comes back however often it is mended
    std::uint32_t turns = 0;       // of its story so far
    std::uint64_t mark = 0;        // of the turn to come: others are void
    bool is_in_burst = false;      // of flaps: its carrier is unsteady just now
    bool has_no_carrier = false;
    bool has_no_session = false;
    bool is_silent = false;  // of devices: the CPU is dead too
  };
  // A fault to come.
  struct Start {
    FaultKind kind = FaultKind::cable;
    model::Entity part;  // of cable, grey, optic and flap a cable; of card a card; else a node
    double loss = 1;
    std::int64_t lasts_ns = 0;       // it ends by itself then; 0: never
    std::int64_t again_mean_ns = 0;  // as begin_lemon(); 0: repairs hold
    // Names its random stream and its records. 0: it follows from kind, part, and how many of them
    // began there before.
    std::uint64_t key = 0;
    Way way = Way::forward;  // these as Fault has them
    std::int64_t delay_ns = 0;
    double rate_factor = 1;
    model::NodeId victim;
  };
  // What crosses a link suffers just now.
  struct Trouble {
    double loss = 0;
    double damage = 0;      // of what is not lost: share with a changed payload
    double duplicates = 0;  // the same: share that comes twice
    std::int64_t delay_ns = 0, jitter_ns = 0;
  };
  // What a switch drops though all of its cables are well.
  struct BlackHole {
    model::NodeId at, victim;  // a switch; a host
  };
  // Packets of the network that were lost on a part, by a fault, while it was relied on.
  struct Harm {
    std::uint32_t fault = 0;  // in faults()
    model::Entity part;       // a cable, or a first switch that is gone with all below
    double loss = 0;          // of what crosses it
    Timestamp from, to;
  };
  struct Effect {  // an act that changed something
    Timestamp t;
    port::Action action;
  };
  struct Visit {
    Timestamp t;
    std::string entity;
    bool has_found = false;  // and mended
  };
  struct Line {  // a record as a JSON line
    Timestamp received;
    std::string text;
  };

  // `fabric` must outlive it.
  Operations(const model::Fabric& fabric, const OperationsSettings& settings, Timestamp start);

  // Everything until then happens. Time does not go back.
  void advance(Timestamp now);
  // When something happens next; none: never.
  std::optional<Timestamp> next_due() const;

  // A fault begins now. Returns its number in faults().
  std::uint32_t begin(const Start& start);
  std::uint32_t begin(FaultKind kind, const model::Entity& part, double loss = 1,
                      std::int64_t lasts_ns = 0) {
    return begin({.kind = kind, .part = part, .loss = loss, .lasts_ns = lasts_ns});
  }
  // Begins at `t`, which is not before now().
  void begin_at(Timestamp t, const Start& start);
  // The same for a part whose repairs do not hold: mended, it fails again after an exponential
  // time with this mean, until it is replaced.
  std::uint32_t begin_lemon(FaultKind kind, const model::Entity& part, double loss,
                            std::int64_t again_mean_ns);
  void end(std::uint32_t fault);
  void end_all();  // and no lemon fails again

  // What sources said since the last call, in the order of receipt.
  std::vector<Line> lines();

  enum class Job : std::uint8_t { mend, replace };
  // Somebody is sent to a part. One visit to a part at a time: who is on the way to mend it and is
  // told to replace it does so.
  void call_technician(std::string_view entity, Job job);
  // Those that ended since the last call.
  std::vector<Visit> visits();
  std::uint64_t visit_count() const { return visit_count_; }

  Status act(const port::Action& action) override;
  Result<port::Service> state(std::string_view entity) override;
  Result<port::Check> check(std::string_view entity) override;
  Result<port::Check> check_flows(std::string_view entity,
                                  std::span<const port::Flow> flows) override;

  // How actuators behave from now on.
  void set_actuators(const OperationsSettings::ActuatorFaults& faults) {
    settings_.actuators = faults;
  }

  // The truth.
  const std::vector<Fault>& faults() const { return faults_; }
  std::vector<Harm> harms() const;  // those that go on end now
  const std::vector<Effect>& effects() const { return effects_; }
  // Parts that are out of service, or are going to be: a late drain counts from its acceptance.
  std::vector<model::Entity> drained() const;
  std::vector<model::Entity> broken() const;  // parts with a fault
  // Of links that are not as they should be. Drained ones suffer as others do.
  std::map<model::LinkId, Trouble> troubles() const;
  std::vector<BlackHole> black_holes() const;
  // As routing sees it: what has no carrier or no session is down, what is drained is draining.
  model::State routing() const;
  // Of hosts that send and answer nothing.
  bool is_silent(model::NodeId host) const { return is_mute(host); }
  bool has_carrier(model::CableId cable) const { return cables_[cable.index()].downs == 0; }
  bool has_session(model::CableId cable) const {
    return has_carrier(cable) && cables_[cable.index()].timed_out == 0;
  }
  bool is_drained(model::CableId cable) const;
  // Advances with everything that the four above depend on.
  std::uint64_t version() const { return version_; }
  // Cables of the network that a part is or has.
  std::vector<model::CableId> cables_of(const model::Entity& part) const;
  Timestamp now() const { return now_; }

 private:
  struct Event {
    enum class Kind : std::uint8_t { turn, end, effect, visit, again, start } kind = Kind::turn;
    std::uint32_t index = 0;  // of a fault, a late act, a visit, a planned fault
    std::uint64_t mark = 0;
  };
  struct Late {
    port::Action action;
    model::Entity entity;
    bool is_seen = false;  // its state shows that it is under way
    bool is_over = false;  // it had its effect, or another act of the part came later
  };
  struct Called {
    std::string entity;
    model::Entity part;
    Job job = Job::mend;
  };
  // The random streams of a fault. What is drawn for one turn shifts no other turn.
  struct Script {
    std::uint64_t key = 0;
    Rng root;
    Rng pace;   // of the fault itself: when it goes on
    Rng voice;  // of what is said in this turn
    std::uint32_t turns = 0, records = 0;
  };
  struct Lemon {
    std::int64_t again_mean_ns = 0;
    std::uint64_t key = 0, failures = 0;
  };
  struct Cable {
    std::uint32_t downs = 0;      // faults without which it had carrier
    std::uint32_t timed_out = 0;  // and a session
    bool is_drained = false;      // itself or at one end
  };

  void happen(const Event& event);
  void schedule(std::int64_t in_ns, Event event);
  void turn(std::uint32_t index);
  void plan_turn(std::uint32_t index, std::int64_t in_ns);
  void serve(const port::Action& action, const model::Entity& entity);
  bool is_in_use(model::CableId cable) const;
  enum class Visible : std::uint8_t { hidden, seen };
  void serve_late(const port::Action& action, const model::Entity& entity, Visible visible,
                  Rng& rng);
  void forget_late(const model::Entity& entity);
  void visit(const Called& called);
  void come_again(std::uint32_t index);
  bool is_touched(const Fault& fault, const model::Entity& part) const;
  double loss_now(const Fault& fault) const;
  double loss_over(const Fault& fault, model::LinkId link) const;
  double loss_of_check(model::CableId cable) const;
  double rate_of(model::CableId cable) const;
  void weigh(std::uint32_t index);
  void weigh_all();
  void open_harm(std::uint32_t fault, const model::Entity& part, double loss);
  void close_harms(std::uint32_t fault);
  void add_blow(std::uint32_t fault, const model::Entity& part, std::int64_t ns);
  // An own stream for each time that `what` happens at the part.
  Rng occasion(std::string_view what, const model::Entity& part);

  // What is said of it (operations_tell.cpp).
  std::int64_t tell(Fault& fault, std::uint32_t index);
  void tell_end(Fault& fault, std::uint32_t index);
  std::int64_t poll_ports(std::uint32_t index);
  std::int64_t tell_grey(const Fault& fault, std::uint32_t index);
  std::int64_t tell_dead_link(Fault& fault, std::uint32_t index);
  std::int64_t tell_lossy(const Fault& fault, std::uint32_t index);
  std::int64_t tell_daemon(Fault& fault, std::uint32_t index);
  void sessions_off(Fault& fault);
  void sessions_on(Fault& fault, std::uint32_t index);
  std::int64_t tell_optic(const Fault& fault, std::uint32_t index);
  std::int64_t tell_flap(Fault& fault, std::uint32_t index);
  std::int64_t tell_device(Fault& fault, std::uint32_t index);
  std::int64_t tell_card(const Fault& fault, std::uint32_t index);
  std::int64_t tell_sessions(const Fault& fault, std::uint32_t index);
  std::int64_t tell_nic(const Fault& fault, std::uint32_t index);
  std::int64_t tell_host(const Fault& fault, std::uint32_t index);
  void carrier_off(std::uint32_t fault, model::CableId cable, std::int64_t after_ns);
  void carrier_on(std::uint32_t fault, model::CableId cable, std::int64_t after_ns);
  void all_off(const Fault& fault, std::uint32_t index, double spread_s);
  void tell_hosts_behind(std::uint32_t fault, model::NodeId device);
  struct Word {
    model::Source source = model::Source::syslog;
    model::Entity entity;
    model::EventKind kind = model::EventKind::info;
    double value = 1;
    std::string_view reason = {};
  };
  // `fault`: the one that it is said of. A record without its attributes.
  JsonObject line(std::uint32_t fault, std::int64_t t_ns, const Word& word);
  void say(std::uint32_t fault, const Word& word, std::int64_t after_ns);
  void say_probe(std::uint32_t fault, const model::Entity& part, model::EventKind kind,
                 double loss);
  void say_rate(const Fault& fault, std::uint32_t index, double share);
  // Seconds, of this turn's words and of when the fault goes on.
  std::int64_t voice(std::uint32_t fault, double low_s, double high_s);
  std::int64_t pace(std::uint32_t fault, double low_s, double high_s);
  bool is_mute(model::NodeId node) const { return mute_[node.index()] > 0; }

  const model::Fabric& fabric_;
  OperationsSettings settings_;
  Timestamp now_;
  std::map<std::pair<Timestamp, std::uint64_t>, Event> agenda_;
  std::map<std::pair<Timestamp, std::uint64_t>, std::string> said_;
  std::uint64_t serial_ = 0, version_ = 0;
  std::vector<Fault> faults_;
  std::vector<Script> stories_;  // of each fault
  std::vector<Start> planned_;
  std::set<std::uint32_t> lasting_;  // faults that have not ended
  std::map<model::Entity, Lemon> lemons_;
  std::map<std::pair<std::string_view, model::Entity>, std::uint64_t> occasions_;  // so far
  std::vector<Late> late_;
  std::vector<Called> called_;
  // Parts that somebody is on the way to, and for what: an index into called_.
  std::map<std::string, std::uint32_t, std::less<>> awaited_;
  std::vector<Visit> visits_;
  std::uint64_t visit_count_ = 0;
  std::set<model::Entity> drained_;
  std::vector<Cable> cables_;
  std::vector<std::uint32_t> mute_;  // by node: faults that keep it from speaking
  std::vector<Effect> effects_;
  std::vector<Harm> harms_;
  std::map<std::uint32_t, std::vector<Harm>> open_;  // by fault
};

}  // namespace weft::adapt::sim
