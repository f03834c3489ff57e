#include "adapt/gnmi/set.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "adapt/gnmi/gnmi_test_target.hpp"

namespace weft::adapt::gnmi {
namespace {

using namespace std::chrono_literals;

constexpr const char* enabled = "/interfaces/interface[name=Ethernet1/1]/config/enabled";

TestTarget target_that(TestSet set) {
  return TestTarget({}, {.username = "weft", .password = "s3cret", .set = std::move(set)});
}
Target plain_of(const TestTarget& target) {
  return {.device = "leaf1",
          .address = target.address(),
          .security = Security::plain,
          .username = "weft",
          .password = "s3cret",
          .database = "OC-YANG"};
}

TEST_CASE("set: one update of one leaf") {
  ::gnmi::SetRequest got;
  const TestTarget target = target_that([&](const ::gnmi::SetRequest& request) {
    got = request;
    return grpc::Status::OK;
  });
  const Status done = set_flag(plain_of(target), enabled, false, 5s);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
  CHECK(got.prefix().target() == "OC-YANG");
  REQUIRE(got.update_size() == 1);
  CHECK(got.replace_size() + got.delete__size() == 0);
  CHECK(got.update(0).val().json_ietf_val() == "false");
  REQUIRE(got.update(0).path().elem_size() == 4);
  CHECK(got.update(0).path().elem(1).key().at("name") == "Ethernet1/1");
  CHECK(got.update(0).path().elem(3).name() == "enabled");
  REQUIRE(set_flag(plain_of(target), enabled, true, 5s).has_value());
  CHECK(got.update(0).val().json_ietf_val() == "true");
}

TEST_CASE("set: a refusal is one, silence is not") {
  using enum grpc::StatusCode;
  for (const auto& [code, wanted] : {std::pair{PERMISSION_DENIED, Errc::unsupported},
                                     {INVALID_ARGUMENT, Errc::unsupported},
                                     {UNAVAILABLE, Errc::io},
                                     {INTERNAL, Errc::io}}) {
    const TestTarget target = target_that(
        [code](const ::gnmi::SetRequest&) { return grpc::Status(code, "read only\n"); });
    const Status refused = set_flag(plain_of(target), enabled, false, 5s);
    REQUIRE(!refused);
    CHECK(refused.error().code == wanted);
    CHECK(refused.error().what.contains("read only?"));
  }
  const TestTarget old = target_that(nullptr);
  CHECK(set_flag(plain_of(old), enabled, false, 5s).error().code == Errc::unsupported);
  Target stranger = plain_of(old);
  stranger.password = "wrong";
  CHECK(set_flag(stranger, enabled, false, 5s).error().what.contains("UNAUTHENTICATED"));
  const TestTarget slow = target_that([](const ::gnmi::SetRequest&) {
    std::this_thread::sleep_for(300ms);
    return grpc::Status::OK;
  });
  CHECK(set_flag(plain_of(slow), enabled, false, 50ms).error().code == Errc::io);
  Target nobody = plain_of(old);
  nobody.address = "127.0.0.1:1";
  CHECK(set_flag(nobody, enabled, false, 2s).error().code == Errc::io);
  nobody.address = "nowhere";
  CHECK(set_flag(nobody, enabled, false, 2s).error().code == Errc::value);
}

TEST_CASE("set: by TLS") {
  const TestAuthority authority;
  const TestTarget target({}, {.key = authority.issue("localhost"),
                               .set = [](const ::gnmi::SetRequest&) { return grpc::Status::OK; }});
  Target by_tls{.device = "leaf1", .address = target.address(), .ca = authority.certificate()};
  by_tls.server_name = "localhost";
  CHECK(set_flag(by_tls, enabled, false, 5s).has_value());
  by_tls.server_name = "other";
  CHECK(set_flag(by_tls, enabled, false, 2s).error().code == Errc::io);
}

}  // namespace
}  // namespace weft::adapt::gnmi
