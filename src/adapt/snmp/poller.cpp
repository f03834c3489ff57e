#include "adapt/snmp/poller.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "adapt/snmp/neighbours.hpp"
#include "adapt/snmp/session.hpp"
#include "adapt/snmp/tables.hpp"
#include "adapt/snmp/walk.hpp"

namespace weft::adapt::snmp {

namespace {

constexpr std::size_t targets_max = 100'000, in_flight_max = 1'000, done_max = 10'000;
constexpr int repetitions_max = 1'000, too_big = 1;
// The library keeps its own time of retries: it is asked so often.
constexpr std::int64_t turn_ns = 20'000'000;

constexpr port::Instant never{INT64_MAX};

std::int64_t to_ns(std::chrono::milliseconds span) { return span.count() * 1'000'000; }

}  // namespace

// A device, and what is remembered of it from poll to poll.
struct Agent {
  Target target;
  Memory memory;
  std::string engine;  // of v3, once known
  port::Instant due;
  port::Instant soon = never;          // wanted earlier than that
  port::Instant next_soon{INT64_MIN};  // and not before this
  bool is_waiting = false, is_running = false;
};

// One poll on its way: engine, scalars, then table by table.
struct Run {
  std::size_t agent = 0;
  port::Instant deadline;
  std::optional<Session> session;
  bool is_discovering = false, has_scalars = false;
  std::size_t group = 0;
  std::optional<Walk> walk;
  int repetitions = 1;
  std::size_t requests = 0;
  std::vector<Answered> answers;  // by group, the scalars last
};

struct SnmpPoller::Impl {
  PollerOptions options;
  port::Clock& clock;
  std::vector<Agent> agents;
  std::map<std::string, std::size_t, std::less<>> by_name;
  std::deque<std::size_t> waiting;  // due, and not begun for want of room
  std::vector<Run> runs;
  std::deque<Poll> done;
  PollerCounts counts;

  Impl(const PollerOptions& how, port::Clock& time) : options(how), clock(time) {}

  const std::vector<Group>& asked() const {
    return options.neighbours ? neighbour_groups(*options.neighbours) : groups();
  }

