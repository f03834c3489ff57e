#include "adapt/gnmi/decoder.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <gnmi.pb.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "adapt/gnmi/mapping.hpp"
#include "adapt/gnmi/path.hpp"
#include "adapt/gnmi/subscriber.hpp"

namespace weft::adapt::gnmi {
namespace {

constexpr Timestamp now{1'800'000'000'000'000'000};

struct Kit {
  MisreadTable misread;
  Decoder decoder{"leaf1", misread};
  std::vector<port::Sample> samples;

  ::gnmi::SubscribeResponse message() const {
    ::gnmi::SubscribeResponse out;
    out.mutable_update()->set_timestamp(now.ns);
    return out;
  }
  static void fill(::gnmi::Path& out, std::string_view text) {
    const auto path = parse_path({text, {}});
    REQUIRE(path);
    out.set_origin(path->origin);
    for (const PathElement& element : path->elements) {
      auto& made = *out.add_elem();
      made.set_name(element.name);
      for (const auto& [name, value] : element.keys) (*made.mutable_key())[name] = value;
    }
  }
  static ::gnmi::TypedValue& add(::gnmi::SubscribeResponse& to, std::string_view path) {
    auto& update = *to.mutable_update()->add_update();
    fill(*update.mutable_path(), path);
    return *update.mutable_val();
  }
  Decoder::Said take(const ::gnmi::SubscribeResponse& response) {
    return decoder.take(response, now, samples);
  }
  void text(std::string_view path, const std::string& value) {
    auto one = message();
    add(one, path).set_string_val(value);
    take(one);
  }
  void json(std::string_view path, const std::string& value) {
    auto one = message();
    add(one, path).set_json_ietf_val(value);
    take(one);
  }
  void sync() {
    ::gnmi::SubscribeResponse one;
    one.set_sync_response(true);
    CHECK(take(one) == Decoder::Said::sync);
  }
  // "component metric[index]=value" of each sample since the last call.
  std::vector<std::string> said() {
    std::vector<std::string> out;
    for (const port::Sample& one : std::exchange(samples, {})) {
      CHECK(one.device == "leaf1");
      out.push_back(fmt::format("{} {}[{}]={:.6g}", one.component, to_text(one.metric), one.index,
                                one.value));
    }
    return out;
  }
  std::uint64_t count(Misread why) const { return misread.total(why); }
};
using Lines = std::vector<std::string>;

const std::string queue = "/qos/interfaces/interface[interface-id=e1]/output/queues/queue[name=3]/",
                  pfc =
                      "/qos/interfaces/interface[interface-id=e1]/pfc/pfc-priorities/"
                      "pfc-priority[dot1p=4]/state/statistics/",
                  lane =
                      "/components/component[name=opt]/transceiver/physical-channels/"
                      "channel[index=2]/state/",
                  interface = "/interfaces/interface[name=e1]/",
                  component = "/components/component[name=psu1]/";

struct Case {
  std::string path, value, sample;
};
// One for each row that makes a sample by itself.
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"/bfd/interfaces/interface[id=e1]/peers/peer[local-discriminator=7]/state/session-state",
       "ADMIN_DOWN", "e1 bfd_up[0]=0"},
      {"/components/component[name=cpu0]/cpu/utilization/state/instant", "25",
       "cpu0 cpu_share[0]=0.25"},
      {lane + "input-power/instant", "-2.31", "opt rx_power_dbm[2]=-2.31"},
      {lane + "output-power/instant", "1.5", "opt tx_power_dbm[2]=1.5"},
      {"/components/component[name=opt]/transceiver/state/pre-fec-ber/instant",
       "0.000000012000000000", "opt prefec_ber[0]=1.2e-08"},
      {interface + "ethernet/state/counters/in-crc-errors", "5", "e1 in_errors[0]=5"},
      {interface + "ethernet/state/pre-fec-ber/instant", "1e-9", "e1 prefec_ber[0]=1e-09"},
      {interface + "state/admin-status", "DOWN", "e1 admin_up[0]=0"},
      {interface + "state/counters/carrier-transitions", "4", "e1 carrier_changes[0]=4"},
      {interface + "state/counters/in-discards", "6", "e1 in_discards[0]=6"},
      {interface + "state/counters/in-errors", "7", "e1 in_errors[0]=7"},
      {interface + "state/counters/in-fcs-errors", "8", "e1 in_errors[0]=8"},
      {interface + "state/counters/in-octets", "9007199254740993", "e1 in_octets[0]=9.0072e+15"},
      {interface + "state/counters/in-pkts", "9", "e1 in_packets[0]=9"},
      {interface + "state/counters/out-discards", "10", "e1 out_discards[0]=10"},
      {interface + "state/counters/out-octets", "11", "e1 out_octets[0]=11"},
      {interface + "state/oper-status", "openconfig-interfaces:UP", "e1 oper_up[0]=1"},
      {"/network-instances/network-instance[name=default]/protocols/"
       "protocol[identifier=BGP][name=BGP]/bgp/neighbors/neighbor[neighbor-address=10.0.0.1]/state/"
       "session-state",
       "ESTABLISHED", "10.0.0.1 bgp_established[0]=1"},
      {queue + "state/avg-queue-len", "4096", "e1 queue_bytes[3]=4096"},
      {queue + "state/max-queue-len", "8192", "e1 queue_bytes[3]=8192"},
      {queue + "state/dropped-pkts", "11", "e1 queue_drops[3]=11"},
      {queue + "state/ecn-marked-pkts", "12", "e1 ecn_marked[3]=12"},
      {pfc + "pause-frames-rx", "13", "e1 pfc_pauses_in[4]=13"},
      {pfc + "pause-frames-tx", "14", "e1 pfc_pauses_out[4]=14"},
      {"/system/cpus/cpu[index=ALL]/state/total/instant", "40", " cpu_share[0]=0.4"},
      {"/system/memory/state/counters/total-ecc-errors", "2", " memory_errors[0]=2"},
      {"/system/state/boot-time", fmt::format("{}", now.ns - 100 * ns_per_s), " uptime_s[0]=100"},
      {"/system/state/up-time", "5000000000", " uptime_s[0]=5"},
  };
  return all;
}

