// The tuner of libweft-nccl.so on any table and any costs: what NCCL can do stays possible, and
// what it cannot stays impossible. The input is the costs, and then the table, whose sum is set
// right.
#include <array>
#include <cstring>
#include <string>

#include "adapt/nccl/tuner.hpp"
#include "fuzz.hpp"
#include "operate/health/layout.hpp"

extern "C" const weft::adapt::nccl::Tuner5
    ncclTunerPlugin_v5;  // NOLINT(readability-identifier-naming)

namespace {

std::string whole_table(std::string bytes) {
  using namespace weft::operate::health::layout;
  if (bytes.size() < sizeof(TableHead)) return bytes;
  TableHead head;
  std::memcpy(&head, bytes.data(), sizeof head);
  head.version = version;
  if (bytes_of(head) > slot_bytes) return bytes;
  head.bytes = static_cast<std::uint32_t>(bytes_of(head));
  bytes.resize(std::max<std::size_t>(bytes.size(), head.bytes));
  std::memcpy(bytes.data(), &head, sizeof head);
  head.sum = sum_of(bytes.data() + 8, head.bytes - 8);
  std::memcpy(bytes.data(), &head.sum, sizeof head.sum);
  return bytes;
}

bool is_possible(float cost) { return cost >= 0; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr int algorithms = 7, protocols = 3;
  std::array<float, algorithms * protocols> costs{};
  if (size < sizeof costs) return 0;
  std::memcpy(costs.data(), data, sizeof costs);
  const std::string table =
      whole_table(std::string(weft::fuzz::text_of(data + sizeof costs, size - sizeof costs)));
  weft_health_adopt(table.data(), table.size());
  void* context = nullptr;
  ncclTunerPlugin_v5.init(&context, 1, 32, 4, nullptr, nullptr, nullptr);
  for (int operation = 0; operation < 6; ++operation) {
    std::array<float, algorithms * protocols> after = costs;
    int channels = 0;
    ncclTunerPlugin_v5.choose(context, operation, std::size_t{1} << 30, 1,
                              reinterpret_cast<float**>(after.data()), algorithms, protocols, 0,
                              &channels);
    WEFT_CHECK(channels >= 0 && channels <= 255);
    for (std::size_t i = 0; i < costs.size(); ++i)
      WEFT_CHECK(is_possible(costs[i]) == is_possible(after[i]));
  }
  ncclTunerPlugin_v5.finalize(context);
  return 0;
}
