// What a subscriber asks of targets.
#pragma once

#include <span>
#include <vector>

#include "adapt/gnmi/path.hpp"
#include "adapt/gnmi/subscriber.hpp"

namespace gnmi {
class CapabilityResponse;
class Path;
class SubscribeRequest;
}

namespace weft::adapt::gnmi {

// Every option and target that cannot be is an error.
Errors check(const std::vector<Target>& targets, const SubscriberOptions& options);

void fill_path(const TreePath& from, ::gnmi::Path& out);

// Options that were checked; of their n subscriptions those with the numbers in `paths`, where
// n + i is number i as samples.
void fill_request(const SubscriberOptions& options, const Target& target, Encoding encoding,
                  std::span<const std::size_t> paths, ::gnmi::SubscribeRequest& out);

// Encodings of ours that the target has, the best first; JSON_IETF where it has none.
std::vector<Encoding> usable_encodings(const ::gnmi::CapabilityResponse& response);

}  // namespace weft::adapt::gnmi
