// One partition of the fabric and its clock. Internal to the room.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/packet/repair.hpp"
#include "engine/packet/wheel.hpp"
#include "engine/packet/world.hpp"

namespace weft::engine::packet {

// Of a link's pauses, for PauseForest: decided by the switch it leads to, and what it did itself.
struct PauseRecord {
  enum class Kind : std::uint8_t { decided, begun, held, ended };  // in this order at one time
  Ps t;
  Ps length = 0;  // held, ended
  Kind kind;
  bool passed_on = false;      // decided: the port at fault was paused itself
  std::uint32_t link;          // that is paused
  std::uint32_t other = none;  // decided: the port at fault; held: a message
};

// Advances the links that leave its nodes, and the hosts among them. What concerns another
// partition is left in an outbox, or in the ring of a link that crosses, until both have reached
// the end of a window that is no longer than the least latency between them.
class Shard {
 public:
  Shard(World& world, std::uint32_t index, std::uint32_t count);

  void open(std::uint32_t wheel_width, std::uint32_t bucket_bits);
  void own(std::uint32_t link);        // sends on it
  void take_over(std::uint32_t link);  // receives from another shard on it
  void push(Ps t, EventKind kind, std::uint32_t id) { wheel_.push(t, kind, id); }

  // Handles all events before `until`.
  void run(Ps until);
  // Of a run in phases, where others release messages too. Handles events before `until`, until
  // one has outputs or ends the last of `messages`.
  void run_to_output(Ps until, std::size_t messages);
  // Something that the message waits for has happened, at `t`, when all before that was handled.
  void satisfy(std::uint32_t message, Ps t);
  struct Output {
    std::uint32_t message;
    Dependent::When when;
  };
  // Events since this was emptied that messages outside their phase wait for.
  std::vector<Output>& outputs() { return outputs_; }
  Ps next_time() { return wheel_.next_time(); }
  // Forgets everything but its memory; before open().
  void restart();
  // Settles what crosses up to `until`, for the others to take.
  void close_window(Ps until);
  // Takes what the others left for this shard; returns when its next event is.
  Ps open_window(const std::vector<std::unique_ptr<Shard>>& all);
  // When the first of the packets that wait to cross can start. Forgets what has been taken.
  Ps forget_taken();

  Ps now() const { return now_; }  // of its last event
  Ps last_arrival() const { return last_arrival_; }
  // A link for which more waited than is counted (4 GiB); `none` without.
  std::uint32_t overrun() const { return overrun_; }
  std::size_t messages_over() const { return messages_over_; }
  const Conservation& conservation() const { return conservation_; }
  const Counters& counters() const { return counters_; }
  // Of a node that it owns, when all is settled.
  void close_batch(NodeBuffer& node);
  // Adds its counters and what is under way on its links.
  void add_to(PacketRunResult& result) const;

  // Whether a packet that came in by `port` waits for `link`.
  bool holds_from(std::uint32_t link, std::uint32_t port) const;

  // Moves what it has recorded of pauses to `out`.
  void take_pauses(std::vector<PauseRecord>& out);
  // Records those that last when the run ends.
  void end_pauses(Ps t);

  // Bytes that wait for `link` at `t`, the end of a window.
  std::uint32_t waiting_at(std::uint32_t link, Ps t);

  // Of a change of state, between windows.
  void settle_all(Ps t);
  // No pause frame can be heard by the link's sender any more, for the link or the way back is
  // dead: at its two ends a pause is over, as on hardware, where it lasts some quanta unless
  // renewed.
  void end_pause(std::uint32_t link);
  void forget_pause(std::uint32_t link);
  void drop_link(std::uint32_t link);  // all that waits or is on the wire is lost
  void watch_all();                    // after links have got other rates, or died
  void reroute(std::uint32_t connection, Ps t);
  // Packets that were lost at the far end of a link, which lead to a node of this shard.
  std::uint64_t lost_at_far_end(std::uint32_t link) const {
    std::uint64_t out = 0;
    for (auto at = lost_here_.lower_bound({link, 0}); at != lost_here_.end(); ++at) {
      if (at->first.first != link) break;
      out += at->second;
    }
    return out;
  }
  void activate(std::uint32_t connection);

