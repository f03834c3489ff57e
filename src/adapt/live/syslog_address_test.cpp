#include "adapt/live/syslog_address.hpp"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string_view>

namespace weft::adapt::live {
namespace {

TEST_CASE("addresses to listen at are read, and written back to the same") {
  for (const std::string_view text :
       {"udp://172.31.0.1:514", "tcp://0.0.0.0:0", "tls://[::]:6514", "udp://[fe80::1]:65535"}) {
    CAPTURE(text);
    const auto address = parse_syslog_address({text, {}});
    REQUIRE(address.has_value());
    CHECK(to_text(*address) == text);
    CHECK(parse_syslog_address({to_text(*address), {}}) == *address);
  }
  const auto spelt = parse_syslog_address({" tls://[0:0::1]:7 ", {}});
  REQUIRE(spelt.has_value());
  CHECK(*spelt == SyslogAddress{.transport = SyslogTransport::tls, .host = "::1", .port = 7});
}

TEST_CASE("what is no address to listen at is refused, where it stands") {
  using namespace std::string_view_literals;
  for (const std::string_view text : {""sv,
                                      "514"sv,
                                      "172.31.0.1:514"sv,
                                      "http://1.2.3.4:5"sv,
                                      "udp://"sv,
                                      "udp://1.2.3.4"sv,
                                      "udp://1.2.3.4:"sv,
                                      "udp://1.2.3.4:65536"sv,
                                      "udp://1.2.3.4:-1"sv,
                                      "udp://1.2.3.4:+1"sv,
                                      "udp://1.2.3.4:5 6"sv,
                                      "udp://1.2.3.4:5/"sv,
                                      "udp://1.2.3:5"sv,
                                      "udp://host:5"sv,
                                      "udp://:5"sv,
                                      "udp://::1:5"sv,
                                      "udp://[::1]"sv,
                                      "udp://[::1:5"sv,
                                      "udp://[]:5"sv,
                                      "udp://[:5"sv,
                                      "udp://[1.2.3.4]:5"sv,
                                      "udp://[fe80::1%eth0]:5"sv,
                                      "udp://1.2.3.4\0x:5"sv,
                                      "udp:// 1.2.3.4:5"sv}) {
    CAPTURE(text);
    const auto address =
        parse_syslog_address({text, {.file = "weft.yaml", .line = 3, .column = 9}});
    REQUIRE_FALSE(address.has_value());
    CHECK(address.error().text().starts_with("weft.yaml:3:9: "));
    CHECK_FALSE(address.error().hint.empty());
  }
}

TEST_CASE("a sender's address is told without its port, IPv4 as such") {
  sockaddr_storage name{};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(name);
  v6.sin6_family = AF_INET6;
  v6.sin6_addr.s6_addr[15] = 1;
  CHECK(host_text(name) == "::1");
  v6.sin6_addr = {};
  v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
  v6.sin6_addr.s6_addr[12] = 10;
  v6.sin6_addr.s6_addr[15] = 7;
  CHECK(host_text(name) == "10.0.0.7");
  name.ss_family = AF_UNIX;
  CHECK(host_text(name).empty());
}

}  // namespace
}  // namespace weft::adapt::live
