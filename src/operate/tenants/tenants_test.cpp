#include "operate/tenants/tenants.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "base/rng.hpp"

namespace weft::operate::tenants {
namespace {

Result<Policy> read(std::string_view yaml) {
  const auto config = parse_yaml(yaml, "tenants.yaml");
  REQUIRE(config.has_value());
  return read_policy(*config);
}

std::string refusal(std::string_view yaml) {
  const auto policy = read(yaml);
  REQUIRE(!policy.has_value());
  return policy.error().text();
}

IpPrefix prefix(std::string_view text) { return parse_ip_prefix({text, {}}).value(); }
Ports ports(std::string_view text) { return parse_ports({text, {}}).value(); }

constexpr std::string_view three = R"(
tenants:
  - {name: a, addresses: [10.1.0.0/16, "fd00:1::/32"], interfaces: [tap-a-*],
     allow: [{to: b, ports: [80-90/tcp, icmp]}, {to: dns, ports: [53/udp]},
             {to: outside, ports: [all]}]}
  - {name: b, addresses: [10.2.0.0/16], interfaces: [tap-b-1, tap-b-2],
     accept: [{from: a, ports: [85-443/tcp]}, {from: outside, ports: [443/tcp]},
              {from: dns, ports: [9/tcp]}]}
  - {name: c, addresses: [10.3.0.1], interfaces: [tap-c]}
shared: [{name: dns, addresses: [10.0.0.53]}]
)";

TEST_CASE("what one tenant allows itself and the other accepts is open, and nothing else") {
  const auto policy = read(three);
  REQUIRE_MESSAGE(policy.has_value(), policy.error().text());
  const auto open = [&](std::string_view from, std::string_view to) {
    return text_of(reach(*policy, from, to));
  };
  CHECK(open("a", "b") == "85-90/tcp");
  CHECK(open("b", "a") == "-");
  CHECK(open("a", "a") == "all");
  CHECK(open("a", "dns") == "53/udp");
  CHECK(open("dns", "a") == "-");
  CHECK(open("dns", "b") == "9/tcp");
  CHECK(open("a", "outside") == "all");
  CHECK(open("outside", "a") == "-");
  CHECK(open("outside", "b") == "443/tcp");
  CHECK(open("outside", "dns") == "-");
  const auto allowed = [&](std::string_view from, std::string_view to, std::string_view port) {
    return judge(*policy, {prefix(from), prefix(to), ports(port)}).is_allowed;
  };
  CHECK(allowed("10.1.2.3", "10.2.0.1", "85/tcp"));
  CHECK(!allowed("10.1.2.3", "10.2.0.1", "85/udp"));
  CHECK(!allowed("10.1.2.3", "10.2.0.1", "84/tcp"));
  CHECK(!allowed("10.1.2.3", "10.2.0.1", "icmp"));
  CHECK(allowed("fd00:1::5", "2001:db8::1", "icmp"));
  CHECK(!allowed("10.3.0.1", "8.8.8.8", "53/udp"));
  CHECK(judge(*policy, {prefix("10.3.0.1"), prefix("10.3.0.2"), ports("1/tcp")}).to == "outside");
}

TEST_CASE("what is wrong with a policy is said, where it stands") {
  CHECK(refusal("{}").contains("there is no tenant"));
  const std::string all = refusal(R"(
tenants:
  - {name: A, addresses: [10.1.0.1/16], interfaces: [this-name-is-too-long], extra: 1}
  - {name: b, addresses: [], interfaces: ["*b"], allow: [{to: nobody}]}
  - {name: outside, addresses: ["::ffff:10.0.0.1"], interfaces: [x],
     allow: [{to: b, ports: [0/tcp, 9-8/udp, 1/sctp, 70000/tcp]}]}
)");
  for (const std::string_view part :
       {"tenants.yaml:3", "\"A\" is not a name", "bits set behind its length",
        "write 10.1.0.0/16, or 10.1.0.1 for the one address", "not the name of an interface",
        "\"extra\"", "addresses is missing or empty", "ports is missing",
        "\"outside\" is not a name", "IPv4 written as IPv6", "\"0/tcp\"", "\"9-8/udp\"",
        "\"1/sctp\"", "\"70000/tcp\""})
    CHECK_MESSAGE(all.contains(part), part << " is not in " << all);
  constexpr std::string_view two =
      "tenants: [{{name: a, addresses: [{}], interfaces: [{}], allow: [{}]}}, "
      "{{name: b, addresses: [{}], interfaces: [{}]}}]";
  const auto pair = [&](std::string_view addresses, std::string_view interfaces,
                        std::string_view allow, std::string_view others, std::string_view taps) {
    return refusal(fmt::format(fmt::runtime(two), addresses, interfaces, allow, others, taps));
  };
  CHECK(pair("10.0.0.0/8", "x", "", "10.255.0.0/16", "y")
            .contains("10.255.0.0/16 of b lies in 10.0.0.0/8 of a"));
  CHECK(pair("10.0.0.1", "tap-*", "", "10.0.0.2", "tap-b").contains("can be the same"));
  CHECK(pair("10.0.0.1", "tap-b-*", "", "10.0.0.2", "tap-*").contains("can be the same"));
  CHECK(pair("10.0.0.1", "x", "{to: c, ports: [all]}", "10.0.0.2", "y").contains("no \"c\""));
  CHECK(pair("10.0.0.1", "x", "{to: b, ports: [all]}", "10.0.0.2", "y")
            .contains("b, which accepts none of it"));
}

TEST_CASE("prefixes cover as their bits say, in both families") {
  Rng rng(5);
  for (int i = 0; i < 2'000; ++i) {
    const bool is_v6 = i % 2 == 1;
    const auto word = [&] { return static_cast<unsigned>(rng.below(4)); };
    const unsigned a = word(), b = word(), length = static_cast<unsigned>(rng.below(3));
    // Two bits are all that differs, at the end of the first 16.
    const auto made = [&](unsigned bits, unsigned cut) {
      const unsigned kept = bits >> (2 - cut) << (2 - cut);
      return prefix(is_v6 ? fmt::format("fd0{:x}::/{}", kept, 14 + cut)
                          : fmt::format("10.{}.0.0/{}", kept, 14 + cut));
    };
    const IpPrefix outer = made(a, length), inner = made(b, 2);
    CHECK(outer.covers(inner) == (a >> (2 - length) == b >> (2 - length)));
    CHECK(prefix(outer.text()).text() == outer.text());
  }
  CHECK(!prefix("0.0.0.0/0").covers(prefix("::")));
  CHECK(prefix("::/0").covers(prefix("fd00::1")));
  for (const char* wrong : {"", "/", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "10.0.0.0/8x",
                            "::/129", "fe80::1%eth0", "10.0.0.1 "})
    CHECK_MESSAGE(!parse_ip_prefix({wrong, {}}).has_value(), wrong);
}

}  // namespace
}  // namespace weft::operate::tenants
