#include "observe/probe/one_way.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "base/check.hpp"

namespace weft::observe::probe {
namespace {

using port::batch_max;
using port::Instant;

constexpr std::uint32_t rounds = 8;
// Flows looked at in one go, most of which have nothing to be asked.
constexpr std::size_t scan_max = 4096;
constexpr std::size_t asked_max = std::size_t{1} << 22;

}  // namespace

// A generation is 0 where nothing of the flow had come yet.
bool OneWay::Stream::forgotten() const {
  return lost_track || (known_generation != 0 && generation != known_generation) ||
         count < known_count;
}

bool OneWay::Stream::complete() const {
  if (sequence == known_sequence) return true;
  return answered &&
         (forgotten() || count - known_count + newly_damaged() >= sequence - known_sequence);
}

OneWay::OneWay(std::span<const Flow> flows, std::span<const std::uint32_t> spare_ports,
               std::int64_t settle_ns, std::int64_t timeout_ns)
    : flows_(flows),
      settle_ns_(settle_ns),
      spacing_ns_(std::max(timeout_ns, settle_ns / rounds)),
      states_(flows.size()),
      number_next_(2 * flows.size()),
      // Room for a round and the one before.
      asked_(std::bit_ceil(std::min(asked_max, 2 * flows.size() + batch_max))) {
  std::map<Way, std::uint32_t> ways;
  std::map<port::Endpoint, std::uint32_t> targets;
  const auto way_index = [&](const Way& way) {
    const auto [at, is_new] = ways.emplace(way, static_cast<std::uint32_t>(ways_.size()));
    if (is_new) ways_.push_back(way);
    return at->second;
  };
  for (std::uint32_t i = 0; i < flows.size(); ++i) {
    const Flow& flow = flows[i];
    states_[i].way = way_index({flow.port, flow.local, flow.dscp});
    states_[i].target =
        targets.emplace(flow.target, static_cast<std::uint32_t>(targets.size())).first->second;
    states_[i].streams[0].number = i;
    states_[i].streams[1].number = static_cast<std::uint32_t>(flows.size()) + i;
  }
  for (const std::uint32_t port : spare_ports) way_index({.port = port});
  targets_.resize(targets.size());
}

// A number of which an earlier count is not known gives way to a new one, which starts from 0.
void OneWay::open(std::size_t slot) {
  for (FlowState& flow : states_) {
    Stream& stream = flow.streams[slot];
    if (stream.lost_track && number_next_ <= UINT32_MAX)
      stream = {.number = static_cast<std::uint32_t>(number_next_++)};
  }
}

void OneWay::ask(std::size_t slot, Instant now) {
  Asking& asking = asking_[slot];
  asking = {.on = true, .since = now};
  for (FlowState& flow : states_) {
    flow.streams[slot].answered = false;
    if (!flow.streams[slot].complete()) ++asking.left;
  }
  for (Target& target : targets_) target.heard[slot] = false;
}

void OneWay::close(std::size_t slot) { asking_[slot].on = false; }

OneWay::Mark OneWay::next_mark(std::uint32_t flow, std::size_t slot) {
  Stream& stream = states_[flow].streams[slot];
  return {stream.number, ++stream.sequence};
}

void OneWay::return_mark(std::uint32_t flow, std::size_t slot) {
  WEFT_CHECK(states_[flow].streams[slot].sequence > states_[flow].streams[slot].known_sequence);
  --states_[flow].streams[slot].sequence;
}

const std::vector<OneWay::Question>& OneWay::questions(Instant now) {
  questions_.clear();
  std::size_t scanned = 0;
  for (std::size_t slot = 0; slot < asking_.size(); ++slot) {
    Asking& asking = asking_[slot];
    if (!asking.on || asking.left == 0) continue;
    if (asking.next >= states_.size()) {
      if (asking.round + 1 >= rounds || now - asking.since < (asking.round + 1) * spacing_ns_)
        continue;
      ++asking.round;
      asking.next = 0;
    }
    while (asking.next < states_.size() && questions_.size() < batch_max && scanned++ < scan_max) {
      const auto flow = static_cast<std::uint32_t>(asking.next++);
      if (!states_[flow].streams[slot].complete()) add_question(flow, slot);
    }
  }
  return questions_;
}

void OneWay::add_question(std::uint32_t flow, std::size_t slot) {
  const FlowState& state = states_[flow];
  const Stream& stream = state.streams[slot];
  const std::uint32_t way = way_for(state, slot, asking_[slot].round);
  const Question question{
      .id = asked_next_, .flow = flow, .mark = {stream.number, stream.sequence}, .way = ways_[way]};
  asked_[asked_next_++ & (asked_.size() - 1)] = {question, way, static_cast<std::uint8_t>(slot)};
  questions_.push_back(question);
}

// First the flow itself: what it lost is missing and what it carries arrives before the question.
// Then the way that brought the responder's last answer. As long as none has come about this
// window, every other round tries a way of its own.
std::uint32_t OneWay::way_for(const FlowState& flow, std::size_t slot, std::uint32_t round) const {
  const Target& target = targets_[flow.target];
  if (round == 0) return flow.way;
  if (target.alive != no_way && (target.heard[slot] || round % 2 == 0)) return target.alive;
  const std::size_t stride = std::max<std::size_t>(1, ways_.size() / rounds);
  return static_cast<std::uint32_t>((flow.way + round * stride) % ways_.size());
}

OneWay::Answer OneWay::take(const port::Incoming& in, const Message& reply) {
  if (reply.probe >= asked_next_) return {.taken = Taken::future};
  if (asked_next_ - reply.probe > asked_.size()) return {.taken = Taken::stale};
  Asked& asked = asked_[reply.probe & (asked_.size() - 1)];
  const Question& question = asked.question;
  if (reply.flow != question.mark.number || reply.sequence != question.mark.sequence ||
      in.from != flows_[question.flow].target || in.port != question.way.port)
    return {.taken = Taken::misplaced};
  const std::size_t slot = asked.slot;
  Answer out{.taken = Taken::good, .flow = question.flow, .slot = slot};
  if (std::exchange(asked.answered, true)) {
    out.taken = Taken::duplicate;
    return out;
  }
  FlowState& state = states_[question.flow];
  Target& target = targets_[state.target];
  target.alive = asked.way;
  target.heard = {true, true};
  if (std::exchange(state.overflows_known, true)) out.overflows = reply.overflows - state.overflows;
  state.overflows = reply.overflows;
  Stream& stream = state.streams[slot];
  const bool current = asking_[slot].on && stream.number == question.mark.number &&
                       stream.sequence == question.mark.sequence;
  if (current) note(reply, stream, slot);
  return out;
}

// Probes that were still on the way at an earlier answer may have come since: the highest count
// holds.
void OneWay::note(const Message& reply, Stream& stream, std::size_t slot) {
  if (stream.complete() ||
      (stream.answered && reply.count <= stream.count && reply.damaged <= stream.damaged))
    return;
  stream.answered = true;
  stream.damaged = reply.damaged;
  stream.count = reply.count;
  stream.generation = reply.generation;
  if (!stream.complete()) return;
  WEFT_CHECK(asking_[slot].left > 0);
  --asking_[slot].left;
}

bool OneWay::settled(std::size_t slot, Instant now) const {
  const Asking& asking = asking_[slot];
  return !asking.on || asking.left == 0 || now - asking.since >= settle_ns_;
}

void OneWay::finish(std::uint32_t flow, std::size_t slot, FlowCounts& counts) {
  const FlowState& state = states_[flow];
  Stream& stream = states_[flow].streams[slot];
  counts.heard = targets_[state.target].heard[slot];
  if (counts.sent == 0) return;
  const auto unknown = [&](Unknown why) {
    counts.unknown = counts.sent;
    counts.why = why;
  };
  if (!stream.answered) {
    unknown(counts.heard ? Unknown::unanswered : Unknown::responder_silent);
    stream.lost_track = true;
    return;
  }
  if (stream.forgotten()) {
    unknown(Unknown::forgotten);
  } else {
    const std::uint64_t came = std::min(counts.sent, stream.count - stream.known_count);
    counts.answered = came;
    counts.damaged_forward = std::min(counts.sent - came, stream.newly_damaged());
    counts.lost = counts.sent - came - counts.damaged_forward;
    counts.lost_forward = counts.lost;
  }
  stream.lost_track = false;
  stream.known_sequence = stream.sequence;
  stream.known_count = stream.count;
  stream.known_damaged = stream.damaged;
  stream.known_generation = stream.generation;
}

}  // namespace weft::observe::probe
