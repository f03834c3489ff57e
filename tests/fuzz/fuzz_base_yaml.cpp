// parse_yaml: no input crashes, and what it accepts survives to_yaml unchanged.
#include "base/config.hpp"
#include "fuzz.hpp"

namespace {

bool same(const weft::Config& a, const weft::Config& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size() ||
      a.fields.size() != b.fields.size())
    return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  for (std::size_t i = 0; i < a.fields.size(); ++i)
    if (a.fields[i].key != b.fields[i].key || !same(a.fields[i].value, b.fields[i].value))
      return false;
  return true;
}

// Aliases make large trees of short texts, and to_yaml writes them out.
std::size_t text_size(const weft::Config& config) {
  std::size_t out = config.text.size() + 1;
  for (const weft::Config& item : config.items) out += text_size(item);
  for (const auto& field : config.fields) out += field.key.size() + text_size(field.value);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!config) {
    WEFT_CHECK(!config.error().what.empty());
    WEFT_CHECK(!config.error().hint.empty());
    return 0;
  }
  if (text_size(*config) > 1 << 18) return 0;
  const auto again = weft::parse_yaml(weft::to_yaml(*config), "again.yaml");
  if (!again) {  // brackets inside plain text count as nesting, and quotes around it may add some
    WEFT_CHECK(again.error().what.starts_with("brackets nested"));
    return 0;
  }
  WEFT_CHECK(same(*config, *again));
  return 0;
}
