#include "operate/snapshot/redact.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/rng.hpp"

namespace weft::operate::snapshot {
namespace {

std::string redacted(std::string_view text, RedactSettings settings = {}) {
  Redactor redactor(std::move(settings));
  std::string once = redactor.redact(text);
  CHECK(redactor.redact(once) == once);
  return once;
}

// Lines with a secret that must go, "@" before each, and what must stay.
void goes(std::string_view marked) {
  CAPTURE(marked);
  std::string line;
  std::vector<std::string> secrets;
  for (std::size_t at = 0; at < marked.size(); ++at) {
    if (marked[at] != '@') {
      line += marked[at];
      continue;
    }
    const std::size_t end = std::min(marked.find_first_of(" \"\n;,}", at), marked.size());
    secrets.emplace_back(marked.substr(at + 1, end - at - 1));
  }
  const std::string out = redacted(line);
  REQUIRE(!secrets.empty());
  for (const std::string& secret : secrets) {
    CAPTURE(secret);
    CAPTURE(out);
    CHECK(out.find(secret) == std::string::npos);
  }
}

TEST_CASE("secrets of configurations go") {
  constexpr auto lines = std::to_array<std::string_view>(
      {// FRRouting
       "password @zebra17", "enable password 8 @8x9QaBcD",
       " neighbor 10.0.0.1 password @s3cr.et-key", " ip ospf authentication-key @hushhush",
       " ip ospf message-digest-key 1 md5 @kEyOne99", " key-string @rip-pass",
       " area-password clear @isispw1", "  isis password md5 @circuitpw",
       // Arista EOS
       "username admin privilege 15 role network-admin secret sha512 @$6$abc$defXYZ",
       "username bob secret 0 @plainOne", "snmp-server community @publ1c ro",
       "snmp-server host 10.9.9.9 version 2c @commun1ty",
       "snmp-server user @walker grp v3 localized f5717f auth sha @aabbccdd priv aes @eeff0011",
       "   neighbor 10.1.1.1 password 7 @0822455D0A16", "tacacs-server key 7 @070E334D",
       "radius-server host 10.2.2.2 key 7 @1A2B3C4D", "   authentication key 7 @060506324F",
       "ntp authentication-key 1 md5 7 @110A1016141D",
       "   bgp listen range 10.0.0.0/8 password @peerpw",
       // Junos
       "            encrypted-password \"@$6$saltsalt$hashhash\"; ## SECRET-DATA",
       "        authentication-key \"@$9$abcdEFGH\"; ## SECRET-DATA",
       "set snmp community @notpublic authorization read-only",
       "snmp {\n    community @inStanza {\n", "        secret \"@$9$QQQQrrrr\"; ## SECRET-DATA",
       "    pre-shared-key ascii-text \"@$9$keykey11\";",
       "set security ike policy p pre-shared-key ascii-text @letmein99",
       "set system root-authentication plain-text-password-value @rootpw12",
       "    key \"@oddone\"; ## SECRET-DATA",
       // NX-OS
       "username admin password 5 @$5$KLMNOP$qrstuv role network-admin",
       "snmp-server user @ops network-admin auth md5 @0x1a2b3c4d priv @0x5e6f7a8b localizedkey",
       "snmp-server host 10.0.0.9 traps version 2c @trapcomm", "  key-string 7 @072c285f4d06",
       "radius-server host 10.3.3.3 key 7 \"@fewhg7\" authentication accounting",
       "  password 3 @a1b2c3d4e5f6a7b8",
       // Files of net-snmp
       "rocommunity @weftcomm 10.0.0.0/8", "com2sec readonly default @secname9",
       "createUser @walker SHA @pass12345 AES @priv12345",
       // JSON, logs, URLs
       "{\"user\": \"x\", \"password\": \"@jsonpw1\", \"n\": 1}",
       "{\"client_secret\":\"@abc123def\"}", "Authorization: Bearer @abcdef0123456789",
       "token=@tok_1234567", "{\"user password\": \"@jsonpw2\"}", "api-key: @k3yk3y",
       "X-Auth eyJhead.@payloadpayload",
       "{\"config\": \"router bgp 1\\n neighbor 10.0.0.1 password @inJson\\n exit\"}",
       "export GH=@ghp_0123456789abcdefABCDEF"});
  for (const std::string_view line : lines) goes(line);
}

TEST_CASE("what is no secret stays") {
  for (const std::string_view line :
       {"router bgp 65001", " neighbor 10.0.0.1 remote-as 65000", "no service password-encryption",
        " set community 65000:100 additive", "key chain ospf", " key 1",
        "ip community-list standard BLUE permit 65000:1", "Oct 11 22:14:15 ctsw:5 bgpd: up",
        "snmp-server location rack:17", "!", "", "\tinterface Ethernet1/7",
        "{\"10.128.0.1\": {\"state\": \"Established\"}}", "netmask 255.255.255.0"})
    CHECK(redacted(line) == line);
  CHECK(redacted("neighbor 10.0.0.1 password 7 0822 ! x\nend") ==
        "neighbor 10.0.0.1 password 7 <removed:password> ! x\nend");
  CHECK(redacted("clone https://bot:hunter22@git.example/x") ==
        "clone https://bot:<removed:password>@git.example/x");
  CHECK(redacted("password <removed:password>") == "password <removed:password>");
}

TEST_CASE("private keys go whole, to the end where they have none") {
  CHECK(redacted(
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nzzz\n-----END RSA PRIVATE KEY-----\nb\n") ==
        "a\n<removed:private key>\n\n\n\nb\n");
  CHECK(redacted("k: -----BEGIN PRIVATE KEY-----\\nMII\\n-----END PRIVATE KEY----- z") ==
        "k: <removed:private key> z");
  CHECK(redacted("-----BEGIN PRIVATE KEY-----\nMIIE\nmore").find("MIIE") == std::string::npos);
  CHECK(redacted("-----BEGIN CERTIFICATE-----\nMIIE\n").find("MIIE") != std::string::npos);
}

TEST_CASE("addresses and names are treated as asked for") {
  const std::string text = "8.8.8.8 10.0.0.1:179 2a00:1450::1 fe80::1 12:34:56 8.8.8.8/32 v8.4.4";
  CHECK(redacted(text) ==
        "<removed:public address> 10.0.0.1:179 <removed:public address> fe80::1 12:34:56 "
        "<removed:public address>/32 v8.4.4");
  Redactor redactor({.public_addresses = Treatment::pseudonym,
                     .private_addresses = Treatment::pseudonym,
                     .names = {"Acme", "Acme Corp"},
                     .listed_names = Treatment::pseudonym});
  CHECK(redactor.redact(text) ==
        "198.18.0.1 198.18.0.2:179 2001:db8::0:2 2001:db8::0:3 12:34:56 "
        "198.18.0.1/32 v8.4.4");
  CHECK(redactor.redact("ACME corp at 10.0.0.1, acme") == "anon-1 at 198.18.0.2, anon-2");
  CHECK(redactor.pseudonyms().at("8.8.8.8") == "198.18.0.1");
  CHECK(redactor.counts().at("public address") == 3);
  CHECK(redactor.counts().at("name") == 2);
  CHECK(redacted("acmeX", {.names = {"acme"}}) == "<removed:name>X");
}

TEST_CASE("settings are read, and errors told with their place") {
  Errors errors;
  const auto good = parse_yaml("{private_addresses: pseudonym, names: [acme, \"big bank\"]}", "r");
  const RedactSettings settings = read_redact_settings(*good, errors);
  CHECK(errors.empty());
  CHECK(settings.private_addresses == Treatment::pseudonym);
  CHECK(settings.public_addresses == Treatment::remove);
  CHECK(settings.names.size() == 2);
  const auto bad = parse_yaml("public_addresses: hide\nnames: [\"\"]\ncolour: red\n", "r.yaml");
  static_cast<void>(read_redact_settings(*bad, errors));
  REQUIRE(errors.size() == 3);
  CHECK(combine(errors).text().find("r.yaml:1:") != std::string::npos);
}

TEST_CASE("any soup of words: a planted secret goes, and a second time changes nothing") {
  constexpr auto words = std::to_array<std::string_view>({"password",    "secret",
                                                          "key",         "7",
                                                          "0",           "md5",
                                                          "snmp",        "community",
                                                          "{",           "}",
                                                          "\"",          "'",
                                                          ":",           "=",
                                                          " ",           " ",
                                                          " ",           "\n",
                                                          "host",        "user",
                                                          "auth",        "priv",
                                                          "x",           "10.0.0.1",
                                                          "8.8.8.8",     "::1",
                                                          "https://",    "@",
                                                          "/",           "<removed:",
                                                          ">",           "$6$a",
                                                          "-----BEGIN ", "PRIVATE KEY-----",
                                                          "\\",          "-----END ",
                                                          "eyJ.",        "## SECRET-DATA",
                                                          ";",           "token",
                                                          "version",     "2c",
                                                          "com2sec",     "createUser"});
  const std::string secret = "plantedZ9secret";
  Rng rng(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (std::uint64_t i = rng.below(14); i > 0; --i) {
      text += words[rng.below(words.size())];
      if (rng.below(2) == 0) text += ' ';
    }
    text += "\nneighbor 10.0.0.1 password " + secret + "\n";
    Redactor redactor({.public_addresses = Treatment::keep});
    const std::string once = redactor.redact(text);
    CAPTURE(text);
    REQUIRE(once.find(secret) == std::string::npos);
    REQUIRE(once.size() <= 16 * text.size());
    REQUIRE(redactor.redact(once) == once);
  }
}

}  // namespace
}  // namespace weft::operate::snapshot
