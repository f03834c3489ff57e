// Archives and manifests: no input crashes; what is read packs and verifies again.
#include "base/file.hpp"
#include "fuzz.hpp"
#include "operate/snapshot/snapshot.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace snapshot = weft::operate::snapshot;
  const std::string_view input = weft::fuzz::text_of(data, size);
  static_cast<void>(snapshot::verify(input, "fuzz"));
  if (const auto files = weft::read_plain_tar(input, "fuzz")) {
    const auto again = weft::write_tar(*files, {0});
    WEFT_CHECK(again.has_value() && weft::read_plain_tar(*again, "again").has_value());
  }
  if (const auto manifest = snapshot::parse_manifest(input, "fuzz"))
    WEFT_CHECK(snapshot::parse_manifest(to_json(*manifest), "again").has_value());
  return 0;
}
