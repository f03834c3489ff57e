#include "workload/serving/replica.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::workload {
namespace {

// Keys: the owner's number above that of the block; request_tokens_max bounds the latter.
constexpr unsigned block_bits = 24;
constexpr std::uint64_t shared_bit = std::uint64_t{1} << 63;

}  // namespace

Replica::Replica(const StepTimes& times, const ServingLimits& limits, Role role, double slowdown)
    : times_(times),
      slowdown_(slowdown),
      limits_(limits),
      role_(role),
      depth_(limits.stages),
      cache_(limits.kv_blocks),
      group_blocks_(1),
      stage_free_(limits.stages, Time{}) {
  // A stage cannot begin on a token that the last stage has not drawn yet.
  limits_.asynchronous = limits.asynchronous && limits.stages == 1;
  if (limits_.asynchronous) depth_ = 2;
}

bool Replica::can_hold(const InferenceRequest& request) const {
  const std::uint32_t output = role_ == Role::prefill ? 1 : request.output;
  return blocks_of(request.input + output) <= limits_.kv_blocks;
}

void Replica::submit(std::uint32_t id, const InferenceRequest& request, Time now) {
  Job job;
  job.id = id;
  job.input = request.input;
  job.output = role_ == Role::prefill ? 1 : request.output;
  if (role_ == Role::decode) {
    job.promised = job.produced = 1;
    job.received = job.started = true;
  }
  if (request.prefix != 0) {
    job.prefix_tokens = request.prefix_tokens;
    job.group = groups_.emplace(request.prefix, groups_.size() + 1).first->second;
    if (group_blocks_.size() <= job.group) group_blocks_.resize(job.group + 1);
  }
  load_ += job.input + job.produced;
  const auto index = static_cast<Index>(jobs_.size());
  index_.emplace(id, index);
  jobs_.push_back(std::move(job));
  waiting_.push_back(index);
  if (flying_.empty()) next_ = std::min(next_, now);
}

void Replica::let_go(std::uint32_t id, Time now) {
  Job& job = jobs_[index_.at(id)];
  release(job);
  job.old_blocks = {};
  if (flying_.empty() && !waiting_.empty()) next_ = std::min(next_, now);
}

std::uint64_t Replica::key(const Job& job, std::uint32_t block) const {
  if (shares(job, block)) return shared_bit | std::uint64_t{job.group} << block_bits | block;
  return (std::uint64_t{job.id} + 1) << block_bits | block;
}

// The first blocks of the request that are still in the cache; at least one token is left to
// compute, for the next token comes of it.
void Replica::find_cached(const Job& job, std::uint32_t total,
                          std::vector<KvBlocks::Block>& hits) const {
  hits.clear();
  if (!limits_.prefix_cache) return;
  const std::vector<KvBlocks::Block>& shared = group_blocks_[job.group];
  for (std::uint32_t k = 0; k < (total - 1) / limits_.block; ++k) {
    const auto& places = shares(job, k) ? shared : job.old_blocks;
    if (k >= places.size() || !cache_.holds(places[k], key(job, k))) return;
    hits.push_back(places[k]);
  }
}

void Replica::make_findable(Job& job) {
  if (!limits_.prefix_cache) return;
  for (; job.keyed < job.computed / limits_.block; ++job.keyed) {
    const KvBlocks::Block block = job.blocks[job.keyed];
    cache_.set_key(block, key(job, job.keyed));
    if (!shares(job, job.keyed)) continue;
    auto& places = group_blocks_[job.group];
    if (places.size() <= job.keyed) places.resize(job.keyed + 1);
    places[job.keyed] = block;
  }
}

bool Replica::allocate(Job& job, std::uint32_t tokens) {
  const std::uint32_t wanted = blocks_of(tokens);
  if (wanted > job.blocks.size() + cache_.free_count()) return false;
  while (job.blocks.size() < wanted) job.blocks.push_back(cache_.take());
  return true;
}

// The last blocks first: they are then the first to be taken by others.
void Replica::release(Job& job) {
  for (auto block = job.blocks.rbegin(); block != job.blocks.rend(); ++block)
    cache_.release(*block);
  job.old_blocks = std::move(job.blocks);
  job.blocks.clear();
  job.keyed = 0;
}

void Replica::preempt(Index index) {
  Job& job = jobs_[index];
  release(job);
  job.computed = 0;
  job.received = false;
  ++counts_.preemptions;
  if (!limits_.asynchronous) {  // what is in the pipeline is computed again
    ++job.epoch;
    job.promised = job.produced;
  }
  waiting_.push_front(index);
}

