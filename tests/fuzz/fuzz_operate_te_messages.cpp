// What agents and the service say about marks: no input crashes, errors name who said it, and what
// was read is written and read again as it was.
#include <string>

#include "fuzz.hpp"
#include "operate/te/switch_messages.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  using namespace weft::operate::te;
  const std::string_view text = fuzz::text_of(data, size);
  if (const auto report = parse_report(text, "agent")) {
    const auto again = parse_report(to_json(*report), "again");
    WEFT_CHECK(again && again->agent == report->agent && again->serial == report->serial);
    WEFT_CHECK(again->ports == report->ports && again->routes == report->routes);
    WEFT_CHECK(again->done == report->done && again->marks == report->marks);
  } else {
    WEFT_CHECK(report.error().where.file == "agent");
  }
  if (const auto orders = parse_orders(text, "service")) {
    const auto again = parse_orders(to_json(*orders), "again");
    WEFT_CHECK(again && again->place == orders->place && again->changes == orders->changes);
    WEFT_CHECK(again->renewals == orders->renewals && again->watch == orders->watch);
  } else {
    WEFT_CHECK(orders.error().where.file == "service");
  }
  return 0;
}
