// The hands of a service in a lab: drains and undrains on its daemons, and sees by its kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "adapt/lab/lab.hpp"
#include "base/result.hpp"
#include "port/actuator.hpp"

namespace weft::adapt::lab {

struct LabActuatorOptions {
  // Test packets each way over a cable; fewer, and no less than a fifth, where there are many.
  std::size_t packets_each_way = 1'000;
};

class LabActuator : public port::Actuator {
 public:
  // Fails: as open_lab().
  static Result<LabActuator> create(const std::string& lab_name,
                                    const LabActuatorOptions& options = {});
  LabActuator(LabActuator&&) noexcept;
  LabActuator& operator=(LabActuator&&) noexcept;
  ~LabActuator() override;

  // drain() and undrain() of the lab, alone on it; waits up to 5 s for another command to be done.
  Status act(const port::Action& action) override;
  // Drained: the sessions are shut at the ends of the cable, or on the neighbours of the switch,
  // and no packet between NICs meets it by the kernels' routes. In service: no session is shut (it
  // may be broken). Draining: between the two, or without traffic because daemons were asked so.
  // Unknown: no daemon that would know answers. With static routes only the traffic counts. What
  // the lab's files say is not asked.
  Result<port::Service> state(std::string_view entity) override;
  // UDP packets both ways over each cable alone, bound to its interfaces, whatever routing says,
  // over 64 pairs of ports and several classes of service. Cables of NICs may be asked for too.
  // Cost: 0.8 s for up to 32 cables.
  Result<port::Check> check(std::string_view entity) override;
  // The same, and packets of these flows over those of their links that the entity has.
  Result<port::Check> check_flows(std::string_view entity,
                                  std::span<const port::Flow> flows) override;

 private:
  LabActuator(std::unique_ptr<Lab> lab, const LabActuatorOptions& options);
  std::unique_ptr<Lab> lab_;  // its fabric, plan and options; what is drained is read anew
  LabActuatorOptions options_;
};

}  // namespace weft::adapt::lab
