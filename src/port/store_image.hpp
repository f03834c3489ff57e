// A whole store at one moment, with its numbers: what a backup reads, and a restored store takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.hpp"
#include "port/store.hpp"

namespace weft::port {

// The last numbers that were given, also to rows that are gone since.
struct StoreNumbers {
  std::uint64_t events = 0, audit = 0;

  friend bool operator==(const StoreNumbers&, const StoreNumbers&) = default;
};

// All calls see the same moment, whatever is written meanwhile. Used by one thread at a time.
// Fails: Errc::io; after a failure the image cannot be used any more.
class StoreImage {
 public:
  virtual ~StoreImage() = default;

  virtual Result<StoreNumbers> numbers() = 0;
  // From that number on, ascending, at most `rows_max`.
  virtual Result<std::vector<StoredEvent>> events(std::uint64_t seq, std::size_t rows_max) = 0;
  virtual Result<std::vector<AuditEntry>> audit(std::uint64_t seq, std::size_t rows_max) = 0;
  // From that kind and id on, ascending by both, at most `rows_max`.
  virtual Result<std::vector<Document>> documents(const std::string& kind, const std::string& id,
                                                  std::size_t rows_max) = 0;
};

// Calls take(rows) with everything in the image: events, documents, then audit entries, each in
// ascending order and with its number; never more than 1,000 rows.
// Fails: as the image and as `take` does, and Errc::io where numbers are missing between two rows.
Status each_piece(StoreImage& image, const std::function<Status(const Commit&)>& take);

// What becomes of what is in the store already.
enum class IfUsed : std::uint8_t { refuse, replace };

}  // namespace weft::port
