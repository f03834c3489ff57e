// Devices and the cables between them, as a discovery or an inventory lists them, and the fabric
// that they make.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "model/fabric/fabric.hpp"
#include "model/formats/fabric_yaml.hpp"
#include "model/generate/host.hpp"

namespace weft::model {

struct Cabling {
  struct Place {
    std::uint32_t line = 0, column = 0;
  };
  struct Device {
    std::string name;  // from clean_name, unique
    bool is_host = false;
    std::string role;               // of a switch; "": by its distance from the hosts
    std::vector<std::string> nics;  // of a host, in any order
    Place place;
  };
  struct End {
    std::uint32_t device = 0, nic = 0;  // nic: of a host, into Device::nics
    std::string interface;
  };
  struct Cable {
    End a, b;
    Rate rate;            // 0: the list does not say
    double length_m = 0;  // 0: likewise
    Place place;
  };
  std::string file;
  std::vector<Device> devices;
  std::vector<Cable> cables;
  std::vector<std::string> notes;  // what was found and left out

  Where where(Place place) const { return {file, place.line, place.column}; }
};

struct CablingOptions {
  HostSpec host;     // the inside of every host with as many NICs as this has
  Rate rate;         // of cables that the list gives none; 0: there must be none
  Duration latency;  // of a cable of up to 100 m; 5 ns for each further metre
  FabricLimits limits;
};

// Names in a note: "a, b, c and 4 more".
class NameList {
 public:
  void add(std::string name) {
    if (++count_ <= shown_max) names_.push_back(std::move(name));
  }
  std::size_t count() const { return count_; }
  std::string text() const;

 private:
  static constexpr std::size_t shown_max = 3;
  std::vector<std::string> names_;
  std::size_t count_ = 0;
};

// A name that check_name accepts: other characters and ":" become "_", "--" and ".." single, a bare
// number gets an "n" before it; at most 200 characters.
std::string clean_name(std::string_view text);
// Numbers inside names by value: "n9" before "n10".
bool natural_less(std::string_view a, std::string_view b);
// NICs that most hosts have; the larger of equally frequent counts, 0 without hosts.
std::uint32_t usual_nic_count(const Cabling& cabling);

// Levels: a switch with regular hosts (of as many NICs as options.host) is 1, one with other hosts
// alone too unless it is cabled to the former, further switches by distance from those. Roles:
// leaf, spine, core, super_core, level5, ... by level. Hosts that share their first switches are a
// rack; what stays connected without the switches of higher levels is a pod, zone or building. NICs
// are numbered in the order of their names, switches that see NICs of one rail get it. Hosts of
// another number of NICs get the role "other", their NICs "other_nic", and carry no jobs. Devices
// are numbered by place and name, whatever the order of the list. What is odd goes to
// Fabric::notes. Fails: Errc::value on a cable without a rate, on no regular host, beyond `limits`.
// Cost: O(cables log cables).
Result<Fabric> build_cabled_fabric(const Cabling& cabling, const CablingOptions& options);

}  // namespace weft::model
