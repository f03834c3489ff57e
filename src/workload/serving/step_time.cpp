#include "workload/serving/step_time.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace weft::workload {

void StepLoad::add(std::uint32_t tokens_now, std::uint32_t before) {
  tokens += tokens_now;
  ++sequences;
  if (tokens_now == 1 && before > 0) {
    ++decodes;
    decode_pairs += before;
    return;
  }
  prefill_tokens += tokens_now;
  prefill_pairs += double{1} * tokens_now * (before + tokens_now / 2.0);
}

std::uint32_t padded_tokens(std::uint32_t tokens, std::uint32_t max_seqs) {
  const std::uint32_t captured = std::min(512U, 2 * max_seqs);
  if (tokens <= 2 || tokens > captured) return tokens;
  if (tokens <= 4) return 4;
  const std::uint32_t step = tokens <= 256 ? 8 : 16;
  return (tokens + step - 1) / step * step;
}

StepTimes::StepTimes(const KernelProfile& profile, std::uint32_t layers,
                     const ServingLimits& limits, const Communication& communication)
    : profile_(profile), layers_(layers), gap_s_(limits.step_gap.seconds()) {
  const auto& chunks = profile.attention.axis(0);
  least_prefill_ = chunks.size() > 1 ? chunks[1] : 0;
  for (std::uint32_t n = 0; n <= limits.token_budget; ++n) {
    const std::uint32_t padded = padded_tokens(n, limits.max_seqs);
    by_tokens_.push_back(profile.dense_seconds(padded, layers));
    communication_.push_back(communication ? communication(padded) : 0);
  }
  for (std::uint32_t n = 0; n <= limits.max_seqs; ++n)
    by_sequences_.push_back(profile.per_sequence_seconds(n));
}

// What one chunk of that many tokens costs more than as many prompts of `length` tokens as they
// make up, whose tokens look at fewer others.
double StepTimes::excess(double chunk, double length) const {
  const GridTable& table = profile_.attention;
  const double launch = table.at({least_prefill_, 0, 0, 0});
  const double whole = table.at({chunk, 0, 0, 0}) - launch;
  const double part = table.at({std::max(length, least_prefill_), 0, 0, 0}) - launch;
  return std::max(0.0, whole - chunk / std::max(length, least_prefill_) * std::max(0.0, part));
}

// The table knows one prefill and equal decodes. Several prefills count as one of all their tokens
// with the history that gives it as many pairs. Where even no history gives more, the difference
// is taken off. A step with prefills runs other kernels than one without: few tokens count as the
// fewest that were measured.
double StepTimes::attention(const StepLoad& load) const {
  const double history = load.decodes > 0 ? load.decode_pairs / load.decodes : 0;
  if (load.prefill_tokens == 0)
    return profile_.attention.at({0, 0, double{1} * load.decodes, history});
  const double chunk = std::max(double{1} * load.prefill_tokens, least_prefill_);
  const double pairs_per_token = load.prefill_pairs / load.prefill_tokens;
  const double before = pairs_per_token - load.prefill_tokens / 2.0;
  const double seconds =
      profile_.attention.at({chunk, std::max(0.0, before), double{1} * load.decodes, history});
  if (before >= 0) return seconds;
  return std::max(0.0, seconds - excess(chunk, 2 * pairs_per_token));
}

Duration StepTimes::of(const StepLoad& load, double slowdown) const {
  WEFT_DCHECK(load.tokens < by_tokens_.size() && load.sequences < by_sequences_.size());
  const double computes =
      by_tokens_[load.tokens] + by_sequences_[load.sequences] + layers_ * attention(load);
  const double seconds = computes * slowdown + communication_[load.tokens] + gap_s_;
  return {std::llround(std::min(seconds, step_max_s) * 1e12)};
}

}  // namespace weft::workload
