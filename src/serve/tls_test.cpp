#include "serve/tls.hpp"

#include <doctest/doctest.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "base/test_folder.hpp"
#include "os/digest.hpp"
#include "serve/api_kit.hpp"
#include "serve/auth.hpp"
#include "serve/test_identity.hpp"

namespace weft::serve {
namespace {

using namespace testing;

// The status of a command, 0 where the connection fails. TLS 1.3 tells a client only after its
// handshake that it was refused.
int command_status(const Api& api, SSL_CTX* context, std::string_view headers = "") {
  Client client(api.port());
  if (!client.start_tls(context)) return 0;
  return client.call("PUT", "/v1/kill-switch", R"({"reason":"r"})", headers).status;
}

TEST_CASE("TLS with tokens, beyond this machine") {
  const TestFolder folder;
  const Identity authority(folder, "ca", "ca");
  const Identity server(folder, "server", "localhost", &authority);
  Bed bed(ApiOptions{
      .listen = "0.0.0.0:0",
      .certificate = server.certificate(),
      .key = server.key(),
      .tokens = folder.write("tokens", fmt::format("ann operate {}\n", sha256_hex("t")))});
  const auto context = client_context(authority, nullptr);
  CHECK(command_status(*bed.api, context.get()) == 401);
  CHECK(command_status(*bed.api, context.get(), "Authorization: Bearer t\r\n") == 200);
  CHECK(bed.service.commands.at(0).who == "ann");
  // Plain HTTP meets a closed door, and so does an old version.
  CHECK(call(*bed.api, "GET", "/healthz").status == 0);
  SSL_CTX_set_max_proto_version(context.get(), TLS1_1_VERSION);
  CHECK(command_status(*bed.api, context.get(), "Authorization: Bearer t\r\n") == 0);
  SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  CHECK(command_status(*bed.api, context.get(), "Authorization: Bearer t\r\n") == 200);
}

TEST_CASE("mutual TLS: the right certificate, and no other") {
  const TestFolder folder;
  const Identity authority(folder, "ca", "ca");
  const Identity stranger_authority(folder, "other", "ca");
  const Identity server(folder, "server", "localhost", &authority);
  const Identity ann(folder, "ann", "ann", &authority);
  const Identity stranger(folder, "stranger", "ann", &stranger_authority);
  const Identity expired(folder, "expired", "ann", &authority, -60);
  const Identity nameless(folder, "nameless", "", &authority);
  const Identity odd(folder, "odd", "ann\nbob", &authority);
  Bed bed(ApiOptions{.listen = "0.0.0.0:0",
                     .certificate = server.certificate(),
                     .key = server.key(),
                     .client_ca = authority.certificate()});
  const auto status = [&](const Identity* own) {
    return command_status(*bed.api, client_context(authority, own).get());
  };
  CHECK(status(&ann) == 200);
  CHECK(bed.service.commands.at(0).who == "ann");
  CHECK(status(nullptr) == 0);
  for (const Identity* wrong : {&stranger, &expired, &nameless, &odd}) CHECK(status(wrong) == 0);
  CHECK(bed.service.commands.size() == 1);
  CHECK(eventually([&] {
    Client client(bed.api->port());
    REQUIRE(client.start_tls(client_context(authority, &ann).get()));
    return client.call("GET", "/metrics").body.find("weft_http_handshakes_failed_total 5\n") !=
           std::string::npos;
  }));
}

TEST_CASE("mutual TLS with a file of roles") {
  const TestFolder folder;
  const Identity authority(folder, "ca", "ca");
  const Identity server(folder, "server", "localhost", &authority);
  const Identity gateway(folder, "gw", "gw-7", &authority);
  const Identity guest(folder, "guest", "guest", &authority);
  Bed bed(ApiOptions{.certificate = server.certificate(),
                     .key = server.key(),
                     .client_ca = authority.certificate(),
                     .tokens = folder.write("tokens", fmt::format("gw-7 operate certificate\n"
                                                                  "eve operate {}\n",
                                                                  sha256_hex("t")))});
  CHECK(command_status(*bed.api, client_context(authority, &gateway).get()) == 200);
  const auto context = client_context(authority, &guest);
  CHECK(command_status(*bed.api, context.get()) == 403);
  CHECK(command_status(*bed.api, context.get(), "Authorization: Bearer t\r\n") == 200);
  CHECK(command_status(*bed.api, context.get(), "Authorization: Bearer x\r\n") == 401);
  REQUIRE(bed.service.commands.size() == 2);
  CHECK(bed.service.commands[0].who == "gw-7");
  CHECK(bed.service.commands[1].who == "eve");
}

TEST_CASE("large bodies and event streams go through TLS too; certificates are read again") {
  const TestFolder folder;
  const Identity authority(folder, "ca", "ca");
  const Identity server(folder, "server", "localhost", &authority);
  const Bed bed(ApiOptions{.certificate = server.certificate(), .key = server.key()});
  const auto context = client_context(authority, nullptr);
  Client client(bed.api->port());
  REQUIRE(client.start_tls(context.get()));
  std::string body;
  for (int i = 0; i < 50'000; ++i) body += fmt::format("line {} of many\n", i);
  CHECK(client.call("POST", "/v1/records", body).body.find("\"acknowledged\":50000") !=
        std::string::npos);
  client.send(Client::request("GET", "/v1/events"));
  CHECK_FALSE(client.receive_until("event: hello").empty());
  const Identity second_authority(folder, "ca2", "ca2");
  const Identity second(folder, "server", "localhost", &second_authority);
  REQUIRE(bed.api->reload());
  CHECK(command_status(*bed.api, context.get()) == 0);
  CHECK(command_status(*bed.api, client_context(second_authority, nullptr).get()) == 200);
}

TEST_CASE("files that are no certificates or keys") {
  const TestFolder folder;
  const Identity one(folder, "one", "one");
  const Identity two(folder, "two", "two");
  CHECK(TlsContext::load({one.certificate(), one.key(), one.certificate()}).has_value());
  for (const TlsFiles& files :
       {TlsFiles{one.certificate(), two.key(), ""}, TlsFiles{folder.file("none"), one.key(), ""},
        TlsFiles{one.certificate(), one.certificate(), ""},
        TlsFiles{one.certificate(), one.key(), one.key()}}) {
    const auto context = TlsContext::load(files);
    REQUIRE_FALSE(context.has_value());
    CHECK_FALSE(context.error().text().empty());
  }
}

}  // namespace
}  // namespace weft::serve