void Replica::take_in(Job& job, Index index, std::uint32_t tokens, StepLoad& load, Step& step) {
  load.add(tokens, job.computed);
  counts_.computed_tokens += tokens;
  job.computed += tokens;
  if (job.computed == known_tokens(job)) {
    ++job.promised;
    step.samples.push_back({index, job.epoch});
  }
  make_findable(job);
}

// False when a request lost its blocks.
bool Replica::schedule_running(StepLoad& load, Step& step) {
  bool kept = true;
  for (std::size_t i = 0; i < running_.size() && load.tokens < limits_.token_budget; ++i) {
    const Index index = running_[i];
    Job& job = jobs_[index];
    const std::uint32_t total = known_tokens(job);
    if (job.promised >= job.output || job.computed >= total) continue;
    const std::uint32_t tokens = std::min(total - job.computed, limits_.token_budget - load.tokens);
    bool alive = true;
    while (alive && !allocate(job, job.computed + tokens)) {
      const Index victim = running_.back();
      running_.pop_back();
      preempt(victim);
      kept = false;
      alive = victim != index;
    }
    if (!alive) break;
    take_in(job, index, tokens, load, step);
  }
  return kept;
}

// All of a prompt must fit, though only a chunk of it is computed now.
bool Replica::admit(Job& job, std::uint32_t total, std::uint32_t budget) {
  if (job.received) {
    if (!allocate(job, total)) return false;
    job.computed = job.input;
    return true;
  }
  find_cached(job, total, hits_);
  const auto shared = std::ranges::count_if(hits_, [&](auto b) { return !cache_.is_free(b); });
  if (blocks_of(total) - static_cast<std::uint32_t>(shared) > cache_.free_count()) return false;
  for (const KvBlocks::Block block : hits_) cache_.share(block);
  job.blocks = hits_;
  job.keyed = static_cast<std::uint32_t>(hits_.size());
  job.computed = job.keyed * limits_.block;
  counts_.cached_tokens += job.computed;
  WEFT_CHECK(allocate(job, job.computed + std::min(total - job.computed, budget)));
  return true;
}

void Replica::schedule_waiting(StepLoad& load, Step& step) {
  while (!waiting_.empty() && load.tokens < limits_.token_budget &&
         running_.size() < limits_.max_seqs) {
    const Index index = waiting_.front();
    Job& job = jobs_[index];
    const std::uint32_t total = known_tokens(job);
    const std::uint32_t budget = limits_.token_budget - load.tokens;
    if (!admit(job, total, budget)) return;
    waiting_.pop_front();
    running_.push_back(index);
    if (!job.started) started_.push_back(job.id);
    job.started = true;
    take_in(job, index, std::min(total - job.computed, budget), load, step);
  }
}

// One more step into the pipeline; false when there is nothing to do.
bool Replica::launch(Time now) {
  Step step;
  if (!spare_.empty()) {
    step.samples = std::move(spare_.back());
    spare_.pop_back();
  }
  StepLoad load;
  if (schedule_running(load, step)) schedule_waiting(load, step);
  if (load.tokens == 0) return false;
  const Duration whole = times_.of(load, slowdown_);
  const Duration stage{whole.ps / limits_.stages};
  Time at = now;
  for (Time& free : stage_free_) at = free = std::max(at, free) + stage;
  step.end = at;
  ++counts_.steps;
  counts_.busy = counts_.busy + stage;
  flying_.push_back(std::move(step));
  return true;
}

void Replica::finish(Job& job, Index index) {
  load_ -= job.input + job.produced;
  if (role_ != Role::prefill) release(job);
  job.old_blocks = {};
  if (const auto at = std::ranges::find(running_, index); at != running_.end())
    running_.erase(at);
  else  // it lost its blocks while its last token was computed
    std::erase(waiting_, index);
}

void Replica::deliver(const Step& step) {
  for (const Item& item : step.samples) {
    Job& job = jobs_[item.job];
    if (item.epoch != job.epoch) continue;
    ++job.produced;
    ++load_;
    const bool last = job.produced == job.output;
    delivered_.push_back({job.id, job.produced, last});
    if (last) finish(job, item.job);
  }
}

void Replica::step() {
  WEFT_DCHECK(next_ != never);
  delivered_.clear();
  started_.clear();
  const Time now = next_;
  if (!flying_.empty()) {
    deliver(flying_.front());
    flying_.front().samples.clear();
    spare_.push_back(std::move(flying_.front().samples));
    flying_.pop_front();
  }
  while (flying_.size() < depth_ && launch(now)) continue;
  next_ = flying_.empty() ? never : flying_.front().end;
}

}  // namespace weft::workload
