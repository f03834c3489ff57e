// The file that a lab's faults are written down in. Internal to the room.
#pragma once

#include <string>
#include <vector>

#include "adapt/lab/fault.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

// Holds the lab's lock for as long as it lives: one writer at a time.
class FaultBook {
 public:
  // Waits for the lock. Fails: Errc::io; Errc::parse on a damaged file.
  static Result<FaultBook> open(const std::string& directory);
  Status save() const;

  std::vector<FaultRecord> records;  // by age

 private:
  explicit FaultBook(std::string path) : path_(std::move(path)) {}
  std::string path_;
  Fd lock_;
};

// Now, in UTC, with nanoseconds: "2026-01-31T12:00:00.123456789Z".
std::string now_text();

}  // namespace weft::adapt::lab
