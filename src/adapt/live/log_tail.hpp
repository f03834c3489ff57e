// Follows a log file as `tail -F` does, and knows where each line stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"

namespace weft::adapt::live {

// A place in one life of a file: a file that was replaced or cut short begins another generation,
// so that a generation and an offset never mean two lines.
struct LogPlace {
  std::uint64_t device = 0, inode = 0;
  std::uint64_t generation = 0;
  std::uint64_t offset = 0;
  friend auto operator<=>(const LogPlace&, const LogPlace&) = default;
};

class LogTail {
 public:
  struct Counts {
    std::uint64_t lines = 0, bytes = 0;
    std::uint64_t cut = 0;        // lines longer than line_bytes_max
    std::uint64_t replaced = 0;   // files that took the place of another
    std::uint64_t shortened = 0;  // files that lost what was read of them
    std::uint64_t lost = 0;       // places to go on from that are gone
    std::uint64_t failed = 0;     // reads
  };
  static constexpr std::size_t line_bytes_max = 65'535;

  // Goes on from `places` (oldest first), also in files that were renamed since, as long as they
  // begin with the same name in the same directory. Without any it begins at the end of what there
  // is. `generations` is the last number used, and outlives this.
  LogTail(std::string path, std::deque<LogPlace> places, std::uint64_t& generations);

  // Takes what there is, at most about `bytes_max`; false when there was nothing. Does not wait.
  // Lines come without their ends and are never empty; one without end waits for it, or for the
  // file to be replaced.
  using Take = std::function<void(std::string_view line, const LogPlace& begin)>;
  bool read(std::size_t bytes_max, const Take& take);

  const std::string& path() const { return path_; }
  // Where the next line begins; generation 0 while there is no file yet.
  const LogPlace& place() const { return begin_; }
  // Places that are still to be gone to, behind this one.
  const std::deque<LogPlace>& places() const { return places_; }
  const Counts& counts() const { return counts_; }

 private:
  enum class From : std::uint8_t { begin, end };
  bool open_next();
  bool open_place(const LogPlace& place);
  bool open_path(From from);
  bool adopt(const std::string& path, const LogPlace* place, From from);
  bool was_shortened();
  bool was_replaced() const;
  void begin_generation(std::uint64_t offset);
  void split(std::string_view bytes, const Take& take);
  void keep(std::string_view bytes);
  void emit(const Take& take);

  std::string path_;
  std::deque<LogPlace> places_;
  std::uint64_t& generations_;
  Fd file_;
  LogPlace begin_;        // of the line in held_, or the next one
  std::uint64_t at_ = 0;  // what was read of the file
  std::string held_;      // a line whose end has not come yet
  bool is_cut_ = false;
  bool is_first_ = true;     // nothing was ever open
  bool is_leaving_ = false;  // the file was seen to be replaced, at its end
  std::vector<char> block_;
  Counts counts_;
};

}  // namespace weft::adapt::live
