// Queues and rates over time, as far as somebody asked for them. Internal to the room.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/packet/shard.hpp"

namespace weft::engine::packet {

// Samples at equal intervals, between windows. When there are too many, every other one goes and
// the interval doubles: the memory stays bounded and the whole run is covered.
class Sampler {
 public:
  // Fails: Errc::unknown for a link that the fabric does not have, or a message that is no number
  // of one.
  static Result<Sampler> create(const World& world);

  Ps next() const { return next_; }
  void sample(World& world, const std::vector<std::unique_ptr<Shard>>& shards, Ps at);
  std::vector<Series> take() const;

 private:
  struct Watched {
    std::uint32_t id;  // link or message
    std::string name;
    std::uint64_t bytes = 0;
    std::vector<double> queue, rate;
  };
  void thin();

  Ps interval_ = 0, next_ = never;
  std::size_t samples_max_ = 0;
  std::vector<double> time_s_;
  std::vector<Watched> links_, messages_;
};

}  // namespace weft::engine::packet
