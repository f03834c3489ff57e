#include "observe/telemetry/alertmanager.hpp"

#include <doctest/doctest.h>

#include <string>

#include "model/events/entity.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::observe::telemetry {
namespace {

//   ctsw:0   ctsw:1        ports of rtsw:0: 0 to 7 to the NICs of host:0, 8 and 9 upwards
//     |  \ /   |
//   rtsw:0   rtsw:1
//     |        |
//   host:0   host:1
struct AlertBed {
  model::Fabric fabric;
  Inventory inventory;
  AlertMapping mapping = AlertMapping::built_in();
  AlertReader reader;

  static model::Fabric build() {
    return model::testing::make_fabric(
        "{generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 2, link: 400 Gbps}");
  }
  AlertBed() : fabric(build()), inventory(fabric), reader(inventory, mapping) {
    REQUIRE(inventory.add_csv("address,device\n172.16.0.5,rtsw:1\n", "i.csv").has_value());
  }
  std::string id;  // of the last record
  // One alert: "kind entity second attributes".
  std::string said(std::string_view status, std::string_view labels, int received = 100,
                   std::string_view starts = "2026-01-01T00:00:10Z",
                   std::string_view ends = "2026-01-01T00:01:00.5Z") {
    std::string body =
        R"({"version":"4","receiver":"weft","status":"firing","alerts":[{"status":")";
    body.append(status).append(R"(","labels":)").append(labels);
    body.append(R"(,"annotations":{},"startsAt":")").append(starts);
    body.append(R"(","endsAt":")").append(ends).append(R"(","fingerprint":"f1"}]})");
    const Status read = reader.read(body, {(start + received) * ns_per_s});
    REQUIRE_MESSAGE(read.has_value(), (read ? "" : read.error().text()));
    const model::RecordSet set = reader.take_records();
    std::string out;
    for (const model::Record& row : set.rows) {
      out += std::string(to_text(row.kind)) + " " + name(fabric, row.entity) + " " +
             std::to_string(row.t.ns / ns_per_s - start);
      id = set.ids[row.id];
      for (const auto& [key, value] : set.attrs[row.attrs])
        if (key != "fingerprint") out.append(" ").append(key).append("=").append(value);
    }
    return out;
  }
  static constexpr std::int64_t start = 1'767'225'600;
};

TEST_CASE("firing and resolved, of ports, sessions, devices, NICs") {
  AlertBed bed;
  const char* const down =
      R"({"alertname":"LinkDown","instance":"rtsw-0:9116","ifName":"Ethernet1/8"})";
  CHECK(bed.said("firing", down) == "link_down rtsw:0/8 10 alert=LinkDown");
  const std::string first = bed.id;
  CHECK(bed.said("firing", down, 400) == "link_down rtsw:0/8 10 alert=LinkDown");
  CHECK(bed.id == first);  // the same again while it lasts, and from a reader that was not there
  AlertBed later;
  CHECK(later.said("firing", down, 500) == "link_down rtsw:0/8 10 alert=LinkDown");
  CHECK(later.id == first);
  CHECK(bed.said("resolved", down, 500) == "link_up rtsw:0/8 60 alert=LinkDown");
  CHECK(bed.id != first);
  CHECK(bed.said("firing", down, 900, "2026-01-01T00:10:00Z") ==
        "link_down rtsw:0/8 600 alert=LinkDown");
  CHECK(bed.id != first);
  CHECK(bed.reader.counts().repeated == 1);
  AlertBed other;
  CHECK(other.said(
            "firing",
            R"({"alertname":"BGPSessionDown","instance":"172.16.0.5:9342","peer":"ctsw:1"})") ==
        "bgp_down rtsw:1/9 10 alert=BGPSessionDown");
  AlertBed third;
  const char* const errors =
      R"({"alertname":"NodeNetworkReceiveErrs","instance":"host-1:9100","device":"eth2"})";
  const std::string nic =
      third.fabric.name(third.inventory.nic(third.inventory.device("host:1"), "eth2"));
  CHECK(third.said("firing", errors) == "nic_errors " + nic + " 10 alert=NodeNetworkReceiveErrs");
  // What is no pair is told again when it is sent again, as of then.
  CHECK(third.said("firing", errors, 300) ==
        "nic_errors " + nic + " 300 alert=NodeNetworkReceiveErrs");
  const std::string second = third.id;
  CHECK(third.said("firing", errors, 350).find(" 350 ") != std::string::npos);
  CHECK(third.id != second);
  CHECK(third.said("resolved", errors, 400) ==
        "info " + nic + " 60 alert=NodeNetworkReceiveErrs resolved=crc_errors");
}

