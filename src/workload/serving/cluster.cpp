#include "workload/serving/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace weft::workload {
namespace {

constexpr Time latest{8'000'000'000'000'000'000};  // what begins then still ends in a Time

}  // namespace

class ServingCluster::State {
  // Replicas of one role, and who gets the next request.
  class Pool {
   public:
    // Its replicas are those of the cluster from `first` on.
    Pool(const StepTimes& times, const Cluster& cluster, std::uint32_t first, std::uint32_t count,
         Replica::Role role)
        : route_(cluster.route), slack_(cluster.limits.token_budget), next_(count, never) {
      for (std::size_t i = first; i < std::size_t{first} + count; ++i)
        replicas_.emplace_back(times, cluster.limits, role,
                               i < cluster.slowdown.size() ? cluster.slowdown[i] : 1);
    }

    std::uint32_t choose(const InferenceRequest& request) {
      if (route_ == RoutePolicy::round_robin) return turn_++ % size();
      const std::uint32_t least = least_loaded();
      if (route_ == RoutePolicy::least_tokens || request.prefix == 0) return least;
      const auto [home, is_new] = homes_.emplace(request.prefix, least);
      const bool full =
          replicas_[home->second].load_tokens() > 2 * replicas_[least].load_tokens() + slack_;
      return is_new || full ? least : home->second;
    }
    void submit(std::uint32_t to, std::uint32_t id, const InferenceRequest& request, Time now) {
      replicas_[to].submit(id, request, now);
      next_[to] = replicas_[to].next();
    }
    void let_go(std::uint32_t at, std::uint32_t id, Time now) {
      replicas_[at].let_go(id, now);
      next_[at] = replicas_[at].next();
    }
    Replica& step(std::uint32_t at) {
      replicas_[at].step();
      next_[at] = replicas_[at].next();
      return replicas_[at];
    }
    // The replica that acts next, of equals the first.
    std::uint32_t first() const {
      return static_cast<std::uint32_t>(std::ranges::min_element(next_) - next_.begin());
    }
    Time next() const { return size() == 0 ? never : *std::ranges::min_element(next_); }
    std::uint32_t size() const { return static_cast<std::uint32_t>(replicas_.size()); }
    const Replica& front() const { return replicas_.front(); }
    void add_counts(std::vector<ReplicaCounts>& out) const {
      for (const Replica& one : replicas_) out.push_back(one.counts());
    }

   private:
    std::uint32_t least_loaded() const {
      return static_cast<std::uint32_t>(
          std::ranges::min_element(replicas_, {}, &Replica::load_tokens) - replicas_.begin());
    }

    RoutePolicy route_;
    std::uint64_t slack_;
    std::uint32_t turn_ = 0;
    std::vector<Replica> replicas_;
    std::vector<Time> next_;
    std::unordered_map<std::uint64_t, std::uint32_t> homes_;
  };

 public:
  State(const std::vector<InferenceRequest>& requests, const StepTimes& times,
        const Cluster& cluster)
      : requests_(requests),
        cluster_(cluster),
        front_(times, cluster, 0, cluster.replicas,
               split() ? Replica::Role::prefill : Replica::Role::whole),
        decode_(times, cluster, cluster.replicas, cluster.decode_replicas, Replica::Role::decode) {
    out_.requests.resize(requests_.size());
  }

