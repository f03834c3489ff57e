// Commands by JSON-RPC: Arista eAPI and Cisco NX-API.
#pragma once

#include <memory>

#include "adapt/devices/session.hpp"

namespace weft::adapt::devices {

// Of a device whose dialect's transport is one of the two. Both must outlive it.
std::unique_ptr<Session> open_rpc_session(const Device& device, const Settings& settings);

}  // namespace weft::adapt::devices
