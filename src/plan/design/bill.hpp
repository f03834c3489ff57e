// The bill of materials of a fabric by a price table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/fabric/fabric.hpp"
#include "plan/design/prices.hpp"

namespace weft::plan {

struct Bill {
  // Switches of one role with the same cables on them.
  struct Switches {
    std::string role, type;  // type: "64 x 800 Gbps"
    std::size_t count = 0;
    std::int64_t ports_used = 0;  // cables on each
    double watts = 0, price = 0;  // of all
  };
  // Cables between two roles, of one rate and one span.
  struct Links {
    std::string tier;  // "rtsw--ctsw"
    Rate rate;
    Span span = Span::hall;
    double metres = 0;  // of each
    std::string type;   // "DAC", of one cable
    std::size_t count = 0;
    std::int64_t bundle = 1;  // cables that make one link: more where none is fast enough alone
    std::size_t transceivers = 0;
    double fibre_m = 0;           // of all; 0 for cables that come with their ends
    double watts = 0, price = 0;  // of all
  };
  struct Nics {
    std::string role;
    Rate rate;  // towards the network, all ports of a NIC together
    std::size_t count = 0;
    double watts = 0, price = 0;  // of all
  };

  std::string prices, currency;
  std::vector<Switches> switches;  // in the order of the fabric's roles
  std::vector<Links> links;
  std::vector<Nics> nics;  // with a cable to the network
  std::size_t switch_count = 0, link_count = 0, transceivers = 0, nic_count = 0;
  double fibre_m = 0, watts = 0, price = 0;
};

// Counts what `fabric` is built of: switches, the cables between NICs and switches, and the NICs on
// them. Fails: Errc::unknown with all that the price table lacks.
Result<Bill> bill_of(const model::Fabric& fabric, const Prices& prices);

std::string to_table(const Bill& bill);
// One JSON object, keys in a fixed order.
std::string to_json(const Bill& bill);

}  // namespace weft::plan
