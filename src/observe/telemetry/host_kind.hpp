// What the ports of hosts are called. Internal to the room.
#pragma once

#include "model/events/event_kind.hpp"

namespace weft::observe::telemetry {

inline model::EventKind on_host(model::EventKind kind) {
  using model::EventKind;
  switch (kind) {
    case EventKind::link_down:
    case EventKind::interface_down:
      return EventKind::nic_down;
    case EventKind::link_up:
      return EventKind::nic_up;
    case EventKind::crc_errors:
      return EventKind::nic_errors;
    default:
      return kind;
  }
}

}  // namespace weft::observe::telemetry