std::string names_of(const std::string& path) {
  const auto parsed = parse_path({path, {}});
  REQUIRE(parsed);
  std::string out;
  for (const PathElement& element : parsed->elements)
    out += (out.empty() ? "" : "/") + element.name;
  return out;
}

TEST_CASE("each row of the mapping makes the sample it should") {
  std::set<std::string> seen;
  for (const Case& one : cases()) {
    CAPTURE(one.path);
    seen.insert(names_of(one.path));
    Kit text, number;
    text.text(one.path, one.value);
    text.sync();
    CHECK(text.said() == Lines{one.sample});
    number.json(one.path, fmt::format("\"{}\"", one.value));
    number.sync();
    CHECK(number.said() == Lines{one.sample});
  }
  // The others need another value beside them, and have tests of their own.
  using enum Reading;
  for (const Row& row : mapping()) {
    CAPTURE(row.path);
    const std::set<Reading> joint{share_used,   share_whole, part_status,
                                  part_celsius, part_type,   optic_name};
    CHECK(seen.contains(std::string(row.path)) != joint.contains(row.reading));
  }
}

TEST_CASE("each row of the mapping is asked for") {
  for (const Row& row : mapping()) {
    CAPTURE(row.path);
    CHECK(std::ranges::any_of(default_subscriptions(), [&](const Subscription& one) {
      return (std::string(row.path) + "/").starts_with(names_of(one.path) + "/");
    }));
  }
}

