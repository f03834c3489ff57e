#include "observe/telemetry/message_miner.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/config.hpp"
#include "model/formats/test_fabric.hpp"
#include "observe/telemetry/syslog_reader.hpp"

namespace weft::observe::telemetry {
namespace {

constexpr Timestamp when{1'795'233'910 * ns_per_s};  // 2026-11-21

struct MinerBed {
  model::Fabric fabric = model::testing::two_rack_zone();
  Inventory inventory{fabric};
  MessageMiner miner;

  void take(const std::string& text, const Catalogue& catalogue = Catalogue::built_in()) {
    SyslogReader reader(inventory, catalogue, {.unknown = &miner});
    reader.take("<28>Nov 21 04:05:06 rtsw-0 " + text, when, "");
  }
};

TEST_CASE("messages that differ in numbers, names or a word are one template") {
  MinerBed bed;
  const Catalogue none = Catalogue::built_in();
  bed.take("oddd[1]: laser of Ethernet1/1 (lane 3) gone odd, code 0x17", none);
  bed.take("oddd[1]: laser of Ethernet1/0 (lane 11) gone odd, code 0x9", none);
  bed.take("oddd[1]: laser of Ethernet1/1 (lane 2) gone mad, code 0x9", none);
  bed.take("oddd[1]: no laser of that name at all here", none);
  bed.take("Agent: %ODD-4-LASER: Interface Ethernet1/1, link down, code 7", none);
  const auto found = bed.miner.proposals();
  REQUIRE(found.size() == 3);
  CHECK(found[0].count == 3);
  CHECK(found[0].key == "oddd");
  CHECK_FALSE(found[0].is_mnemonic);
  CHECK(found[0].text == "laser of {port} (lane {*}) gone {*} code {*}");
  CHECK(found[0].example.ends_with("Ethernet1/1 (lane 3) gone odd, code 0x17"));
  CHECK(found[1].text == "no laser of that name at all here");
  CHECK(found[2].is_mnemonic);
  CHECK(found[2].key == "ODD-4-LASER");
  CHECK(found[2].text == "Interface {port}, link down, code {*}");
  CHECK(found[2].kind == "link_down");
}

TEST_CASE("a proposal loads as a catalogue, and reads what it was made from as benign") {
  MinerBed bed;
  const std::string odd[] = {
      "oddd: a \"quoted\" {1} 2 3 back\\slash", "oddd: ", "oddd: two  blanks 1 ",
      "Agent: %ODD-4-A: peer 10.0.0.1 (AS 65001) is odd", "oddd: \x01\xff tail"};
  for (const std::string& text : odd) bed.take(text);
  const auto proposals = bed.miner.proposals();
  const auto config = parse_yaml(to_yaml(proposals), "proposed.yaml");
  REQUIRE_MESSAGE(config.has_value(), to_yaml(proposals));
  const auto catalogue = Catalogue::from_yaml(*config);
  REQUIRE_MESSAGE(catalogue.has_value(), (catalogue ? "" : catalogue.error().text()));
  SyslogReader reader(bed.inventory, *catalogue, {});
  for (const std::string& text : odd) reader.take("<28>Nov 21 04:05:06 rtsw-0 " + text, when, "");
  CHECK(reader.counts().benign == std::size(odd));
  CHECK(reader.counts().known == 0);
}

TEST_CASE("memory has a bound, and what is beyond it is counted") {
  MinerBed bed;
  SyslogMessage message;
  message.program = "p";
  const model::NodeId device = bed.inventory.device("rtsw-0");
  std::string key;
  for (std::size_t i = 0; i < MessageMiner::templates_max + 5; ++i) {
    key = "K" + std::to_string(i);
    message.key = key;
    message.text = "text";
    bed.miner.add(bed.inventory, device, message, "line");
  }
  message.key = {};
  bed.miner.add(bed.inventory, device, message, "line");
  CHECK(bed.miner.proposals().size() == MessageMiner::templates_max);
  CHECK(bed.miner.dropped() == 6);
}

}  // namespace
}  // namespace weft::observe::telemetry