 private:
  // Links.
  void enter_buffer(NodeBuffer& node, std::uint32_t size);
  void leave_buffer(NodeBuffer& node, const Packet& packet, Ps start);
  void record_entry(NodeBuffer& node, std::uint32_t size);
  void settle(std::uint32_t id, Link& link, Ps t);
  void settle_waiting(std::uint32_t id, Link& link, Ps t);
  void settle_classes(std::uint32_t id, Link& link, Ps t);
  ClassQueue* next_class(std::uint32_t id, const Link& link, Ps start);
  Ps next_start(std::uint32_t id, const Link& link) const;
  Ps depart(std::uint32_t id, Link& link, Packet& place, PacketFacts facts, Ps start);
  Packet& slot(Link& link);
  void list(std::uint32_t id, Link& link);
  void append(std::uint32_t id, Link& link, Ps arrival);
  Packet& place_to_wait(std::uint32_t id, Link& link, std::uint32_t traffic_class);
  void wait(std::uint32_t id, Link& link, PacketFacts facts);
  template <class Ring>
  void grow(Ring& ring);
  // Of a link that is settled: whether a packet that comes now goes at once.
  bool idle(const Link& link, std::uint32_t traffic_class) const {
    return link.free <= now_ && (link.paused >> traffic_class & 1) == 0;
  }
  // Puts a packet of this node's own on a link, without asking for room.
  void send(std::uint32_t id, const Packet& packet);
  void notice(std::uint32_t id, Link& link);

  // Switches.
  void arrival(std::uint32_t id);
  // The link by which a packet goes on; `none` where it has arrived.
  std::uint32_t next_link(const Link& in, std::uint32_t id, const Packet& packet);
  std::uint32_t next_by_table(const Link& in, std::uint32_t id, const Packet& packet);
  std::uint32_t next_on_path(const Link& in, const Packet& packet) const;
  std::uint32_t least_queue(std::span<const LinkId> links, std::uint64_t hash);
  std::uint32_t divert(const Packet& packet);
  void forward(std::uint32_t in_id, const Link& in, std::uint32_t out_id, const Packet& packet);
  enum class Room : std::uint8_t { enough, none_at_port, none_in_memory };
  Room room_for(NodeBuffer& node, const Link& in, std::uint32_t out_id, const Packet& packet);
  void look_exactly(NodeBuffer& node);
  void settle_resumed(std::uint32_t id, Link& link);
  void check_pause(NodeBuffer& node, const Link& in, std::uint32_t in_id,
                   std::uint32_t traffic_class);
  void check_resume(NodeBuffer& node);
  Ps relief_time(const NodeBuffer& node, std::uint32_t port);
  void watch(const NodeBuffer& node, std::uint32_t port);
  void watch_again(NodeBuffer& node, const std::uint64_t* ports);
  void on_relief(std::uint32_t ingress);
  void send_frame(std::uint32_t in_id, std::uint32_t traffic_class, EventKind kind);
  bool watched(const NodeBuffer& node, std::uint32_t link) const {
    return node.paused > 0 && world_.reliefs.empty() &&
           (world_.shares_pool || holds_paused(node, link));
  }
  void record_decision(NodeBuffer& node, std::uint32_t port, std::uint32_t in_id,
                       std::uint32_t traffic_class);
  void record_end(std::uint32_t id, const Link& link, Ps t);
  std::uint32_t bytes_from(std::uint32_t link, std::uint32_t port,
                           std::uint32_t traffic_class) const;
  bool holds_paused(const NodeBuffer& node, std::uint32_t link) const;
  void note_source(const NodeBuffer& node, std::uint32_t out_id, const Link& out,
                   std::uint32_t port);
  void on_departure(std::uint32_t id);
  void on_pause(std::uint32_t id, std::uint32_t traffic_class);
  void on_resume(std::uint32_t id, std::uint32_t traffic_class);
  bool leads_to_nic(const Link& out) const;
  bool marks(const Link& out, std::uint32_t out_id, const Packet& packet) const;
  void drop(Room room, std::uint32_t in_id, std::uint32_t out_id, const Packet& packet);
  void lose(std::uint32_t link, const Packet& packet);
  void lose_here(std::uint32_t link, const Packet& packet);
  void count_loss(const Packet& packet);
  void forward_trimmed(const Link& in, std::uint32_t out_id, const Packet& packet);
  std::uint32_t payload_of(const Packet& packet) const;

