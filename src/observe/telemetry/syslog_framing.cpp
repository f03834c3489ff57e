#include "observe/telemetry/syslog_framing.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace weft::observe::telemetry {
namespace {

constexpr std::size_t count_digits_max = 9;  // bounds a message that will be dropped anyway

}  // namespace

void SyslogFraming::keep(std::string_view bytes) {
  const std::size_t room = syslog_bytes_max - std::min(syslog_bytes_max, held_.size());
  held_ += bytes.substr(0, room);
  dropped_ += bytes.size() - std::min(room, bytes.size());
}

// The message is what is held and `tail`; whole ones are not copied.
void SyslogFraming::emit(std::string_view tail, const Take& take) {
  std::string_view message = tail;
  if (!held_.empty() || tail.size() > syslog_bytes_max) {
    keep(tail);
    message = held_;
  }
  if (dropped_ > 0) ++counts_.cut;
  if (!message.empty() && message != "\r") {
    ++counts_.messages;
    take(message);
  }
  held_.clear();
  dropped_ = 0;
  state_ = State::between;
}

// At the first byte of a message: which way it is framed. False when the bytes end before.
bool SyslogFraming::begin(std::string_view& bytes) {
  while (!bytes.empty() && (bytes.front() == '\n' || bytes.front() == '\0')) bytes.remove_prefix(1);
  if (bytes.empty()) return false;
  state_ = mode_ == Mode::stream && is_digit(bytes.front()) && bytes.front() != '0'
               ? State::counting
               : State::line;
  return true;
}

void SyslogFraming::take_counted(std::string_view& bytes, const Take& take) {
  if (state_ == State::counting) {
    while (!bytes.empty() && is_digit(bytes.front()) && held_.size() < count_digits_max) {
      held_ += bytes.front();
      bytes.remove_prefix(1);
    }
    if (bytes.empty()) return;
    if (bytes.front() != ' ') {
      ++counts_.bad_counts;
      state_ = State::line;
      return;
    }
    bytes.remove_prefix(1);
    missing_ = 0;
    for (const char c : held_) missing_ = 10 * missing_ + static_cast<std::size_t>(c - '0');
    held_.clear();
    state_ = State::counted;
  }
  const std::string_view part = bytes.substr(0, missing_);
  bytes.remove_prefix(part.size());
  missing_ -= part.size();
  if (missing_ > 0) return keep(part);
  emit(part, take);
}

void SyslogFraming::take_line(std::string_view& bytes, const Take& take) {
  const std::size_t end =
      mode_ == Mode::lines ? bytes.find('\n') : bytes.find_first_of(std::string_view("\n\0", 2));
  if (end == std::string_view::npos) {
    keep(bytes);
    bytes = {};
    return;
  }
  const std::string_view part = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  emit(part, take);
}

void SyslogFraming::feed(std::string_view bytes, const Take& take) {
  while (!bytes.empty()) {
    if (state_ == State::between && !begin(bytes)) return;
    if (state_ == State::line)
      take_line(bytes, take);
    else
      take_counted(bytes, take);
  }
}

void SyslogFraming::finish(const Take& take) {
  if (state_ != State::between) emit({}, take);
}

}  // namespace weft::observe::telemetry
