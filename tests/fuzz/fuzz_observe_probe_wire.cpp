// The wire formats of probing: no bytes crash, what is not signed is never believed, what decodes
// encodes to the same bytes, and responders answer nothing that they should not.
#include <algorithm>

#include "fuzz.hpp"
#include "observe/probe/quote.hpp"
#include "observe/probe/responder.hpp"
#include "observe/probe/sweep.hpp"
#include "observe/probe/wire.hpp"

namespace {

namespace probe = weft::observe::probe;

constexpr probe::Key key{3, 5};

void check_response(std::span<const std::byte> bytes, probe::Fault fault) {
  weft::port::Incoming in;
  in.size = static_cast<std::uint32_t>(bytes.size());
  std::copy_n(bytes.begin(), std::min(bytes.size(), in.bytes.size()), in.bytes.begin());
  probe::Responder responder({.key = key, .age_max_ns = 0, .flows_max = 8, .sources_max = 8});
  probe::Message reply;
  const probe::Verdict verdict = responder.take(in, {1}, {1}, reply);
  if (fault != probe::Fault::none) WEFT_CHECK(verdict != probe::Verdict::answered);
  WEFT_CHECK(responder.count(verdict) == 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  probe::Message message;
  const probe::Fault fault = probe::decode(bytes, key, message);
  check_response(bytes, fault);
  if (fault == probe::Fault::none) {
    probe::WireBytes again;
    probe::encode(message, key, again);
    WEFT_CHECK(std::ranges::equal(again, bytes.first(probe::wire_bytes)));
  }
  // The same bytes, signed: the fields' checks rather than the signature's.
  if (size >= probe::wire_bytes) {
    probe::WireBytes made;
    std::copy_n(bytes.begin(), made.size(), made.begin());
    const std::uint64_t code = probe::siphash(key, std::span(made).first(probe::wire_bytes - 8));
    for (std::size_t i = 0; i < 8; ++i)
      made[probe::wire_bytes - 1 - i] = static_cast<std::byte>(code >> (8 * i));
    check_response(made, probe::decode(made, key, message));
  }
  if (const auto complaint = probe::read_complaint(bytes))
    if (const auto mark = probe::sweep_mark(complaint->udp_length))
      WEFT_CHECK(probe::sweep_bytes(mark->ttl, mark->round) + 8 == complaint->udp_length);
  return 0;
}
