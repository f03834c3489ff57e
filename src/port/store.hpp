// The memory of a service: what it was told, what it decided and what it did, on durable context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft::port {

// Something that was told from outside, in the order in which it was acknowledged.
struct StoredEvent {
  std::uint64_t seq = 0;  // given by the store: 1, 2, ...; never used again
  Timestamp received;
  std::string feed;  // how `line` is to be read: "record", "syslog", "evidence"
  std::string line;

  friend bool operator==(const StoredEvent&, const StoredEvent&) = default;
};

// The last word on something that has a name: a case, a repair, a snapshot's manifest.
struct Document {
  std::string kind, id;
  Timestamp updated;
  std::string body;  // JSON

  friend bool operator==(const Document&, const Document&) = default;
};

// One line of the audit log, which only grows.
struct AuditEntry {
  std::uint64_t seq = 0;  // given by the store
  Timestamp t;
  std::string actor;    // "weft", or who asked for it
  std::string subject;  // id of the case, or ""
  std::string action;   // what was done, wanted or found: one word
  std::string detail;   // JSON

  friend bool operator==(const AuditEntry&, const AuditEntry&) = default;
};

// What becomes true at once or not at all. Numbers in it are ignored.
struct Commit {
  std::vector<StoredEvent> events;
  std::vector<Document> documents;  // replace those of the same kind and id
  std::vector<AuditEntry> audit;

  friend bool operator==(const Commit&, const Commit&) = default;
};

// All calls wait; a call that fails has changed nothing that is visible, and may be tried again.
// Where the answer of a commit was lost, only a store that is asked for the same commit again,
// before any other, knows whether it was carried out, and does not do it twice.
// Fails: Errc::io (also: full disk, no connection), Errc::value (names that are no text or too
// long, values that are too large: store_schema.hpp). One writer at a time; any thread may read.
class Store {
 public:
  virtual ~Store() = default;

  // Durable when it returns: it survives the end of the process and of the machine.
  // Returns the number of its first event, 0 where it has none.
  virtual Result<std::uint64_t> commit(const Commit& commit) = 0;

  // Events from number `seq` on, ascending, at most `rows_max`.
  virtual Result<std::vector<StoredEvent>> events(std::uint64_t seq, std::size_t rows_max) = 0;
  // One document's body; Errc::unknown where there is none.
  virtual Result<Document> document(std::string_view kind, std::string_view id) = 0;
  // Documents of a kind, last updated first, at most `rows_max`, updated before `before`.
  virtual Result<std::vector<Document>> documents(std::string_view kind, Timestamp before,
                                                  std::size_t rows_max) = 0;
  // Audit entries from `seq` on, ascending; only of `subject` where that is not "".
  virtual Result<std::vector<AuditEntry>> audit(std::uint64_t seq, std::string_view subject,
                                                std::size_t rows_max) = 0;

  // Becomes the writer, as commit() does where it has to. Fails: Errc::io, while another is, naming
  // it. Stores that only one can open have nothing to do.
  virtual Status claim() { return {}; }
  // Whether another took over since this was the writer: what its user knows is out of date, and no
  // commit is taken any more. Begin anew. Any thread; does not wait.
  virtual bool is_superseded() const { return false; }

  // Forgets events before number `seq`, and documents of a kind last updated before a time.
  // Returns how many. The audit log is never forgotten.
  virtual Result<std::uint64_t> forget_events(std::uint64_t seq) = 0;
  virtual Result<std::uint64_t> forget_documents(std::string_view kind, Timestamp before) = 0;
};

}  // namespace weft::port
