// read_policy: no input crashes, what is refused is told, and what is accepted opens nothing
// between tenants that only one of them agrees to.
#include <algorithm>

#include "fuzz.hpp"
#include "operate/tenants/tenants.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace tenants = weft::operate::tenants;
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!config) return 0;
  const auto policy = tenants::read_policy(*config);
  if (!policy) {
    WEFT_CHECK(!policy.error().what.empty());
    return 0;
  }
  WEFT_CHECK(tenants::to_nftables(*policy).ends_with("}\n"));
  for (const tenants::Party& from : policy->parties)
    for (const tenants::Party& to : policy->parties) {
      if (&from == &to || !from.is_tenant || !to.is_tenant) continue;
      const bool accepts =
          std::ranges::find(to.accept, from.name, &tenants::Permit::party) != to.accept.end();
      const bool allows =
          std::ranges::find(from.allow, to.name, &tenants::Permit::party) != from.allow.end();
      WEFT_CHECK(tenants::reach(*policy, from.name, to.name).empty() || (accepts && allows));
    }
  return 0;
}
