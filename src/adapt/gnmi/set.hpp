// One change of a target's configuration.
#pragma once

#include <chrono>
#include <string_view>

#include "adapt/gnmi/subscriber.hpp"
#include "base/result.hpp"

namespace weft::adapt::gnmi {

// Sets one leaf to true or false (gNMI Set, one update in JSON_IETF), and waits for the answer.
// Fails: Errc::value for a target that cannot be, Errc::parse for the path; Errc::unsupported with
// the target's words where it refuses; Errc::io where nobody knows whether it was done.
Status set_flag(const Target& target, std::string_view path, bool value,
                std::chrono::milliseconds patience);

}  // namespace weft::adapt::gnmi
