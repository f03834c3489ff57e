#include "os/tls.hpp"

#include <doctest/doctest.h>

#include "base/test_folder.hpp"

using namespace weft;

TEST_CASE("files that cannot be used are named, with OpenSSL's reason") {
  const TestFolder folder;
  const std::string none = folder.file("none"), junk = folder.write("junk", "no certificate\n");
  for (const std::string& certificate : {none, junk}) {
    const auto server = make_tls_server(certificate, none, "");
    REQUIRE_FALSE(server.has_value());
    const std::string text = server.error().text();
    CAPTURE(text);
    CHECK(text.starts_with("cannot use the certificate \"" + certificate + "\": "));
    CHECK(text.find("unknown reason") == std::string::npos);
    CHECK(take_tls_reason().empty());
  }
}
