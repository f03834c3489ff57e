#include "port/actuator.hpp"

#include <array>

namespace weft::port {

std::string_view to_text(Service service) {
  constexpr std::array<std::string_view, service_count> names{"in_service", "draining", "drained",
                                                              "unknown"};
  return names[static_cast<std::size_t>(service)];
}

std::string_view to_text(ActionKind kind) {
  return kind == ActionKind::drain ? "drain" : "undrain";
}

}  // namespace weft::port
