// The hands of a service: taking parts out of service and back, and seeing whether it is so.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/names.hpp"
#include "base/result.hpp"

namespace weft::port {

enum class Service : std::uint8_t {
  in_service,
  draining,  // asked to attract nothing, and not empty yet
  drained,
  unknown,  // nobody can say
};
inline constexpr auto service_names =
    std::to_array<std::string_view>({"in_service", "draining", "drained", "unknown"});
inline constexpr std::size_t service_count = service_names.size();
constexpr std::span<const std::string_view> names_of(Service) { return service_names; }
constexpr std::string_view to_text(Service service) { return name_of(service); }

enum class ActionKind : std::uint8_t { drain, undrain };
inline constexpr auto action_kind_names = std::to_array<std::string_view>({"drain", "undrain"});
constexpr std::span<const std::string_view> names_of(ActionKind) { return action_kind_names; }
constexpr std::string_view to_text(ActionKind kind) { return name_of(kind); }

struct Action {
  // The same for every try of one action, and of no other: whoever acts on it twice does nothing
  // the second time.
  std::string id;
  ActionKind kind = ActionKind::drain;
  std::string entity;   // a switch or a cable, in the naming grammar
  std::string case_id;  // why
};

// What test traffic met that was sent over a part alone, drained or not.
struct Check {
  std::uint64_t sent = 0, lost = 0;
  // The least share of its nominal rate that the part, or a cable of it, was found to run at; 1
  // where nobody measures it.
  double rate_share = 1;
  friend bool operator==(const Check&, const Check&) = default;
};

// Packets that went missing in the network: one flow over one direction of a cable. What loses only
// some flows (a bad hash bucket, a bad entry of a table) shows on these and on no others.
struct Flow {
  std::string link;      // "ctsw:2->rtsw:3": the direction in which it crossed the part
  std::string src, dst;  // NICs
  std::uint16_t sport = 0, dport = 0;  // UDP; 0: the one on which responders listen
  std::string traffic_class;
  friend auto operator<=>(const Flow&, const Flow&) = default;
};

// Calls may wait, for as long as the adapter's own time limit allows, and come from one thread.
class Actuator {
 public:
  virtual ~Actuator() = default;
  // Asks for it. Success says that it was taken, not that it is so. Doing again what was done, or
  // is so already, succeeds. Fails: Errc::unknown for what it cannot act on, Errc::infeasible where
  // the network would come to harm, Errc::io.
  virtual Status act(const Action& action) = 0;
  // What the network itself shows, not what it was asked for. Fails: Errc::io.
  virtual Result<Service> state(std::string_view entity) = 0;
  // Sends packets over every cable of it, from one end to the other, whatever routing says.
  // Fails: Errc::io; Errc::unsupported where there is no means, and people have to confirm.
  virtual Result<Check> check(std::string_view entity) = 0;
  // The same, with packets of these flows among them. Who cannot forge flows checks as above.
  virtual Result<Check> check_flows(std::string_view entity, std::span<const Flow> flows) {
    static_cast<void>(flows);
    return check(entity);
  }
};

}  // namespace weft::port
