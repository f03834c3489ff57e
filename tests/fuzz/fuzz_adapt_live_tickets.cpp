// read_ticket_settings, and titles and texts of tickets from any notice.
#include "adapt/live/tickets.hpp"
#include "base/config.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = weft::fuzz::text_of(data, size);
  const weft::port::Notice notice{.id = "1", .case_id = "c", .body = std::string(text)};
  WEFT_CHECK(!weft::adapt::live::ticket_title(notice).empty());
  WEFT_CHECK(!weft::adapt::live::ticket_text({}, notice).empty());
  const auto config = weft::parse_yaml(text, "fuzz.yaml");
  if (!config) return 0;
  const auto settings = weft::adapt::live::read_ticket_settings(*config);
  if (!settings) WEFT_CHECK(!settings.error().what.empty());
  return 0;
}
