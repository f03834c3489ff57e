// The side file of process groups: no input crashes, and every group that is accepted has each
// rank once.
#include <algorithm>

#include "fuzz.hpp"
#include "workload/trace/chakra_groups.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::workload;
  const std::string text(weft::fuzz::text_of(data, size));
  static_cast<void>(tensor_bytes(text));
  const auto groups = read_group_file({"groups.json", text});
  if (!groups) {
    WEFT_CHECK(!groups.error().what.empty() && !groups.error().hint.empty());
    return 0;
  }
  for (const auto& [name, list] : groups->ranks) {
    std::vector<std::uint32_t> ranks = list;
    std::ranges::sort(ranks);
    WEFT_CHECK(std::ranges::adjacent_find(ranks) == ranks.end());
    WEFT_CHECK(ranks.empty() || ranks.back() < groups->ranks_named);
  }
  return 0;
}
