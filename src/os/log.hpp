// What services and agents say on standard error, by how much it matters.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace weft {
inline namespace os {

// error: something is not done that should be, and stays so. warning: it may come right by itself,
// or works other than asked. info: what a person wants to know who looks.
enum class LogLevel : std::uint8_t { error, warning, info };
std::span<const std::string_view> names_of(LogLevel);

// From now on lines of less weight are left out; info before. Before threads begin.
void set_log_level(LogLevel least);

// "weft serve: LINE". Where standard error is systemd's journal, the priority is set as well
// (sd-daemon(3)), so that `journalctl -p warning` finds it. Any thread; a line is one write.
void log(LogLevel level, std::string_view who, std::string_view line);

// Where to say things, for those who do not know who says them.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

}  // namespace os
}  // namespace weft
