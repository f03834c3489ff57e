// The redactor: nothing crashes or outgrows its bound, and a password on a line of its own is gone
// whatever stands before it.
#include <string>

#include "fuzz.hpp"
#include "operate/snapshot/redact.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace snapshot = weft::operate::snapshot;
  const std::string planted = "Zq8-planted-Zq8";
  const std::string input(weft::fuzz::text_of(data, size));
  if (input.find(planted) != std::string::npos) return 0;
  snapshot::Redactor redactor({.private_addresses = snapshot::Treatment::pseudonym,
                               .names = {"acme", "rack"},
                               .listed_names = snapshot::Treatment::pseudonym});
  const std::string text = input + "\nneighbor 10.0.0.1 password " + planted + "\n";
  const std::string out = redactor.redact(text);
  WEFT_CHECK(out.find(planted) == std::string::npos);
  WEFT_CHECK(out.size() <= 16 * text.size());
  return 0;
}
