// Kernel profiles: no input crashes, and one that is accepted tells finite times. The first byte
// says which of the three files the rest is; the others are good.
#include <cmath>
#include <string>

#include "fuzz.hpp"
#include "workload/serving/step_time.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::workload;
  if (size == 0) return 0;
  const std::string made_up(weft::fuzz::text_of(data + 1, size - 1));
  ProfileText dense{"dense.csv", "layer,tokens,time_us\nembedding,1,5\n"};
  ProfileText sequence{"sequence.csv", "layer,sequences,time_us\nlm_head,1,20\n"};
  ProfileText attention{"attention.csv",
                        "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n16,0,0,0,7\n"};
  (data[0] % 3 == 0 ? dense : data[0] % 3 == 1 ? sequence : attention).text = made_up;
  const auto profile = read_profile(dense, sequence, attention);
  if (!profile) {
    WEFT_CHECK(!profile.error().what.empty());
    return 0;
  }
  for (const double x : {0.0, 1.0, 17.5, 3e4}) {
    WEFT_CHECK(std::isfinite(profile->dense_seconds(x, 2)));
    WEFT_CHECK(std::isfinite(profile->per_sequence_seconds(x)));
    WEFT_CHECK(std::isfinite(profile->attention.at({x, x / 2, x, 2 * x})));
    WEFT_CHECK(profile->attention.at({x, x, x, x}) >= 0);
  }
  return 0;
}