  // Hosts.
  void wake(std::uint32_t link);
  void on_nic(std::uint32_t link);
  void go_to_port(std::uint32_t connection);
  void leave_circle(Source& source, std::uint32_t connection, Turn turn);
  bool must_wait(std::uint32_t connection, Source& source);
  void skip_paused(Source& source, const Link& link);
  std::uint32_t in_flight(std::uint32_t connection, const Sender& sender) const;
  bool has_more(std::uint32_t connection, const Sender& sender) const;
  bool is_again(std::uint32_t connection) const;
  bool may_send(std::uint32_t connection, const Sender& sender) const;
  std::uint32_t choose_queue_pair(std::uint32_t message) const;
  void send_next(std::uint32_t connection, std::uint32_t link);
  std::uint32_t take_psn(std::uint32_t connection, std::uint32_t& message);
  std::uint32_t size_of(const Sender& sender, std::uint32_t message, std::uint32_t psn) const;
  std::uint32_t choose_port(std::span<const LinkId> links, std::uint32_t turn) const;
  transport::Entropy draw_entropy(std::uint32_t connection);
  std::uint32_t route_of(std::uint32_t connection);
  std::uint32_t route_of_next(std::uint32_t connection);
  void pace(std::uint32_t connection, std::uint32_t size);
  void skip_to_message(Sender& sender) const;
  void on_start(std::uint32_t message);
  void release(std::uint32_t message, Dependent::When when);
  void satisfy_one(std::uint32_t message);
  void deliver(std::uint32_t link, const Packet& packet);
  void on_data(std::uint32_t link, const Packet& packet);
  void receive_in_order(std::uint32_t link, const Packet& packet);
  void receive_any_order(std::uint32_t link, const Packet& packet);
  bool accept_below(std::uint32_t connection, std::uint32_t from, std::uint32_t to);
  void on_ack(const Packet& packet);
  void on_selective_ack(const Packet& packet);
  void on_nack(const Packet& packet);
  void on_cnp(const Packet& packet);
  void acknowledge_below(std::uint32_t connection, std::uint32_t psn);
  void rewind(Sender& sender, std::uint32_t psn);
  void send_again_all(std::uint32_t connection);
  void read_telemetry(const Packet& ack, std::uint32_t psn);
  // Lost packets, with selective repeat.
  Way way_of(std::uint32_t connection, std::uint32_t path) const;
  bool follows_entropy() const;
  std::optional<Ps> latency_back(const Packet& packet, std::uint32_t at) const;
  void note_loss(const Packet& packet, std::uint32_t at);
  void note_drop(std::uint32_t link, const Packet& packet);
  void take_notice(const LossNotice& notice);
  void read_notice(const LossNotice& notice);
  void open_entry(const LossNotice& notice, std::uint32_t psn);
  void learn_of_losses(std::uint32_t connection, std::uint32_t psn, std::uint32_t path);
  Ps patience(std::uint32_t connection, const Repair& repair, std::uint32_t timeouts) const;
  void on_loss(std::uint32_t connection);
  bool take_lost(std::uint32_t connection, std::uint32_t psn);
  void hold_trimmed(std::uint32_t connection, std::uint32_t psn);
  void hold_lost(std::uint32_t connection, std::uint32_t psn);
  void hold_received(std::uint32_t connection, std::uint32_t psn);
  void note_repeat(std::uint32_t connection, std::uint32_t psn);
  void close_loss(std::uint32_t connection, std::uint32_t psn);
  void close_losses(std::uint32_t connection);
  // Admission.
  void ask_for_credit(std::uint32_t connection, std::uint64_t packets);
  void keep_request(std::uint32_t connection, std::uint64_t demand);
  void ask_on_new_path(std::uint32_t connection);
  void ask_again(std::uint32_t connection);
  void send_request(std::uint32_t connection, std::uint64_t demand);
  void on_request(const Packet& packet);
  void on_grant_due(std::uint32_t id);
  void demand(std::uint32_t connection, std::uint32_t packets);
  void note_arrival(const Packet& packet);
  void arm_pacer(std::uint32_t node);
  void on_grant(const Packet& packet);
  void clear_slot(std::uint32_t connection);
  void send_back(std::uint32_t connection, PacketType type, std::uint32_t psn,
                 std::uint32_t traffic_class);
  // Acknowledgements.
  enum class Urgent : std::uint8_t { no, yes };
  void answer(std::uint32_t link, const Packet& packet, std::uint32_t number, Urgent urgent);
  void on_ack_due(std::uint32_t connection);
  bool take_received(std::uint32_t connection, std::uint32_t psn);
  std::uint32_t hear(const Packet& ack);

