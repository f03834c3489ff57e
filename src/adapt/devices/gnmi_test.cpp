// gNMI targets on loopback that keep `enabled` of one port each, the two ends of a cable.
#include <atomic>

#include "adapt/devices/actuator.hpp"
#include "adapt/devices/test_recorded.hpp"
#include "adapt/gnmi/gnmi_test_target.hpp"

namespace weft::adapt::devices {
namespace {

using port::ActionKind;
using port::Service;

constexpr const char* gnmi_cable = "rtsw:0--ctsw:0";

struct Ends {
  std::array<std::atomic<bool>, 2> enabled{true, true};
  std::atomic<bool> is_read_only = false, has_states = true;

  grpc::Status set(std::size_t end, const ::gnmi::SetRequest& request) {
    if (is_read_only) return {grpc::StatusCode::PERMISSION_DENIED, "this target is read only"};
    const auto& update = request.update(0);
    if (request.update_size() != 1 || update.path().elem_size() != 4 ||
        update.path().elem(3).name() != "enabled")
      return {grpc::StatusCode::INVALID_ARGUMENT, "no such path"};
    enabled[end] = update.val().json_ietf_val() == "true";
    return grpc::Status::OK;
  }
  grpc::Status subscribe(std::size_t end, gnmi::TestStream& stream,
                         const ::gnmi::SubscribeRequest& request) const {
    for (const auto& one : request.subscribe().subscription()) {
      if (!has_states) break;
      const auto& path = one.path();
      const bool is_admin = path.elem(path.elem_size() - 1).name() == "admin-status";
      const bool is_up = enabled[end] && (is_admin || enabled[1 - end]);
      ::gnmi::SubscribeResponse out;
      auto& update = *out.mutable_update()->add_update();
      *update.mutable_path() = path;
      update.mutable_val()->set_json_ietf_val(is_up ? "\"UP\"" : "\"DOWN\"");
      stream.Write(out);
    }
    stream.Write(gnmi::sync_message());
    return grpc::Status::OK;
  }
  gnmi::TestTarget target(std::size_t end) {
    return gnmi::TestTarget(
        [this, end](gnmi::TestStream& stream, const ::gnmi::SubscribeRequest& request, int) {
          return subscribe(end, stream, request);
        },
        {.set = [this, end](const ::gnmi::SetRequest& request) { return set(end, request); }});
  }
};

TEST_CASE("a cable is drained by gNMI Set, and its state is read back") {
  Ends ends;
  const gnmi::TestTarget rack = ends.target(0), spine = ends.target(1);
  const model::Fabric fabric = testing::Recorded("eos").fabric();
  auto devices =
      read_devices("device,dialect,address,security\nrtsw:0,openconfig," + rack.address() +
                       ",plain\nctsw:0,openconfig," + spine.address() + ",plain\n",
                   "switches.csv");
  REQUIRE_MESSAGE(devices.has_value(), (devices ? "" : devices.error().text()));
  auto actuator = DeviceActuator::create(
      fabric,
      {.devices = *std::move(devices), .dry_run = false, .settle = std::chrono::seconds(1)});
  REQUIRE(actuator.has_value());
  const auto act = [&](ActionKind kind) {
    return actuator->act({.id = "a", .kind = kind, .entity = gnmi_cable, .case_id = "c"});
  };
  CHECK(actuator->state(gnmi_cable) == Service::in_service);
  REQUIRE(act(ActionKind::drain).has_value());
  CHECK_FALSE(ends.enabled[0]);
  CHECK_FALSE(ends.enabled[1]);
  CHECK(actuator->state(gnmi_cable) == Service::drained);
  REQUIRE(act(ActionKind::undrain).has_value());
  CHECK(actuator->state(gnmi_cable) == Service::in_service);
  ends.is_read_only = true;
  const Status refused = act(ActionKind::drain);
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::unsupported);
  CHECK(refused.error().what.contains("this target is read only"));
  CHECK(actuator->state(gnmi_cable) == Service::in_service);
  ends.has_states = false;
  const auto silent = actuator->state(gnmi_cable);
  REQUIRE(!silent);
  CHECK(silent.error().code == Errc::io);
  CHECK(silent.error().what.contains("gives no value for /interfaces/interface[name="));
}

}  // namespace
}  // namespace weft::adapt::devices
