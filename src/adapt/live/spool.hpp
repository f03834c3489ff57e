// Lines on disk that wait for somebody to acknowledge them: they survive whatever ends a process.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft::adapt::live {

struct SpoolOptions {
  std::string directory;  // made where it is missing; one process at a time
  std::uint64_t bytes_max = std::uint64_t{256} << 20;  // of what is not acknowledged
  std::uint64_t segment_bytes = std::uint64_t{4} << 20;
};

// Lines go to the end of the newest of some files, with a mark: what the owner wants to find again
// with them. After a crash the spool ends with the last mark that was written whole.
class Spool {
 public:
  // Fails: Errc::io, also where another process has it.
  static Result<Spool> open(SpoolOptions options);

  // The mark of the last append; "" when there was none.
  const std::string& mark() const { return mark_; }
  // Durable when it returns; all or nothing. Lines are not empty, hold no line end and do not begin
  // with '#'. Fails: Errc::infeasible when it is full, Errc::io (also: full disk).
  Status append(std::span<const std::string> lines, std::string_view mark);

  // What waits longest, in lines with their ends; empty when nothing does.
  struct Batch {
    std::string body;
    std::size_t lines = 0;
  };
  Result<Batch> next(std::size_t lines_max, std::size_t bytes_max);
  // So many of the first lines need not be kept any more.
  Status acknowledge(std::size_t lines);
  // Files it, with its end, beside the spool, for a person to look at: nobody takes it.
  Status put_aside(std::string_view line);

  std::uint64_t waiting_bytes() const;

 private:
  struct Segment {
    std::uint64_t number = 0, size = 0;
  };

  explicit Spool(SpoolOptions options) : options_(std::move(options)) {}
  std::string path_of(std::uint64_t number) const;
  Status find_segments();
  Status recover();
  void read_place();
  Status begin_segment();
  Status write_all(std::string_view bytes);
  Result<std::string> read_at(std::size_t bytes_max);

  SpoolOptions options_;
  Fd lock_, newest_;
  std::deque<Segment> segments_;  // never empty
  std::uint64_t offset_ = 0;      // in the first: before it all is acknowledged
  std::string mark_;
};

}  // namespace weft::adapt::live
