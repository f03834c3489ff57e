// read_ring: no input crashes or takes more memory than the file has; errors name the file. The
// input is the beginning of a file of one ring, the rest of which is zero.
#include <string>

#include "fuzz.hpp"
#include "observe/colltrace/ring.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::observe::colltrace;
  constexpr std::size_t tables = ring::ring_offset, one_ring = tables + ring::ring_stride;
  // The tables at their places, and what follows them as the ring's head and first records.
  std::string content(one_ring, '\0');
  const std::string_view text = weft::fuzz::text_of(data, size);
  const std::size_t head = std::min<std::size_t>(text.size(), sizeof(ring::ProcessHead));
  content.replace(0, head, text.substr(0, head));
  const std::string_view rest = text.substr(head, one_ring - tables);
  content.replace(tables, rest.size(), rest);
  for (const std::string_view input : {std::string_view(content), text}) {
    const auto trace = read_ring(input, "fuzz.ring");
    if (!trace) {
      WEFT_CHECK(trace.error().where.file == "fuzz.ring" && !trace.error().hint.empty());
      continue;
    }
    for (const RingProxy& p : trace->proxies)
      WEFT_CHECK(!p.operation || *p.operation < trace->operations.size());
    for (const RingOperation& o : trace->operations)
      WEFT_CHECK(o.communicator < trace->communicators.size());
    std::string copy(input);  // as an agent sends it
    cut_ring(copy, 5);
    stamp_ring(copy, {}, 7);
    const auto sent = read_ring(copy, "fuzz.ring");
    WEFT_CHECK(sent && sent->is_gone && sent->operations.size() <= trace->operations.size());
  }
  return 0;
}
