// Messages out of a stream of bytes: RFC 6587 over TCP and TLS, lines of files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace weft::observe::telemetry {

// A message is at most so long; what is beyond is dropped, and counted. RFC 5425 wants 8 KiB.
inline constexpr std::size_t syslog_bytes_max = 65'535;

// Of one connection or file. Octet counting ("57 <34>1 ...") is told from lines by the digit at
// the beginning of each message; lines end with "\n" (also "\r\n") or NUL. UDP needs none of this:
// there a datagram is a message.
class SyslogFraming {
 public:
  enum class Mode : std::uint8_t { stream, lines };
  struct Counts {
    std::uint64_t messages = 0;
    std::uint64_t cut = 0;         // longer than syslog_bytes_max
    std::uint64_t bad_counts = 0;  // octet counts that are none; the line was taken instead
  };
  using Take = std::function<void(std::string_view)>;

  explicit SyslogFraming(Mode mode) : mode_(mode) {}

  // Calls `take` for each message that `bytes` completes; empty ones are left out. The view ends
  // with the call.
  void feed(std::string_view bytes, const Take& take);
  // The stream is over: what is left is the last message.
  void finish(const Take& take);
  const Counts& counts() const { return counts_; }
  // Nothing of a message is held: what was fed has been taken.
  bool between() const { return state_ == State::between; }

 private:
  void take_counted(std::string_view& bytes, const Take& take);
  void take_line(std::string_view& bytes, const Take& take);
  bool begin(std::string_view& bytes);
  void keep(std::string_view bytes);
  void emit(std::string_view tail, const Take& take);

  Mode mode_;
  std::string held_;         // the begin of a message whose end has not come yet
  std::size_t dropped_ = 0;  // bytes of it beyond the bound
  std::size_t missing_ = 0;  // bytes of a counted message that are still to come
  enum class State : std::uint8_t { between, counting, counted, line } state_ = State::between;
  Counts counts_;
};

}  // namespace weft::observe::telemetry
