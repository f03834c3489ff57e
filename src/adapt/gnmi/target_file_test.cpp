#include "adapt/gnmi/target_file.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/test_folder.hpp"

namespace weft::adapt::gnmi {
namespace {

TEST_CASE("targets as CSV") {
  const TestFolder folder;
  const std::string secret = folder.write("secret", "pass word\n");
  const auto targets = read_targets(
      "address,device,username,password_file,security,database\n"
      "10.0.0.1:9339,leaf1,weft," +
          secret +
          ",,\n"
          "leaf2.example:8080,leaf2,,,plain,OC-YANG\n",
      "targets.csv");
  REQUIRE(targets);
  REQUIRE(targets->size() == 2);
  CHECK((*targets)[0].device == "leaf1");
  CHECK((*targets)[0].security == Security::tls);
  CHECK((*targets)[0].password == "pass word");
  CHECK((*targets)[1].address == "leaf2.example:8080");
  CHECK((*targets)[1].security == Security::plain);
  CHECK((*targets)[1].database == "OC-YANG");
}

TEST_CASE("targets: every wrong line is told, with its position") {
  const auto wrong = read_targets("device,address,security,ca\na,h:1,none,\nb,h:1,,/no/such/file\n",
                                  "targets.csv");
  REQUIRE(!wrong);
  CHECK(wrong.error().where.text() == "targets.csv:2:7");
  REQUIRE(wrong.error().more.size() == 1);
  CHECK(wrong.error().more[0].where.text() == "targets.csv:3:8");
  CHECK(!read_targets("device\na\n", "targets.csv"));
  CHECK(!read_targets("device,address,port\na,h,1\n", "targets.csv"));
}

}  // namespace
}  // namespace weft::adapt::gnmi
