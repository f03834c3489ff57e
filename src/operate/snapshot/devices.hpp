// Which devices can tell something about a case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/events/case.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::operate::snapshot {

// How a device stands to what a case is traced back to; most wanted first.
enum class Standing : std::uint8_t {
  suspect,    // the root itself, or what the root is a part of
  end,        // at an end of the suspect cable
  inside,     // stands in the suspect rack or zone
  neighbour,  // a switch one cable away
  host,       // a host one cable away
};
std::string_view to_text(Standing standing);

struct Asked {
  std::string device;  // name of a switch or host
  Standing standing = Standing::suspect;
};
struct DeviceChoice {
  std::vector<Asked> asked;
  std::size_t left_out = 0;  // that the bound kept out
};

// The root's device, the ends of its cable, what stands in its scope, and then their neighbours: at
// most `devices_max`, of each standing in the fabric's order; where a standing does not fit whole,
// evenly spread over it. NICs and GPUs stand for their hosts. None where the case has no root.
// Cost: O(links of the devices); of scopes, O(nodes). Deterministic.
DeviceChoice devices_to_ask(const model::Fabric& fabric, const model::Case& c,
                            std::size_t devices_max);

}  // namespace weft::operate::snapshot
