// SPIFFE IDs, JWK sets, JWTs and label selectors: whatever comes, nothing is let in that no key
// signed.
#include "fuzz.hpp"
#include "serve/external_metrics.hpp"
#include "serve/svid.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::string_view text = fuzz::text_of(data, size);
  if (serve::is_spiffe_id(text)) WEFT_CHECK(text.starts_with("spiffe://") && !text.ends_with('/'));
  static const auto keys =
      serve::JwtKeys::parse(R"({"keys":[{"kty":"EC","crv":"P-256",)"
                            R"("x":"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",)"
                            R"("y":"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}]})",
                            "b");
  WEFT_CHECK(keys.has_value());
  WEFT_CHECK(!keys->verify(text, "weft", {1'800'000'000 * ns_per_s}).has_value());
  const auto parsed = serve::JwtKeys::parse(text, "b");
  WEFT_CHECK(parsed || !parsed.error().what.empty());
  if (const auto selector = serve::LabelSelector::parse(text))
    static_cast<void>(selector->fits({{"service", "shop"}}));
  return 0;
}
