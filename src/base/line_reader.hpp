// Lines of a file of any size, one block of it in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/file_stream.hpp"
#include "base/result.hpp"

namespace weft {
inline namespace base {

// A line is at most so long: longer ones are no lines of a text.
inline constexpr std::size_t line_bytes_max = 65'535;

//   while (lines.next()) use(lines.line());
//   if (const Error* error = lines.error()) ...
class LineReader {
 public:
  // A text in memory, which must outlive the reader.
  LineReader(std::string_view text, std::string file);
  // "-" is standard input. Gzip is unpacked as it is read. Fails: Errc::io.
  static Result<LineReader> open(const std::string& path);

  // The next line without its end ("\n" or "\r\n"); false at the end and at an error. A UTF-8 byte
  // order mark at the very beginning is skipped.
  bool next();
  std::string_view line() const { return line_; }  // until the next call of next() or peek()
  Where where(std::size_t column = 1) const {
    return {file_, line_number_, static_cast<std::uint32_t>(column)};
  }
  const Error* error() const { return failed_ ? &error_ : nullptr; }
  // Where next() failed on a line that is too long: reads to its end, so that next() goes on behind
  // it, with a block of it in memory. False, and nothing done, where the error is another one.
  bool pass_over();

  // What comes next, without taking it: a block of it, or all where less is left.
  std::string_view peek();
  // All that was not taken yet. Fails: Errc::io, also when that is more than `limit`.
  Result<std::string> rest(std::uint64_t limit = file_bytes_max);

  const std::string& file() const { return file_; }
  std::uint32_t line_number() const { return line_number_; }
  // Bytes in all, as far as known before they are read; else 0.
  std::uint64_t size_hint() const { return size_hint_; }

 private:
  LineReader(File stream, std::string file, std::uint64_t size_hint);
  bool fill();
  bool refuse(Error error);

  File stream_;  // none: the text is in memory
  std::string file_;
  std::uint64_t size_hint_ = 0;
  std::vector<char> block_;
  std::string_view ahead_;  // read and not taken
  std::string_view line_;
  std::uint32_t line_number_ = 0;
  bool failed_ = false;
  enum class Long : std::uint8_t { no, whole, begun };
  Long long_ = Long::no;  // the line that next() failed on: all of it was taken, or its beginning
  Error error_;
};

}  // namespace base
}  // namespace weft
