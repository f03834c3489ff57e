// read_graphml: no input crashes, and a fabric that it accepts comes back from its own export.
#include "fuzz.hpp"
#include "model/formats/graph_export.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::model::GraphmlOptions options{.rate = weft::Rate{1'000'000'000},
                                            .limits = {.nodes = 2'000, .links = 4'000}};
  const auto fabric =
      weft::model::read_graphml(weft::fuzz::text_of(data, size), "fuzz.xml", options);
  if (!fabric) {
    WEFT_CHECK(!fabric.error().what.empty());
    return 0;
  }
  const std::string text = to_graphml(*fabric);
  const auto back = weft::model::read_graphml(text, "again.xml");
  WEFT_CHECK(back.has_value());
  WEFT_CHECK(to_graphml(*back) == text);
  WEFT_CHECK(!to_dot(*fabric).empty());
  return 0;
}