  Status check() const {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const Replica& holder = split() ? decode_.front() : front_.front();
      if (!holder.can_hold(requests_[i]))
        return fail(Errc::infeasible, {},
                    fmt::format("request {} has {} tokens, and the KV cache of a replica holds {}",
                                i, std::uint64_t{requests_[i].input} + requests_[i].output,
                                std::uint64_t{cluster_.limits.kv_blocks} * cluster_.limits.block),
                    "give more kv_blocks, or shorten the request");
    }
    return {};
  }

  Time next() const {
    const Time now = std::min({next_arrival(), front_.next(), decode_.next()});
    return now > latest ? never : now;
  }

  void step() {
    const Time now = next();
    if (next_arrival() == now)
      arrive(next_request_++);
    else if (front_.next() == now)
      step_front(now);
    else
      step_decode(now);
  }

  std::vector<Transfer> take_transfers() { return std::exchange(transfers_, {}); }

  void deliver(std::uint32_t id, Time now) {
    RequestTimes& times = out_.requests[id];
    times.first_token = now;
    out_.kv_bytes_moved += cluster_.kv_bytes_per_token * times.input;
    front_.let_go(times.replica, id, now);
    if (times.output == 1)
      end(times, now);
    else
      decode_.submit(times.decode_replica, id, requests_[id], now);
  }

  bool ended() const { return out_.ended == requests_.size(); }

  Result<ServingRun> take_result() {
    if (std::min({next_arrival(), front_.next(), decode_.next()}) != next())
      return fail(Errc::infeasible, {}, "the requests take longer than 92 days",
                  "add replicas, or shorten the trace");
    front_.add_counts(out_.replicas);
    decode_.add_counts(out_.replicas);
    return std::move(out_);
  }

 private:
  bool split() const { return cluster_.decode_replicas > 0; }
  Time next_arrival() const {
    return next_request_ < requests_.size() ? requests_[next_request_].arrival : never;
  }

  void arrive(std::uint32_t id) {
    const InferenceRequest& request = requests_[id];
    RequestTimes& times = out_.requests[id];
    times.arrival = request.arrival;
    times.input = request.input;
    times.output = request.output;
    times.replica = front_.choose(request);
    front_.submit(times.replica, id, request, request.arrival);
  }

  void step_front(Time now) {
    const Replica& replica = front_.step(front_.first());
    for (const std::uint32_t id : replica.started()) out_.requests[id].scheduled = now;
    for (const Replica::Delivery& one : replica.delivered()) {
      RequestTimes& times = out_.requests[one.id];
      if (one.tokens == 1) times.prefilled = times.first_token = now;
      if (split())
        start_transfer(one.id);
      else if (one.last)
        end(times, now);
    }
  }

  void start_transfer(std::uint32_t id) {
    RequestTimes& times = out_.requests[id];
    times.decode_replica = decode_.choose(requests_[id]);
    transfers_.push_back(
        {id, times.replica, times.decode_replica, cluster_.kv_bytes_per_token * times.input});
  }

  void step_decode(Time now) {
    const Replica& replica = decode_.step(decode_.first());
    for (const Replica::Delivery& one : replica.delivered())
      if (one.last) end(out_.requests[one.id], now);
  }

  void end(RequestTimes& times, Time now) {
    times.last_token = now;
    times.ended = true;
    ++out_.ended;
    out_.end = std::max(out_.end, now);
  }

  const std::vector<InferenceRequest>& requests_;
  Cluster cluster_;
  Pool front_, decode_;
  std::uint32_t next_request_ = 0;
  std::vector<Transfer> transfers_;
  ServingRun out_;
};

ServingCluster::ServingCluster(std::unique_ptr<State> state) : state_(std::move(state)) {}
ServingCluster::ServingCluster(ServingCluster&&) noexcept = default;
ServingCluster& ServingCluster::operator=(ServingCluster&&) noexcept = default;
ServingCluster::~ServingCluster() = default;

Result<ServingCluster> ServingCluster::create(const std::vector<InferenceRequest>& requests,
                                              const StepTimes& times, Cluster set) {
  if (set.limits.kv_blocks == 0) {  // as many as never bind
    std::uint64_t longest = 0;
    for (const InferenceRequest& one : requests)
      longest = std::max(longest, std::uint64_t{one.input} + one.output);
    const std::uint64_t at_once = std::min<std::uint64_t>(requests.size(), set.limits.max_seqs);
    const std::uint64_t blocks = at_once * (longest / set.limits.block + 1);
    if (blocks > kv_blocks_max)
      return fail(
          Errc::infeasible, {},
          fmt::format("{} requests of {} tokens at once need {} KV blocks, and {} are the most",
                      at_once, longest, blocks, kv_blocks_max),
          "give kv_blocks");
    set.limits.kv_blocks = static_cast<std::uint32_t>(blocks);
  }
  auto state = std::make_unique<State>(requests, times, set);
  WEFT_TRY_STATUS(state->check());
  return ServingCluster(std::move(state));
}

Time ServingCluster::next() const { return state_->next(); }
void ServingCluster::step() { state_->step(); }
std::vector<ServingCluster::Transfer> ServingCluster::take_transfers() {
  return state_->take_transfers();
}
void ServingCluster::deliver(std::uint32_t request, Time now) { state_->deliver(request, now); }
bool ServingCluster::ended() const { return state_->ended(); }
Result<ServingRun> ServingCluster::take_result() { return state_->take_result(); }

Result<ServingRun> serve(const std::vector<InferenceRequest>& requests, const StepTimes& times,
                         const Cluster& cluster, Duration latency) {
  WEFT_TRY(ServingCluster serving, ServingCluster::create(requests, times, cluster));
  struct Arrival {
    Time at;
    std::uint32_t request;
  };
  std::deque<Arrival> under_way;  // one latency for all: they arrive in order
  while (true) {
    const Time arrives = under_way.empty() ? never : under_way.front().at;
    if (std::min(arrives, serving.next()) == never) return serving.take_result();
    if (arrives <= serving.next()) {
      serving.deliver(under_way.front().request, arrives);
      under_way.pop_front();
      continue;
    }
    const Time now = serving.next();
    serving.step();
    for (const ServingCluster::Transfer& one : serving.take_transfers())
      under_way.push_back({now + latency, one.request});
  }
}

}  // namespace weft::workload
