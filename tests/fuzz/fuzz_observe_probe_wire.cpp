// The wire formats of probing: no bytes crash, what is not signed is never believed, what decodes
// encodes to the same bytes, responders answer nothing that they should not, questions for counts
// change nothing, and whatever a responder answers to them, each probe is accounted for once.
#include <algorithm>

#include "fuzz.hpp"
#include "observe/probe/one_way.hpp"
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
  probe::Responder responder(
      {.key = key, .age_max_ns = 0, .flows_max = 8, .sources_max = 8, .askers_max = 8});
  probe::Message reply;
  const probe::Verdict verdict = responder.take(in, {1}, {1}, reply);
  if (fault != probe::Fault::none) WEFT_CHECK(verdict != probe::Verdict::answered);
  WEFT_CHECK(responder.count(verdict) == 1);
}

weft::port::Incoming datagram(const probe::Message& message, std::uint32_t address) {
  weft::port::Incoming in;
  probe::WireBytes bytes;
  probe::encode(message, key, bytes);
  in.from = {address, 1};
  in.size = probe::wire_bytes;
  std::ranges::copy(bytes, in.bytes.begin());
  return in;
}

// A question about any flow, from anywhere, gets that flow's counts and leaves them as they were.
void check_question(probe::Message question) {
  probe::Responder responder(
      {.key = key, .age_max_ns = 0, .flows_max = 8, .sources_max = 8, .askers_max = 8});
  probe::Message reply;
  const probe::Message sent{.kind = probe::Kind::one_way, .session = 1, .flow = 2, .sequence = 3};
  WEFT_CHECK(responder.take(datagram(sent, 1), {1}, {1}, reply) == probe::Verdict::counted);
  question.kind = probe::Kind::ask;
  question.probe /= 2;  // there are higher numbers
  for (const std::uint32_t address : {1U, 2U}) {
    ++question.probe;
    WEFT_CHECK(responder.take(datagram(question, address), {1}, {1}, reply) ==
               probe::Verdict::answered);
    const bool known = question.session == sent.session && question.flow == sent.flow;
    WEFT_CHECK(reply.count == (known ? 1 : 0) && reply.highest == (known ? 3 : 0));
    WEFT_CHECK((reply.generation != 0) == known);
    WEFT_CHECK(reply.probe == question.probe && reply.sequence == question.sequence);
    WEFT_CHECK(responder.forgotten_flows() == 0);
    WEFT_CHECK(responder.take(datagram(question, address), {1}, {1}, reply) ==
               probe::Verdict::replayed);
  }
}

// A prober's books while the bytes decide what is sent, when windows end, and what is answered.
class Books {
 public:
  void run(std::span<const std::byte> script) {
    for (std::size_t i = 0; i + 1 < script.size(); i += 2)
      step(std::to_integer<unsigned>(script[i]), std::to_integer<unsigned>(script[i + 1]));
    roll();
    roll();
  }

 private:
  void step(unsigned action, unsigned value) {
    now_ = now_ + static_cast<std::int64_t>(value);
    if (action % 5 == 0) {
      books_.next_mark(value % 3, slot_);
      ++counts_[slot_][value % 3].sent;
    } else if (action % 5 == 1) {
      books_.next_mark(value % 3, slot_);
      books_.return_mark(value % 3, slot_);
    } else if (action % 5 == 2) {
      const auto& questions = books_.questions(now_);
      asked_.insert(asked_.end(), questions.begin(), questions.end());
    } else if (action % 5 == 3 && !asked_.empty()) {
      answer(asked_[value % asked_.size()], action, value);
    } else if (action % 5 == 4) {
      roll();
    }
  }
  // True or not.
  void answer(const probe::OneWay::Question& question, unsigned action, unsigned value) {
    weft::port::Incoming in;
    in.port = question.way.port + (action >= 250 ? 1 : 0);
    in.from = flows_[question.flow].target;
    books_.take(in, {.flow = question.mark.number,
                     .sequence = question.mark.sequence,
                     .probe = question.id + (action >= 245 ? value : 0),
                     .count = action >= 200 ? ~std::uint64_t{value} : value % 8,
                     .generation = action / 5 % 3});
  }
  void roll() {
    const std::size_t other = 1 - slot_;
    for (std::uint32_t flow = 0; flow < flows_.size(); ++flow) {
      probe::FlowCounts& counts = counts_[other][flow];
      books_.finish(flow, other, counts);
      WEFT_CHECK(counts.answered + counts.lost + counts.unknown == counts.sent);
      WEFT_CHECK((counts.unknown > 0) == (counts.why != probe::Unknown::none));
      counts = {};
    }
    books_.close(other);
    books_.ask(slot_, now_);
    slot_ = other;
    books_.open(slot_);
  }

  std::vector<probe::Flow> flows_{
      {.port = 0, .target = {1, 1}}, {.port = 1, .target = {1, 1}}, {.port = 0, .target = {2, 1}}};
  const std::vector<std::uint32_t> spare_{7};
  probe::OneWay books_{flows_, spare_, 100, 10};
  std::array<std::array<probe::FlowCounts, 3>, 2> counts_;
  std::vector<probe::OneWay::Question> asked_;
  std::size_t slot_ = 0;
  weft::port::Instant now_{1};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  probe::Message message;
  const probe::Fault fault = probe::decode(bytes, key, message);
  check_response(bytes, fault);
  if (fault == probe::Fault::none) {
    probe::WireBytes again;
    probe::encode(message, key, again);
    constexpr std::size_t fields = 96;  // any pattern will do behind them
    WEFT_CHECK(std::ranges::equal(std::span(again).first(fields), bytes.first(fields)));
  }
  // The same bytes, signed: the fields' checks rather than the signature's.
  if (size >= probe::wire_bytes) {
    probe::WireBytes made;
    std::copy_n(bytes.begin(), made.size(), made.begin());
    probe::seal(key, made);
    const probe::Fault signed_fault = probe::decode(made, key, message);
    check_response(made, signed_fault);
    if (signed_fault == probe::Fault::none) {
      check_question(message);
      // A flip behind the version is damage, wherever it falls.
      const std::size_t at = 5 + std::to_integer<std::size_t>(made[5]) % (made.size() - 5);
      made[at] ^= std::byte{1};
      WEFT_CHECK(probe::decode(made, key, message) == probe::Fault::damaged);
      check_response(made, probe::Fault::damaged);
    }
  }
  Books().run(bytes.first(std::min<std::size_t>(size, 4096)));
  if (const auto complaint = probe::read_complaint(bytes))
    if (const auto mark = probe::sweep_mark(complaint->udp_length))
      WEFT_CHECK(probe::sweep_bytes(mark->ttl, mark->round) + 8 == complaint->udp_length);
  return 0;
}
