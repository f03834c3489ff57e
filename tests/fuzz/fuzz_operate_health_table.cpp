// decode: no input crashes; what it takes can be shown, and encodes to the same again. The sum is
// set right, or else nothing would get past it.
#include <cstring>
#include <string>

#include "fuzz.hpp"
#include "operate/health/table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::operate::health;
  std::string bytes(weft::fuzz::text_of(data, size));
  for (const bool is_mended : {false, true}) {
    if (is_mended && bytes.size() >= sizeof(layout::TableHead)) {
      layout::TableHead head;
      std::memcpy(&head, bytes.data(), sizeof head);
      head.version = layout::version;
      if (layout::bytes_of(head) > layout::slot_bytes) continue;
      head.bytes = static_cast<std::uint32_t>(layout::bytes_of(head));
      bytes.resize(std::max<std::size_t>(bytes.size(), head.bytes));
      std::memcpy(bytes.data(), &head, sizeof head);
      head.sum = layout::sum_of(bytes.data() + 8, head.bytes - 8);
      std::memcpy(bytes.data(), &head.sum, sizeof head.sum);
    }
    const auto table = decode(bytes, "fuzz.health");
    if (!table) {
      WEFT_CHECK(table.error().where.file == "fuzz.health" && !table.error().hint.empty());
      continue;
    }
    WEFT_CHECK(!to_text(*table, {}).empty() && !to_json(*table, {}).text().empty());
    const auto again = decode(encode(*table), "again");
    WEFT_CHECK(again.has_value() && again->rails == table->rails &&
               again->links.size() == table->links.size() &&
               again->advice.size() == table->advice.size());
  }
  return 0;
}
