// The blocks of KV cache of one replica: reference counts, and reuse of what a block still holds.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::workload {

// Blocks whose content nobody uses stay in a list, the longest unused first, and keep their content
// until they are taken. A block's content is told by a key; 0: nothing that can be found again.
class KvBlocks {
 public:
  using Block = std::uint32_t;
  explicit KvBlocks(std::uint32_t count);

  std::uint32_t free_count() const { return free_; }
  bool holds(Block block, std::uint64_t key) const { return keys_[block] == key; }
  bool is_free(Block block) const { return users_[block] == 0; }
  void set_key(Block block, std::uint64_t key) { keys_[block] = key; }

  // The longest unused block, its content gone. free_count() must not be 0.
  Block take();
  // One more user of what the block holds.
  void share(Block block);
  void release(Block block);

 private:
  void unlink(Block block);

  // A ring through the free blocks, of which the last number is the list's head.
  std::vector<Block> next_, previous_;
  std::vector<std::uint32_t> users_;
  std::vector<std::uint64_t> keys_;
  Block head_;
  std::uint32_t free_ = 0;
};

}  // namespace weft::workload
