// Announced windows: what fails inside them is no news.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/events/episode.hpp"
#include "operate/triage/parts.hpp"

namespace weft::operate::triage {

// All that would be touched if the entity failed, ascending.
std::vector<PartId> parts_under(const Parts& parts, const Suspects& suspects,
                                const model::Entity& entity);

class Maintenance {
 public:
  Maintenance() = default;
  // The parts under each episode's entities: all that would be touched if they failed. Fails:
  // Errc::unknown for names that the fabric does not know, each with the episode's id.
  static Result<Maintenance> create(const Parts& parts, const Suspects& suspects,
                                    const std::vector<model::Episode>& episodes);

  // One more window, after the others; an id that is known already changes nothing. Of more than
  // windows_max the oldest are forgotten.
  void announce(std::string id, Timestamp start, Timestamp end, std::vector<PartId> parts);
  static constexpr std::size_t windows_max = 10'000;
  // Windows over exactly these parts that are open at `at` end there.
  void end(std::span<const PartId> parts, Timestamp at);

  bool is_empty() const { return windows_.empty(); }
  // The first window, in the order given, that is open at `at` and holds all of `parts`; "" for
  // none. Cost: O(windows open then x parts x log).
  std::string_view covering(std::span<const PartId> parts, Timestamp at) const;

 private:
  struct Window {
    std::string id;
    Timestamp start, end;
    std::vector<PartId> parts;  // ascending
  };
  std::deque<Window> windows_;
};

}  // namespace weft::operate::triage
