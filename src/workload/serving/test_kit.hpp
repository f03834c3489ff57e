// For tests: a profile whose times are easy to add up.
#pragma once

#include <string>

#include "base/check.hpp"
#include "workload/serving/profile.hpp"

namespace weft::workload::testing {

// Microseconds: a step costs 5 + layers x (10 + 2 x 1 + attention) + 20; attention of a layer 7
// with prefills, 3 with decodes alone, whatever their sizes.
inline KernelProfile plain_profile() {
  std::string attention = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n";
  for (const char* decodes : {"0,0", "1,16", "1,4096", "64,16", "64,4096"})
    for (const char* prefill : {"0,0", "16,0", "16,4096", "2048,0", "2048,4096"}) {
      const bool none = *prefill == '0';
      if (none && *decodes == '0') continue;
      attention += std::string(prefill) + "," + decodes + (none ? ",3\n" : ",7\n");
    }
  auto out = read_profile(
      {"dense.csv",
       "layer,tokens,time_us\nembedding,1,5\nlayernorm,1,1\nqkv_proj,1,10\nqkv_proj,4096,10\n"},
      {"per_sequence.csv", "layer,sequences,time_us\nlm_head,1,20\n"},
      {"attention.csv", attention});
  WEFT_CHECK(out.has_value());
  return *std::move(out);
}

}  // namespace weft::workload::testing
