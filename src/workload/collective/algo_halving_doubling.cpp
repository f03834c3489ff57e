// All-reduce by recursive halving, then recursive doubling (Rabenseifner). Halving goes to the
// nearest rank first, with the largest message; doubling comes back the same way. Where the ranks
// are no power of two, the first ones pair up: the even one hands all its data to the odd one, sits
// out, and gets the result at the end.
#include <fmt/format.h>

#include <bit>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {
namespace {

struct Shape {
  std::uint32_t active;  // the power of two that works
  std::uint32_t folded;  // pairs that count as one
  std::uint32_t rounds;  // log2(active)

  // The rank that works as number v.
  Rank rank(std::uint32_t v) const { return v < folded ? 2 * v + 1 : v + folded; }
};

Shape halving_shape(std::uint32_t n) {
  const std::uint32_t active = std::bit_floor(n);
  return {active, n - active, static_cast<std::uint32_t>(std::bit_width(active)) - 1};
}

enum class Fold : std::uint8_t { in, out };

Stage fold_stage(const Job& job, const Shape& shape, Fold fold) {
  Stage stage{.name = fold == Fold::in ? "fold in" : "fold out"};
  for (std::uint32_t v = 0; v < shape.folded; ++v) {
    const NodeId even = job.node(2 * v), odd = job.node(2 * v + 1);
    stage.flows.push_back(fold == Fold::in ? Edge{even, odd, job.bytes()}
                                           : Edge{odd, even, job.bytes()});
  }
  set_flow_latency(job, stage);
  return stage;
}

// Everybody exchanges `bytes` with the rank 2^bit away.
Stage exchange_stage(const Job& job, const Shape& shape, std::uint32_t bit, std::string name) {
  Stage stage{.name = std::move(name)};
  const double bytes = job.bytes() / static_cast<double>(2u << bit);
  for (std::uint32_t v = 0; v < shape.active; ++v)
    stage.flows.push_back({job.node(shape.rank(v)), job.node(shape.rank(v ^ 1u << bit)), bytes});
  set_flow_latency(job, stage);
  return stage;
}

Result<std::vector<Stage>> halving_doubling_stages(const Job& job) {
  const Shape shape = halving_shape(job.size());
  std::vector<Stage> stages;
  if (shape.folded > 0) stages.push_back(fold_stage(job, shape, Fold::in));
  for (std::uint32_t i = 0; i < shape.rounds; ++i)
    stages.push_back(
        exchange_stage(job, shape, i, fmt::format("halving {}/{}", i + 1, shape.rounds)));
  for (std::uint32_t i = shape.rounds; i-- > 0;)
    stages.push_back(exchange_stage(job, shape, i,
                                    fmt::format("doubling {}/{}", shape.rounds - i, shape.rounds)));
  if (shape.folded > 0) stages.push_back(fold_stage(job, shape, Fold::out));
  return stages;
}

// Blocks that agree with `v` in the bits below `bit`, and have `value` there.
std::vector<std::uint32_t> blocks_of(const Shape& shape, std::uint32_t v, std::uint32_t bit,
                                     std::uint32_t value) {
  const std::uint32_t low = v & ((1u << bit) - 1);
  std::vector<std::uint32_t> blocks;
  for (std::uint32_t b = low | value << bit; b < shape.active; b += 2u << bit) blocks.push_back(b);
  return blocks;
}

void expand_fold(const Job& job, const Shape& shape, Fold fold, MessageWriter& out) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t b = 0; b < shape.active; ++b) all.push_back(b);
  for (std::uint32_t v = 0; v < shape.folded; ++v) {
    const Rank even = 2 * v, odd = 2 * v + 1;
    if (fold == Fold::in)
      out.send({even, odd, job.bytes(), Message::Action::reduce}, all);
    else
      out.send({odd, even, job.bytes(), Message::Action::copy}, all);
  }
  out.end_step();
}

// Halving gives away the blocks whose bit is the partner's; doubling hands over one's own.
void expand_exchange(const Job& job, const Shape& shape, std::uint32_t bit, Message::Action action,
                     MessageWriter& out) {
  const double bytes = job.bytes() / static_cast<double>(2u << bit);
  for (std::uint32_t v = 0; v < shape.active; ++v) {
    const std::uint32_t own = v >> bit & 1u;
    const std::uint32_t value = action == Message::Action::reduce ? own ^ 1u : own;
    out.send({shape.rank(v), shape.rank(v ^ 1u << bit), bytes, action},
             blocks_of(shape, v, bit, value));
  }
  out.end_step();
}

void halving_doubling_messages(const Job& job, MessageWriter& out) {
  const Shape shape = halving_shape(job.size());
  out.set_blocks(shape.active);
  expand_fold(job, shape, Fold::in, out);
  for (std::uint32_t i = 0; i < shape.rounds; ++i)
    expand_exchange(job, shape, i, Message::Action::reduce, out);
  for (std::uint32_t i = shape.rounds; i-- > 0;)
    expand_exchange(job, shape, i, Message::Action::copy, out);
  expand_fold(job, shape, Fold::out, out);
}

}  // namespace

constinit const Algorithm algo::halving_doubling{
    "halving_doubling", {Op::all_reduce}, halving_doubling_stages, halving_doubling_messages};

}  // namespace weft::workload
