// Answers of gNMI targets: no bytes crash, memory stays bounded, samples are finite and known, and
// the same bytes make the same samples. A JSON text and a path as text go in as well.
#include <cmath>
#include <string>
#include <vector>

#include "adapt/gnmi/decoder.hpp"
#include "adapt/gnmi/neighbours.hpp"
#include "adapt/gnmi/path.hpp"
#include "fuzz.hpp"

namespace {

namespace feed = weft::adapt::gnmi;

std::vector<std::string> decode(std::string_view bytes) {
  constexpr weft::Timestamp now{1'800'000'000'000'000'000};
  feed::MisreadTable misread;
  feed::Decoder decoder("leaf1", misread);
  std::vector<weft::port::Sample> samples;
  // Twice, since components and counters are remembered, and with a sync at the end.
  for (int round = 0; round < 2; ++round) {
    if (!decoder.take_bytes(bytes, now, samples)) break;
    WEFT_CHECK(decoder.take_bytes("\x18\x01", now, samples) == feed::Decoder::Said::sync);
  }
  WEFT_CHECK(misread.rows().size() <= feed::MisreadTable::paths_max * feed::misread_count);
  std::vector<std::string> out;
  for (const weft::port::Sample& one : samples) {
    WEFT_CHECK(std::isfinite(one.value));
    WEFT_CHECK(one.t >= weft::Timestamp{now.ns - feed::Decoder::clock_error_ns_max});
    out.push_back(weft::port::to_json(one));
  }
  return out;
}

// Neighbours have names, and addresses lengths, whatever leaves there are.
void discover(std::string_view bytes) {
  feed::MisreadTable misread;
  feed::NeighbourReader reader;
  feed::Decoder decoder("leaf1", misread, [&](std::string_view device, const feed::Leaf& leaf) {
    reader.take(device, leaf);
  });
  std::vector<weft::port::Sample> samples;
  if (!decoder.take_bytes(bytes, {1'800'000'000'000'000'000}, samples)) return;
  WEFT_CHECK(samples.empty());
  const auto said = reader.finish();
  for (const weft::model::Neighbours& one : said) {
    for (const auto& row : one.lldp) WEFT_CHECK(!row.device.empty() && !row.port.empty());
    for (const auto& row : one.addresses) WEFT_CHECK(row.address.length <= row.address.bits());
  }
  static_cast<void>(weft::model::cables_of(said));
}

// A field of a message: its tag, its length and its bytes.
std::string field(char tag, const std::string& bytes) {
  std::string out{tag};
  std::size_t size = bytes.size();
  for (; size >= 128; size /= 128) out += static_cast<char>(size % 128 + 128);
  out += static_cast<char>(size);
  return out + bytes;
}

// The answer whose only update has `text` as its JSON value at the root of the tree.
std::string json_answer(std::string_view text) {
  constexpr char update = 0x0a, updates = 0x22, value = 0x1a, json_ietf = 0x5a;
  return field(update, field(updates, field(value, field(json_ietf, std::string(text)))));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = weft::fuzz::text_of(data, size);
  WEFT_CHECK(decode(bytes) == decode(bytes));
  const std::string answer = json_answer(bytes);
  WEFT_CHECK(decode(answer) == decode(answer));
  discover(bytes);
  discover(answer);
  if (const auto path = feed::parse_path({bytes, {}}))
    WEFT_CHECK(path->elements.size() <= feed::path_elements_max);
  return 0;
}
