#include "serve/auth.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <string>

#include "base/test_folder.hpp"
#include "os/digest.hpp"

namespace weft::serve {
namespace {

std::string error_of(std::string_view text) {
  const auto tokens = Tokens::parse(text, "tokens");
  return tokens ? "" : tokens.error().text();
}

TEST_CASE("a token is known by its hash, and has the roles of its line") {
  const auto tokens = Tokens::parse(
      fmt::format("# who may do what\n\nvector ingest {}\n  ann\tread,operate  {}  # on call\n",
                  sha256_hex("s3cret"), sha256_hex("other")),
      "tokens");
  REQUIRE(tokens.has_value());
  CHECK(tokens->size() == 2);
  const auto vector = tokens->of_token("s3cret");
  REQUIRE(vector.has_value());
  CHECK(vector->name == "vector");
  CHECK(vector->roles.has(Role::ingest));
  CHECK_FALSE(vector->roles.has(Role::read));
  const auto ann = tokens->of_token("other");
  REQUIRE(ann.has_value());
  CHECK(ann->roles.has(Role::operate));
  for (const char* wrong : {"", "S3cret", "s3cre", "s3cret "}) CHECK_FALSE(tokens->of_token(wrong));
  // The hash itself opens nothing, nor does what certificates are known by.
  CHECK_FALSE(tokens->of_token(sha256_hex("s3cret")));
  CHECK_FALSE(tokens->of_certificate("ann"));
}

TEST_CASE("certificates have their own lines") {
  const auto tokens = Tokens::parse("gw-7.dc1 ingest certificate\n", "tokens");
  REQUIRE(tokens.has_value());
  CHECK_FALSE(tokens->has_tokens());
  REQUIRE(tokens->of_certificate("gw-7.dc1"));
  CHECK(tokens->of_certificate("gw-7.dc1")->roles.has(Role::ingest));
  CHECK_FALSE(tokens->of_certificate("gw-7"));
  CHECK_FALSE(tokens->of_token("certificate"));
  CHECK_FALSE(tokens->of_token(""));
}

TEST_CASE("every wrong line is told, with its number") {
  const std::string good = sha256_hex("x");
  const std::string text = error_of(
      fmt::format("a read\nb reed {}\nc read 1234\nd/e read {}\nf read {}\n", good, good, good));
  CHECK(text.find("tokens:1:1: 2 words, but three") != std::string::npos);
  CHECK(text.find("tokens:2:1: \"reed\" is not a role") != std::string::npos);
  CHECK(text.find("tokens:3:1: the third word") != std::string::npos);
  CHECK(text.find("tokens:4:1: \"d/e\" is not a valid name") != std::string::npos);
  CHECK(text.find("tokens:5:1: duplicate: already on an earlier line") != std::string::npos);
  CHECK(error_of("# nobody\n").find("grants access to nobody") != std::string::npos);
  CHECK(error_of(std::string(70'000, 'a')) != "");
}

TEST_CASE("a file that others may read is refused") {
  const TestFolder folder;
  const std::string file = folder.write("tokens", fmt::format("a read {}\n", sha256_hex("x")));
  ::chmod(file.c_str(), 0644);
  const auto open = Tokens::load(file);
  REQUIRE_FALSE(open.has_value());
  CHECK(open.error().code == Errc::io);
  CHECK(open.error().text().find("chmod 600") != std::string::npos);
  ::chmod(file.c_str(), 0620);
  CHECK_FALSE(Tokens::load(file).has_value());
  ::chmod(file.c_str(), 0640);
  CHECK(Tokens::load(file).has_value());
  CHECK_FALSE(Tokens::load(file + ".none").has_value());
}

TEST_CASE("the token of a header") {
  CHECK(token_of_header("Bearer abc") == "abc");
  CHECK(token_of_header("bearer   abc ") == "abc");
  CHECK(token_of_header("Basic YW5uOnMzY3JldA==") == "s3cret");  // ann:s3cret
  CHECK(token_of_header("Basic OnM6Yw==") == "s:c");             // :s:c
  for (const char* wrong : {"", "Bearer", "Bearer ", "Basic", "Basic !!!!", "Basic YW5u",
                            "Digest x", "Basic YW5uOnMzY3JldA"})
    CHECK_FALSE(token_of_header(wrong));
}

}  // namespace
}  // namespace weft::serve
