#include "adapt/devices/device_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "base/file.hpp"
#include "base/test_folder.hpp"

namespace weft::adapt::devices {
namespace {

std::string refusal(const std::string& rows, const std::string& header) {
  const auto devices = read_devices(header + "\n" + rows, "switches.csv");
  return devices ? "accepted" : devices.error().text();
}

TEST_CASE("switches are read, and cells that make no sense are errors with their place") {
  const TestFolder folder;
  const std::string password = folder.write("password", "s3cret\n");
  const auto devices = read_devices(
      "device,dialect,address,username,password_file,security\n"
      "rtsw:0,sonic,rtsw0.example:2222,weft,,\n"
      "ctsw:0,eos,10.0.0.1,weft," +
          password +
          ",\n"
          "ctsw:1,openconfig,[2001:db8::1]:9339,,,plain\n",
      "switches.csv");
  REQUIRE_MESSAGE(devices.has_value(), (devices ? "" : devices.error().text()));
  CHECK(devices->size() == 3);
  CHECK((*devices)[0].dialect->name == "sonic");
  CHECK((*devices)[1].password == "s3cret");
  CHECK((*devices)[2].is_plain);

  const std::string header = "device,dialect,address,username,password_file,key,security";
  struct Case {
    std::string row, error;
  };
  for (const auto& [row, error] :
       {Case{",sonic,a,,,,", "switches.csv:2:1: this line has no device"},
        {"d,junos,a,,,,", "switches.csv:2:3: "},
        {"d,sonic,-oProxyCommand=x,,,,",
         "switches.csv:2:9: \"-oProxyCommand=x\" is not an address"},
        {"d,sonic,a b,,,,", "is not an address"},
        {"d,sonic,a:0,,,,", "is not an address"},
        {"d,sonic,a,-oX,,,", "\"-oX\" is not a user name"},
        {"d,sonic,a,u,p,,", "d of dialect sonic makes no use of password_file"},
        {"d,eos,a,u,,,", "d has no user, or no password"},
        {"d,eos,a,u," + password + ",,plain", "a password would be sent without TLS"},
        {"d,eos,a,u,/none,,", "/none"},
        {"d,openconfig,a:1,,,/none,", "\"/none\" cannot be read"},
        {"d,openconfig,a:1,,,,maybe", "\"maybe\" is not a security setting"},
        {"d,sonic,a,,,,\nd,sonic,b,,,,", "switches.csv:3:1: duplicate device \"d\""}}) {
    CAPTURE(row);
    CHECK_MESSAGE(refusal(row, header).contains(error), refusal(row, header));
  }
  REQUIRE(::chmod(password.c_str(), 0644) == 0);
  CHECK(refusal("d,eos,a,u," + password + ",,", header).contains("readable by everyone"));
}

TEST_CASE("settings: a dry run unless it says otherwise") {
  const TestFolder folder;
  const std::string file = folder.write("switches.csv", "device,dialect,address\nd,sonic,a\n");
  const auto read = [](const std::string& yaml) {
    return read_settings(*parse_yaml(yaml, "s.yaml"));
  };
  const auto plain = read("switches: " + file);
  REQUIRE_MESSAGE(plain.has_value(), (plain ? "" : plain.error().text()));
  CHECK(plain->dry_run);
  CHECK_FALSE(read("switches: " + file + "\ndry_run: false")->dry_run);
  const auto bad = read("switches: /none\ntimeout: 1 h\nssh: ssh\ncolour: red\n");
  REQUIRE(!bad);
  for (const std::string part : {"s.yaml:2:", "timeout must be", "path of a program", "colour"})
    CHECK_MESSAGE(bad.error().text().contains(part), bad.error().text());
  CHECK(read("switches: /none").error().text().starts_with("s.yaml:1:11: "));
}

}  // namespace
}  // namespace weft::adapt::devices
