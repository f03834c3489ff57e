#include "os/digest.hpp"

#include <doctest/doctest.h>

using namespace weft;

TEST_CASE("SHA-256 of the published examples") {  // FIPS 180-4, and of no bytes
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_base64("") == "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}

TEST_CASE("SHA-256 in pieces is that of the whole") {
  Sha256 digest;
  for (const char* piece : {"a", "", "bc"}) digest.add(piece);
  CHECK(digest.hex() == sha256_hex("abc"));
  CHECK(Sha256().hex() == sha256_hex(""));
}

TEST_CASE("base64 of RFC 4648, and what is not base64") {
  CHECK(from_base64("Zg==") == "f");
  CHECK(from_base64("Zm8=") == "fo");
  CHECK(from_base64("Zm9vYmFy") == "foobar");
  CHECK(from_base64("AAAA") == std::string(3, '\0'));
  for (const char* text : {"", "Zg", "Zg=", "Zm9v!mFy", "Zm9v\nmFy"})
    CHECK_FALSE(from_base64(text));
  CHECK(from_base64(std::string(4'096, 'A')));
  CHECK_FALSE(from_base64(std::string(4'100, 'A')));
}