  void schedule(port::Instant now);
  void schedule_soon(std::size_t i, port::Instant now);
  void begin(std::size_t agent, port::Instant now);
  bool advance(Run& run, port::Instant now);
  bool take(Run& run, const Reply& reply);
  bool take_answer(Run& run, const Reply& reply);
  bool open(Run& run);
  bool ask(Run& run);
  enum class End : std::uint8_t { complete, partial, silent, refused };
  void finish(Run& run, End end, const std::string& error = {});
};

void SnmpPoller::Impl::schedule(port::Instant now) {
  const std::int64_t every = to_ns(options.every);
  for (std::size_t i = 0; i < agents.size(); ++i) {
    Agent& agent = agents[i];
    schedule_soon(i, now);
    if (agent.due.ns > now.ns) continue;
    if (agent.is_running || agent.is_waiting)
      ++counts.skipped;
    else
      waiting.push_back(i);
    agent.is_waiting = !agent.is_running;
    agent.due = std::max(agent.due, now + (-every)) + every;
  }
  while (!waiting.empty() && runs.size() < options.in_flight && done.size() < done_max) {
    begin(waiting.front(), now);
    waiting.pop_front();
  }
}

void SnmpPoller::Impl::schedule_soon(std::size_t i, port::Instant now) {
  Agent& agent = agents[i];
  if (agent.soon.ns > now.ns || agent.is_running) return;
  agent.soon = never;
  agent.next_soon = now + to_ns(options.soon);
  agent.due = now + to_ns(std::min(options.every, options.again));
  ++counts.early;
  if (!agent.is_waiting) waiting.push_back(i);
  agent.is_waiting = true;
}

void SnmpPoller::Impl::begin(std::size_t agent, port::Instant now) {
  ++counts.polls;
  agents[agent].is_running = true;
  agents[agent].is_waiting = false;
  Run run;
  run.agent = agent;
  run.deadline = now + to_ns(options.patience);
  run.repetitions = options.repetitions;
  run.answers.resize(asked().size() + 1);
  if (open(run))
    runs.push_back(std::move(run));
  else
    finish(run, End::silent);
}

// The session and its first request. False where even that fails: no socket, no route.
bool SnmpPoller::Impl::open(Run& run) {
  const Agent& agent = agents[run.agent];
  auto session = Session::open(agent.target.agent, agent.target.credentials, agent.engine,
                               {options.timeout, options.retries});
  if (!session) return false;
  run.session = *std::move(session);
  run.is_discovering =
      agent.target.credentials.version == Credentials::Version::v3 && agent.engine.empty();
  ++run.requests;
  ++counts.requests;
  return (run.is_discovering ? run.session->discover() : run.session->get(scalars())).has_value();
}

// The next request; false where there is none left.
bool SnmpPoller::Impl::ask(Run& run) {
  for (; run.group < asked().size(); ++run.group, run.walk.reset()) {
    if (!run.walk) run.walk.emplace(asked()[run.group].columns, options.rows_max);
    const std::vector<Oid> next = run.walk->next();
    if (next.empty()) continue;
    if (++run.requests > options.requests_max) {
      ++counts.cut;
      return false;
    }
    ++counts.requests;
    return run.session->get_bulk(next, run.repetitions).has_value();
  }
  return false;
}

// True while the poll goes on.
bool SnmpPoller::Impl::take_answer(Run& run, const Reply& reply) {
  if (!run.has_scalars) {
    run.has_scalars = true;
    Answered& scalars = run.answers.back();
    scalars.t = clock.wall();
    for (const auto& [oid, value] : reply.values)
      if (value.kind != Value::Kind::absent) scalars.values.insert_or_assign(oid, value);
    if (reply.error_status != 0) ++counts.garbage;
  } else if (reply.error_status == too_big && run.repetitions > 1) {
    run.repetitions /= 2;
  } else {
    WalkCounts seen;
    Answered& answered = run.answers[run.group];
    answered.t = clock.wall();
    run.walk->take(reply.error_status == 0 ? reply.values : VarBinds{}, answered.values, seen);
    counts.loops += seen.loops;
    counts.garbage += seen.garbage;
    counts.cut += seen.cut;
  }
  if (ask(run)) return true;
  finish(run, run.group == asked().size() ? End::complete : End::partial);
  return false;
}

bool SnmpPoller::Impl::take(Run& run, const Reply& reply) {
  switch (reply.what) {
    case Reply::What::answer:
      if (run.is_discovering) break;  // not asked for
      return take_answer(run, reply);
    case Reply::What::engine:
      // A second time: it is another agent now than the one whose id was known.
      if (!run.is_discovering) {
        finish(run, End::partial);
        return false;
      }
      agents[run.agent].engine = reply.engine;
      if (open(run)) return true;
      break;
    case Reply::What::refusal:
      finish(run, End::refused, reply.error);
      return false;
    case Reply::What::silence:
      break;
  }
  finish(run, run.has_scalars ? End::partial : End::silent);
  return false;
}

bool SnmpPoller::Impl::advance(Run& run, port::Instant now) {
  run.session->pump();
  while (const auto reply = run.session->take())
    if (!take(run, *reply)) return false;
  if (now.ns < run.deadline.ns) return true;
  finish(run, run.has_scalars ? End::partial : End::silent);
  return false;
}

void SnmpPoller::Impl::finish(Run& run, End end, const std::string& error) {
  Agent& agent = agents[run.agent];
  agent.is_running = false;
  // A v3 agent that starts anew may have another id, and then has nothing to say to the old one.
  if (end != End::complete) agent.engine.clear();
  Poll poll{agent.target.device, clock.wall(), {}, error};
  poll.is_complete = end == End::complete;
  if (options.neighbours) {
    poll.neighbours = *options.neighbours == model::NeighbourProtocol::lldp
                          ? lldp_neighbours(run.answers)
                          : bgp_neighbours(run.answers);
    poll.neighbours.device = agent.target.device;
  } else if (run.has_scalars) {
    poll.samples = measure(agent.target.device, run.answers, agent.memory);
  }
  // Whoever refuses us is there.
  poll.samples.push_back({poll.received, agent.target.device, "", port::Metric::reachable, 0,
                          end == End::silent ? 0.0 : 1.0});
  counts.complete += end == End::complete ? 1 : 0;
  counts.partial += end == End::partial ? 1 : 0;
  counts.silent += end == End::silent ? 1 : 0;
  counts.refused += end == End::refused ? 1 : 0;
  done.push_back(std::move(poll));
}

SnmpPoller::SnmpPoller(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SnmpPoller::SnmpPoller(SnmpPoller&&) noexcept = default;
SnmpPoller& SnmpPoller::operator=(SnmpPoller&&) noexcept = default;
SnmpPoller::~SnmpPoller() = default;

Result<SnmpPoller> SnmpPoller::create(std::vector<Target> targets, const PollerOptions& options,
                                      port::Clock& clock) {
  using std::chrono::milliseconds;
  const bool is_sane = options.every >= milliseconds(100) && options.timeout >= milliseconds(10) &&
                       options.timeout <= milliseconds(60'000) && options.retries >= 0 &&
                       options.retries <= 10 && options.patience >= options.timeout &&
                       options.soon >= milliseconds(100) && options.again >= options.soon &&
                       options.in_flight >= 1 && options.in_flight <= in_flight_max &&
                       options.repetitions >= 1 && options.repetitions <= repetitions_max &&
                       options.rows_max >= 1 && options.requests_max >= 1;
  if (!is_sane || targets.empty() || targets.size() > targets_max)
    return fail(Errc::value, {}, "SNMP poller options out of range",
                fmt::format("1 to {} agents, every 100 ms or longer, at most {} at once",
                            targets_max, in_flight_max));
  auto impl = std::make_unique<Impl>(options, clock);
  const port::Instant now = clock.now();
  for (Target& target : targets) {
    WEFT_TRY_STATUS(check(target.agent, {target.device, 0, 0}));
    WEFT_TRY_STATUS(check(target.credentials, {target.device, 0, 0}));
    if (!impl->by_name.emplace(target.device, impl->agents.size()).second)
      return fail(Errc::value, {target.device, 0, 0}, "duplicate device", "list it once");
    impl->agents.push_back({.target = std::move(target), .memory = {}, .engine = {}, .due = now});
  }
  return SnmpPoller(std::move(impl));
}

void SnmpPoller::step() {
  Impl& impl = *impl_;
  const port::Instant now = impl.clock.now();
  impl.schedule(now);
  std::erase_if(impl.runs, [&](Run& run) { return !impl.advance(run, now); });
  impl.schedule(now);
}

void SnmpPoller::wait(port::Instant until, int other) {
  Impl& impl = *impl_;
  port::Instant wake = until;
  std::vector<pollfd> fds;
  for (const Run& run : impl.runs) fds.push_back({run.session->fd(), POLLIN, 0});
  const port::Instant now = impl.clock.now();
  if (!impl.runs.empty()) wake = std::min(wake, now + turn_ns);
  if (other >= 0) fds.push_back({other, POLLIN, 0});
  for (const Agent& agent : impl.agents)
    wake = std::min(wake, agent.is_running ? agent.due : std::min(agent.due, agent.soon));
  if (wake <= now || !impl.done.empty()) return;
  const timespec span{(wake - now) / ns_per_s, (wake - now) % ns_per_s};
  ppoll(fds.data(), fds.size(), &span, nullptr);
}

std::optional<Poll> SnmpPoller::take() {
  if (impl_->done.empty()) return std::nullopt;
  Poll out = std::move(impl_->done.front());
  impl_->done.pop_front();
  return out;
}

bool SnmpPoller::poll_soon(std::string_view device) {
  const auto at = impl_->by_name.find(device);
  if (at == impl_->by_name.end()) return false;
  Agent& agent = impl_->agents[at->second];
  agent.soon = std::min(agent.soon, std::max(impl_->clock.now(), agent.next_soon));
  return true;
}

std::string SnmpPoller::interface_name(std::string_view device, std::uint32_t if_index) const {
  const auto at = impl_->by_name.find(device);
  if (at == impl_->by_name.end()) return {};
  const auto& names = impl_->agents[at->second].memory.interfaces;
  const auto name = names.find(if_index);
  return name == names.end() ? std::string() : name->second;
}

const PollerCounts& SnmpPoller::counts() const { return impl_->counts; }

}  // namespace weft::adapt::snmp
