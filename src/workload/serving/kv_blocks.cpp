#include "workload/serving/kv_blocks.hpp"

#include "base/check.hpp"

namespace weft::workload {

KvBlocks::KvBlocks(std::uint32_t count)
    : next_(count + 1), previous_(count + 1), users_(count, 1), keys_(count, 0), head_(count) {
  next_[head_] = previous_[head_] = head_;
  for (Block block = 0; block < count; ++block) release(block);
}

void KvBlocks::unlink(Block block) {
  next_[previous_[block]] = next_[block];
  previous_[next_[block]] = previous_[block];
  --free_;
}

KvBlocks::Block KvBlocks::take() {
  WEFT_CHECK(free_ > 0);
  const Block block = next_[head_];
  unlink(block);
  keys_[block] = 0;
  users_[block] = 1;
  return block;
}

void KvBlocks::share(Block block) {
  if (users_[block]++ == 0) unlink(block);
}

void KvBlocks::release(Block block) {
  WEFT_DCHECK(users_[block] > 0);
  if (--users_[block] > 0) return;
  const Block last = previous_[head_];
  next_[last] = block;
  previous_[block] = last;
  next_[block] = head_;
  previous_[head_] = block;
  ++free_;
}

}  // namespace weft::workload
