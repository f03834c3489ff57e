// read_options: no input crashes or hangs, and what is accepted keeps to what the engine relies on.
#include "engine/packet/read_options.hpp"
#include "fuzz_fabric.hpp"

namespace {

using weft::Bytes;
namespace packet = weft::engine::packet;

const weft::model::Fabric& zone() {
  static const weft::model::Fabric fabric =
      weft::fuzz::make_fabric("{generator: ai_zone, racks: 2, spines: 2}");
  return fabric;
}

void check(const packet::Options& options) {
  const Bytes full = options.wire.mtu + options.wire.header;
  WEFT_CHECK(full > Bytes{0} && full <= Bytes{65'535});
  for (const auto& [role, buffer] : options.buffers)
    WEFT_CHECK((buffer.shared.count == 0 || buffer.shared >= full) &&
               (buffer.per_port.count == 0 || buffer.per_port >= full));
  WEFT_CHECK(!options.pfc.on || options.pfc.xon <= options.pfc.xoff);
  WEFT_CHECK(options.ecn.kmin <= options.ecn.kmax);
  WEFT_CHECK(options.ecn.pmax > 0 && options.ecn.pmax <= 1);
  const packet::Scheduler& scheduler = options.scheduler;
  WEFT_CHECK(!scheduler.weights.empty() && scheduler.weights.size() <= packet::class_count_max);
  for (const std::uint32_t number :
       {scheduler.data_class, scheduler.ack_class, scheduler.control_class})
    WEFT_CHECK(number < scheduler.weights.size());
  WEFT_CHECK(options.window.count == 0 || options.window >= full);
  WEFT_CHECK(options.end > 0 && options.ack_timeout.ps > 0);
}

}  // namespace

// A map {transport: ..., routing: ...}.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!config) return 0;
  const weft::Config none;
  const auto section = [&](const char* key) -> const weft::Config& {
    const weft::Config* found = config->find(key);
    return found != nullptr ? *found : none;
  };
  weft::Errors errors;
  std::vector<std::string> notes;
  weft::route::RoutingConfig routing = weft::route::read_routing(section("routing"), errors);
  const weft::Config transport = packet::transport_section(section("transport"));
  weft::Reader reader(transport, "transport", errors);
  const packet::Options options = packet::read_options(reader, {&zone(), routing, errors, notes});
  reader.finish();
  if (errors.empty()) check(options);
  for (const weft::Error& error : errors) WEFT_CHECK(!error.what.empty());
  return 0;
}