  void arm_timeout(std::uint32_t connection);
  void on_timeout(std::uint32_t connection);
  void reply(std::uint32_t link, const Packet& to, PacketType type, std::uint32_t psn);

  void watch_departure(std::uint32_t id, const Link& link, const Packet& packet);
  // Where classes are counted.
  void count_in_class(std::uint32_t link, const Packet& packet, std::uint64_t LinkCounters::* what);
  void count_waiting(std::uint32_t link, std::uint32_t traffic_class, std::int64_t bytes);
  void count_pause(std::uint32_t link, std::uint32_t traffic_class, bool begins);

  void handle(const Event& event);
  void post(Ps t, EventKind kind, std::uint32_t id, std::uint32_t shard);

  World& world_;
  std::uint32_t index_;
  Ps now_ = 0;
  Ps last_arrival_ = 0;
  std::uint32_t overrun_ = none;
  Wheel wheel_;
  RingMemory memory_;
  // For each shard: events, and links with something to hand over.
  struct Outbox {
    std::vector<Event> events;
    std::vector<std::uint32_t> links;
    std::vector<LossNotice> losses;
  };
  std::vector<Outbox> outbox_;
  Ps window_end_ = 0;
  std::vector<std::uint32_t> receiving_across_;  // links
  std::vector<std::uint32_t> owned_;
  // By link and class: lost at the far end of a link that another shard sends on, whose tally is
  // its own.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> lost_here_;
  // By class, cause and port.
  std::map<std::tuple<std::uint8_t, LosslessDrops::Cause, std::uint32_t>, std::uint64_t>
      lossless_drops_;
  std::vector<PauseRecord> pauses_;  // where pause trees are asked for
  std::vector<Output> outputs_;
  std::multiset<LossNotice> notices_;               // for senders here, not yet due
  std::map<std::uint32_t, Repair> repairs_;         // by connection
  std::vector<std::pair<Ps, std::uint32_t>> told_;  // packets, while losses are learned of
  std::size_t messages_over_ = 0;
  Counters counters_;
  std::vector<std::uint64_t> to_check_;  // ports, while resumes are sent
  std::vector<const Link*> holding_;     // while a relief is worked out
  Conservation conservation_;
  std::vector<TierCounters> tiers_;
};

}  // namespace weft::engine::packet
