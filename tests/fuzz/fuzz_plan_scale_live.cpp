// The file of services, pushed samples, and answers of Prometheus: what is taken is within bounds,
// and a scaler that is fed with it asks for a number of replicas within them.
#include "fuzz.hpp"
#include "plan/scale/live.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  using namespace weft::plan::scale;
  const std::string_view text = fuzz::text_of(data, size);
  if (const auto yaml = parse_yaml(text, "s.yaml"))
    if (const auto config = read_live(*yaml))
      for (const LiveSettings& service : config->services)
        WEFT_CHECK(service.step_ns > 0 && service.service.least <= service.service.most &&
                   service.service.start_up > 0);
  for (const auto& samples : {read_samples(text, "b"), read_range_answer(text, "p")}) {
    if (!samples) continue;
    LiveSettings settings{.name = "a", .step_ns = 60 * ns_per_minute};
    settings.service = {.capacity = 3, .most = 9};
    const auto live = LiveScaler::open(settings, {});
    if (!live.value()->push(*samples)) continue;
    const auto wish = live.value()->wish({INT64_MIN});
    WEFT_CHECK(!wish || (wish->all() >= 1 && wish->all() <= 9));
  }
  return 0;
}