TEST_CASE("values that a row cannot have are counted, not guessed") {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {interface + "state/oper-status", "SIDEWAYS"},
      {interface + "state/oper-status", ""},
      {interface + "state/counters/in-octets", "-1"},
      {interface + "state/counters/in-octets", "12x"},
      {interface + "state/counters/in-octets", "nan"},
      {interface + "state/counters/in-octets", "1e400"},
      {lane + "input-power/instant", "-inf"},
      {lane + "input-power/instant", "1000"},
      {interface + "ethernet/state/pre-fec-ber/instant", "1.5"},
      {"/components/component[name=c]/cpu/utilization/state/instant", "101"},
      {"/system/state/boot-time", "1700000000"},
      {"/system/state/boot-time", fmt::format("{}", now.ns + ns_per_s)}};
  for (const auto& [path, value] : wrong) {
    CAPTURE(path);
    CAPTURE(value);
    Kit kit;
    kit.text(path, value);
    kit.sync();
    CHECK(kit.said().empty());
    CHECK(kit.count(Misread::bad_value) == 1);
  }
  Kit kit;
  kit.text(interface + "state/oper-status", "UNKNOWN");
  CHECK(kit.said().empty());
  CHECK(kit.count(Misread::says_nothing) == 1);
}

TEST_CASE("every kind of scalar is read") {
  Kit kit;
  auto one = kit.message();
  const std::string octets = interface + "state/counters/in-octets";
  Kit::add(one, octets).set_int_val(1);
  Kit::add(one, octets).set_uint_val(2);
  Kit::add(one, octets).set_double_val(3);
  Kit::add(one, octets).set_float_val(4);
  Kit::add(one, octets).mutable_decimal_val()->set_digits(5);
  auto& decimal = *Kit::add(one, lane + "input-power/instant").mutable_decimal_val();
  decimal.set_digits(-250);
  decimal.set_precision(2);
  Kit::add(one, octets).set_ascii_val("6");
  Kit::add(one, octets).set_json_val("7");
  Kit::add(one, octets).set_json_ietf_val("\"8\"");
  // Unwrapped by some targets, wrapped by others.
  Kit::add(one, octets).set_json_ietf_val(R"({"openconfig-interfaces:in-octets": "9"})");
  Kit::add(one, octets).set_bytes_val("1");
  Kit::add(one, octets).mutable_leaflist_val();
  Kit::add(one, octets);
  auto& old = *one.mutable_update()->add_update();
  Kit::fill(*old.mutable_path(), octets);
  old.mutable_value()->set_value("10");
  CHECK(kit.take(one) == Decoder::Said::update);
  Lines wanted;
  for (const int i : {1, 2, 3, 4, 5}) wanted.push_back(fmt::format("e1 in_octets[0]={}", i));
  wanted.emplace_back("opt rx_power_dbm[2]=-2.5");
  for (const int i : {6, 7, 8, 9, 10}) wanted.push_back(fmt::format("e1 in_octets[0]={}", i));
  CHECK(kit.said() == wanted);
  CHECK(kit.count(Misread::bad_encoding) == 3);
}

TEST_CASE("JSON subtrees unfold from any root, with keys before or after their containers") {
  const std::string state =
      R"({"name":"e1","state":{"counters":{"in-octets":"5","x":[1,2]},"oper-status":"DOWN"}})";
  const Lines wanted{"e1 in_octets[0]=5", "e1 oper_up[0]=0"};
  Kit kit;
  kit.json("/interfaces/interface[name=e1]", state);
  CHECK(kit.said() == wanted);
  kit.json("/interfaces", R"({"openconfig-interfaces:interface":[)" + state + "]}");
  CHECK(kit.said() == wanted);
  kit.json("/interfaces/interface[name=e1]",
           R"({"openconfig-interfaces:interface":[)" + state + "]}");
  CHECK(kit.said() == wanted);
  auto root = kit.message();
  root.mutable_update()->add_update()->mutable_val()->set_json_val(
      R"({"openconfig-interfaces:interfaces":{"interface":[)" + state + "]}}");
  kit.take(root);
  CHECK(kit.said() == wanted);
  kit.json("/components",
           R"({"component":[{"transceiver":{"physical-channels":{"channel":[
             {"state":{"input-power":{"instant":"-1.00"}},"index":0},
             {"index":1,"state":{"index":1,"input-power":{"instant":-3}}}]}},"name":"opt"}]})");
  CHECK(kit.said() == Lines{"opt rx_power_dbm[0]=-1", "opt rx_power_dbm[1]=-3"});
}

