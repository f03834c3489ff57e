// What switches answer, to every dialect: the first byte divides the rest into two answers.
#include "adapt/devices/session.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace devices = weft::adapt::devices;
  const std::string text(weft::fuzz::text_of(data, size));
  const std::size_t at = text.empty() ? 0 : static_cast<unsigned char>(text[0]) * text.size() / 256;
  const std::vector<std::string> answers{text.substr(std::min<std::size_t>(1, text.size())),
                                         text.substr(at)};
  for (const devices::Dialect& dialect : devices::dialects()) {
    WEFT_CHECK(static_cast<std::size_t>(dialect.read_switch(answers)) < weft::port::service_count);
    const devices::PortState port = dialect.read_port(answers);
    WEFT_CHECK(port.admin <= devices::Level::up && port.oper <= devices::Level::up);
  }
  for (const auto by : {devices::Transport::eapi, devices::Transport::nxapi}) {
    const auto read = devices::read_rpc_answer(by, answers[0], {"a", "b"});
    if (read) WEFT_CHECK(read->size() == 2);
    if (!read) WEFT_CHECK(!read.error().what.empty());
  }
  return 0;
}
