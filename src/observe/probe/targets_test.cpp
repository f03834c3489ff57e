#include "observe/probe/targets.hpp"

#include <doctest/doctest.h>

namespace weft::observe::probe {
namespace {

TEST_CASE("addresses, ports and classes as people write them") {
  CHECK(*parse_endpoint({"10.0.0.1", {}}) == port::Endpoint{0x0a000001, default_port});
  CHECK(*parse_endpoint({" 255.255.255.255:65535 ", {}}) == port::Endpoint{UINT32_MAX, 65'535});
  CHECK(parse_listen({"127.0.0.1:7000-7003", {}})->size() == 4);
  CHECK(parse_ports({"5", {}})->count() == 1);
  CHECK(parse_class({"lossy=26", {}})->name == "lossy");
  CHECK(parse_class({"46", {}})->dscp == 46);
  CHECK(to_text(port::Endpoint{0x0a0000ff, 80}) == "10.0.0.255:80");
}

TEST_CASE("and as they do not") {
  for (const char* bad : {"", "10.0.0", "10.0.0.256", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536",
                          "::1", "host", "10.0.0.1.2", "10.0.0.-1", "10.0.0.0001", "10.0.0.1:1:2"})
    CHECK_FALSE(parse_endpoint({bad, {}}).has_value());
  for (const char* bad : {"", "0", "5-4", "1-2000", "a-b", "1-", "-1", "70000"})
    CHECK_FALSE(parse_ports({bad, {}}).has_value());
  for (const char* bad : {"", "64", "=5", "a=", "a=64", "-1", "a=b"})
    CHECK_FALSE(parse_class({bad, {}}).has_value());
}

}  // namespace
}  // namespace weft::observe::probe
