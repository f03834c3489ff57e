// Documents of repairs: no input crashes, what is read is written the same, and a machine goes on
// from whatever it accepts.
#include <array>

#include "base/config.hpp"
#include "fuzz_fabric.hpp"
#include "operate/repair/repair.hpp"

namespace {

const weft::model::Fabric& fabric() {
  static const weft::model::Fabric built = weft::fuzz::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2, "
      "link: 400 Gbps}");
  return built;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::operate::repair;
  static const Policy policy = default_policy();  // reading it takes longer than all else
  const std::string text(weft::fuzz::text_of(data, size));
  if (const auto ticket = read_ticket(fabric(), text)) {
    const auto again = read_ticket(fabric(), to_json(fabric(), *ticket));
    WEFT_CHECK(again.has_value());
    WEFT_CHECK(to_json(fabric(), *again) == to_json(fabric(), *ticket));
  }
  const weft::Timestamp now{1'700'000'000 * weft::ns_per_s};
  for (const std::string_view id : {std::string_view("c/1"), Repair::machine_id}) {
    Repair machine(fabric(), policy);
    const std::array<weft::port::Document, 1> documents{
        {{std::string(Repair::document_kind), std::string(id), now, text}}};
    if (!machine.restore(documents, now)) continue;
    for (int i = 0; i < 4; ++i) static_cast<void>(machine.step({now.ns + i * weft::ns_per_s}));
  }
  return 0;
}