TEST_CASE("JSON that is none, or too deep, is counted") {
  Kit kit;
  const std::string deep(200'000, '[');
  for (const std::string& text : {std::string(""), std::string("{"), std::string("{\"a\":\xff}"),
                                  deep, deep + std::string(200'000, ']')})
    kit.json("/interfaces", text);
  CHECK(kit.count(Misread::bad_json) == 5);
  kit.json("/interfaces", "null");
  CHECK(kit.said().empty());
}

TEST_CASE("prefixes, origins, modules and paths of old targets lead to the same leaf") {
  Kit kit;
  auto one = kit.message();
  Kit::fill(*one.mutable_update()->mutable_prefix(),
            "openconfig:/openconfig-interfaces:interfaces/interface[name=e1]");
  Kit::add(one, "/state/counters/in-octets").set_uint_val(1);
  auto& old = *one.mutable_update()->add_update();
  for (const char* name : {"state", "counters", "in-octets"}) old.mutable_path()->add_element(name);
  old.mutable_val()->set_uint_val(2);
  kit.take(one);
  auto older = kit.message();
  auto& prefix = *older.mutable_update()->mutable_prefix();
  prefix.add_element("interfaces");
  prefix.add_element("interface[name=Ethernet1/1]");
  Kit::add(older, "/state/counters/in-octets").set_uint_val(3);
  kit.take(older);
  CHECK(kit.said() ==
        Lines{"e1 in_octets[0]=1", "e1 in_octets[0]=2", "Ethernet1/1 in_octets[0]=3"});
}

TEST_CASE("paths that make no sense are counted in a table that stays small") {
  Kit kit;
  for (int i = 0; i < 1000; ++i) kit.text(fmt::format("/nothing/of/that{}", i), "1");
  CHECK(kit.count(Misread::unmapped) == 1000);
  CHECK(kit.misread.rows().size() == MisreadTable::paths_max);
  auto one = kit.message();
  auto& deep = *one.mutable_update()->add_update();
  for (int i = 0; i < 1000; ++i) deep.mutable_path()->add_elem()->set_name("a");
  one.mutable_update()->add_update()->mutable_path()->add_elem();
  one.mutable_update()->add_update()->mutable_path()->add_element("a[b=");
  kit.take(one);
  CHECK(kit.count(Misread::bad_path) == 3);
  kit.text("/interfaces/interface/state/oper-status", "UP");
  kit.text(
      "/qos/interfaces/interface[interface-id=e1]/output/queues/queue[name=gold]/state/"
      "ecn-marked-pkts",
      "1");
  CHECK(kit.count(Misread::no_key) == 2);
  CHECK(kit.said().empty());
}

TEST_CASE("components: the type decides, whenever it comes") {
  for (const bool type_first : {true, false}) {
    Kit kit;
    const auto type = [&](const char* name, const char* is) {
      kit.text(fmt::format("/components/component[name={}]/state/type", name), is);
    };
    const auto types = [&] {
      type("fan1", "openconfig-platform-types:FAN");
      type("psu1", "POWER_SUPPLY");
      type("lc1", "LINECARD");
      type("port1", "PORT");
    };
    if (type_first) types();
    for (const char* name : {"fan1", "psu1", "lc1", "port1"})
      kit.text(fmt::format("/components/component[name={}]/state/oper-status", name),
               "openconfig-platform-types:INACTIVE");
    if (!type_first) types();
    kit.sync();
    CHECK(kit.said() == Lines{"fan1 fan_ok[0]=0", "psu1 psu_ok[0]=0", "lc1 card_ok[0]=0"});
    CHECK(kit.count(Misread::unknown_part) == 0);
  }
}

TEST_CASE("temperatures of optics go by their interface; of other parts by their name") {
  Kit kit;
  for (const char* name : {"opt", "cpu", "mystery"})
    kit.text(fmt::format("/components/component[name={}]/state/temperature/instant", name), "41.5");
  kit.text("/interfaces/interface[name=e2]/state/transceiver", "opt");
  kit.text("/interfaces/interface[name=e1]/state/transceiver", "opt");  // breakout: the first
  kit.text("/components/component[name=opt]/state/type", "TRANSCEIVER");
  kit.text("/components/component[name=cpu]/state/type", "CPU");
  CHECK(kit.said() == Lines{"e1 optic_celsius[0]=41.5", "cpu celsius[0]=41.5"});
  kit.text(lane + "input-power/instant", "-2");
  CHECK(kit.said() == Lines{"e1 rx_power_dbm[2]=-2"});
  kit.sync();
  CHECK(kit.said() == Lines{"mystery celsius[0]=41.5"});
  kit.text("/interfaces/interface[name=e1]/state/transceiver", "other");
  kit.text(lane + "input-power/instant", "-2");
  CHECK(kit.said() == Lines{"opt rx_power_dbm[2]=-2"});
}

TEST_CASE("shares need both of their values") {
  Kit kit;
  kit.text("/system/memory/state/used", "25");
  kit.text("/system/memory/state/physical", "100");
  kit.text("/system/memory/state/used", "50");
  kit.text("/system/memory/state/used", "101");
  CHECK(kit.said() == Lines{" memory_share[0]=0.25", " memory_share[0]=0.5"});
  CHECK(kit.count(Misread::bad_value) == 1);
  kit.json("/components/component[name=re0]/state",
           R"({"memory":{"available":"8","utilized":"2"}})");
  kit.json("/system/mount-points/mount-point[name=\\/var]/state",
           R"({"size":"10","utilized":"9"})");
  CHECK(kit.said() == Lines{"re0 memory_share[0]=0.25", "/var storage_share[0]=0.9"});
}

TEST_CASE("of counters with one meaning a target's best is used, and only that") {
  const std::string errors = interface + "state/counters/in-errors",
                    fcs = interface + "state/counters/in-fcs-errors",
                    crc = interface + "ethernet/state/counters/in-crc-errors";
  Kit both;
  both.text(crc, "1");
  both.text(fcs, "2");
  both.text(errors, "3");
  both.text(fcs, "4");
  both.sync();
  both.text(fcs, "5");
  both.text(errors, "6");
  CHECK(both.said() == Lines{"e1 in_errors[0]=3", "e1 in_errors[0]=6"});
  Kit poor;
  poor.text(crc, "1");
  poor.text(fcs, "2");
  poor.sync();
  poor.text(crc, "3");
  poor.text(fcs, "4");
  CHECK(poor.said() == Lines{"e1 in_errors[0]=2", "e1 in_errors[0]=4"});
}

TEST_CASE("queues whose names end in the same number do not pass for one") {
  Kit kit;
  for (const char* name : {"UC3", "MC3", "UC3"})
    kit.text(fmt::format("/qos/interfaces/interface[interface-id=e1]/output/queues/queue[name={}]/"
                         "state/ecn-marked-pkts",
                         name),
             "1");
  CHECK(kit.said() == Lines{"e1 ecn_marked[3]=1", "e1 ecn_marked[3]=1"});
  CHECK(kit.count(Misread::no_key) == 1);
}

TEST_CASE("a delete forgets the entry, is no failure, and comes before the updates beside it") {
  Kit kit;
  kit.text(component + "state/type", "POWER_SUPPLY");
  auto one = kit.message();
  Kit::fill(*one.mutable_update()->add_delete_(), "/components/component[name=psu1]");
  Kit::fill(*one.mutable_update()->add_delete_(), "/interfaces/interface[name=e9]");
  Kit::fill(*one.mutable_update()->add_delete_(), "/components");
  Kit::add(one, component + "state/oper-status").set_string_val("INACTIVE");
  kit.take(one);
  kit.sync();
  CHECK(kit.said().empty());
  CHECK(kit.count(Misread::unknown_part) == 1);
  CHECK(kit.decoder.counts().deletes == 3);
}

TEST_CASE("SONiC's table of port counters") {
  Kit kit;
  kit.json("/COUNTERS/Ethernet0",
           R"({"SAI_PORT_STAT_IF_IN_OCTETS":"5","SAI_PORT_STAT_PFC_3_RX_PKTS":"7",
               "SAI_PORT_STAT_PFC_8_RX_PKTS":"7","SAI_PORT_STAT_ETHER_RX_OVERSIZE_PKTS":"0"})");
  kit.json("/COUNTERS/Ethernet*", R"({"Ethernet4/1":{"SAI_PORT_STAT_PFC_4_TX_PKTS":"9"}})");
  kit.text("/COUNTERS/Ethernet8/SAI_PORT_STAT_IF_OUT_DISCARDS", "1");
  CHECK(kit.said() == Lines{"Ethernet0 in_octets[0]=5", "Ethernet0 pfc_pauses_in[3]=7",
                            "Ethernet4/1 pfc_pauses_out[4]=9", "Ethernet8 out_discards[0]=1"});
  CHECK(kit.count(Misread::unmapped) == 2);
}

TEST_CASE("times: the target's where its clock can be right, else ours") {
  Kit kit;
  const std::map<std::int64_t, std::int64_t> times{
      {now.ns - ns_per_s, now.ns - ns_per_s},
      {now.ns + ns_per_s, now.ns + ns_per_s},
      {0, now.ns},
      {now.ns - 3600 * ns_per_s, now.ns},
      {now.ns + 3600 * ns_per_s, now.ns},
      {std::numeric_limits<std::int64_t>::min(), now.ns},
      {std::numeric_limits<std::int64_t>::max(), now.ns}};
  for (const auto& [sent, used] : times) {
    auto one = kit.message();
    one.mutable_update()->set_timestamp(sent);
    Kit::add(one, interface + "state/counters/in-octets").set_uint_val(1);
    kit.take(one);
    CHECK(kit.samples.back().t.ns == used);
  }
  CHECK(kit.decoder.counts().wrong_times == 5);
}

TEST_CASE("a name that is no UTF-8 harms nothing else") {
  Kit kit;
  auto one = kit.message();
  Kit::add(one, "/interfaces/interface[name=\xff\xfe]/state/counters/in-octets").set_uint_val(1);
  Kit::add(one, interface + "state/description").set_string_val("\xe9");
  Kit::add(one, interface + "state/counters/in-octets").set_uint_val(2);
  CHECK(kit.decoder.take_bytes(one.SerializeAsString(), now, kit.samples) == Decoder::Said::update);
  REQUIRE(kit.samples.size() == 2);
  CHECK(kit.samples[0].component == "\xff\xfe");
  CHECK(kit.samples[1].component == "e1");
}

TEST_CASE("bytes that are no message are refused") {
  Kit kit;
  CHECK(!kit.decoder.take_bytes("\x0a\xff", now, kit.samples));
  CHECK(kit.decoder.take_bytes("", now, kit.samples) == Decoder::Said::nothing);
}

TEST_CASE("paths as text") {
  const auto path = parse_path({"openconfig:/a/b[x=1][y=p/q\\]]/c", {}});
  REQUIRE(path);
  CHECK(path->origin == "openconfig");
  REQUIRE(path->elements.size() == 3);
  CHECK(path->elements[1].name == "b");
  CHECK(path->elements[1].keys ==
        std::vector<std::pair<std::string, std::string>>{{"x", "1"}, {"y", "p/q]"}});
  for (const char* wrong :
       {"", "/", "a//b", "/a[", "/a[x]", "/a[=1]", "/a[x=1]b", "/[x=1]", "/a[x=\\"})
    CHECK_MESSAGE(!parse_path({wrong, {}}), wrong);
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "/a";
  CHECK(!parse_path({deep, {}}));
  CHECK(parse_path({"/a/b:/c", {}})->origin.empty());
}

}  // namespace
}  // namespace weft::adapt::gnmi