TEST_CASE("nothing is lost: unknown alerts, devices, parts, times") {
  AlertBed bed;
  CHECK(bed.said("firing", R"({"alertname":"Mine","instance":"rtsw:1"})") ==
        "info rtsw:1 10 alert=Mine message=alertname=Mine instance=rtsw:1");
  AlertBed second;
  CHECK(second.said("firing", R"({"alertname":"LinkDown","instance":"who:1"})") ==
        "link_down  10 alert=LinkDown entity=who:1");
  AlertBed third;
  CHECK(third.said("firing", R"({"alertname":"LinkDown","instance":"rtsw:1","interface":"x"})", 100,
                   "soon") == "link_down  100 alert=LinkDown entity=rtsw:1/x");
  CHECK(third.reader.counts().without_time == 1);
  CHECK(third.reader.counts().unknown_parts == 1);
  CHECK(bed.reader.counts().unknown_alerts == 1);
  CHECK(second.reader.counts().unknown_devices == 1);
}

TEST_CASE("what is no payload is refused, what is no alert counted") {
  AlertBed bed;
  const std::string deep = std::string(5'000, '[');
  for (const std::string& body : {std::string(), std::string("{"), std::string("[]"),
                                  std::string("{\"version\":\"3\",\"alerts\":[]}"),
                                  std::string("{\"version\":\"4\",\"alerts\":{}}"),
                                  std::string("{\"version\":4,\"alerts\":[]}"),
                                  "{\"version\":\"4\",\"alerts\":" + deep, std::string("\xff\xfe")})
    CHECK_MESSAGE(!bed.reader.read(body, {}).has_value(), body.substr(0, 40));
  CHECK(bed.reader.counts().refused == 8);
  CHECK(bed.reader
            .read(R"({"version":"4","truncatedAlerts":7,"alerts":[1,{},{"status":"off"},
                   {"status":"firing"},{"status":"firing","labels":{"alertname":3}}]})",
                  {5})
            .has_value());
  CHECK(bed.reader.counts().malformed == 3);
  CHECK(bed.reader.counts().truncated == 7);
  // Both have no name, no labels and no start: the second is the first again, and info.
  CHECK(bed.reader.records().rows.size() == 2);
}

TEST_CASE("a mapping file") {
  const auto config = parse_yaml(
      "part_labels: [slot]\n"
      "alerts: [{alert: 'My*', where: {severity: page}, kind: psu_fail}]\n",
      "a.yaml");
  REQUIRE(config.has_value());
  const auto mapping = AlertMapping::from_yaml(*config);
  REQUIRE_MESSAGE(mapping.has_value(), (mapping ? "" : mapping.error().text()));
  CHECK(mapping->part_labels == std::vector<std::string>{"slot"});
  CHECK(mapping->rows.front().kind == model::EventKind::psu_fail);
  CHECK(mapping->rows.size() > 10);
  const auto wrong = parse_yaml("alerts: [{alert: A, kind: link_dwn}, {kind: info}]\n", "a.yaml");
  REQUIRE(wrong.has_value());
  const auto none = AlertMapping::from_yaml(*wrong);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().text().find("link_down") != std::string::npos);
}

}  // namespace
}  // namespace weft::observe::telemetry
