// Pages of what the store keeps, as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "port/store.hpp"

namespace weft::serve {

struct Page {
  std::vector<port::Document> rows;  // last updated first
  std::optional<Timestamp> next;     // where the following page starts; none: this is the last
};

struct PageWish {
  std::string_view kind;
  std::string_view state;  // "": any; else as state_of() has it
  Timestamp before;
  std::size_t limit = 100;
};
// Documents of one time stay together, so that a page may be longer than its limit and none is
// lost between two. Looks at no more than 20,000 documents: then the page ends early.
// Fails: Errc::io.
Result<Page> read_page(port::Store& store, const PageWish& wish);
// {"items": [...], "next": ...}. A damaged document becomes {"id", "damaged"}.
std::string page_json(const Page& page);
// What a case ("standing") or repair ("stage") stands at, or another document's "state"; "" where
// it says nothing of that.
std::string state_of(std::string_view json);
bool is_json(std::string_view text);

// {"seq", "t", "actor", "case", "action", "detail"}, in one line.
std::string audit_json(const port::AuditEntry& entry);
// The number of the last audit entry, 0 for none; `at_least` is one that is known to exist, or 0.
// Cost: some dozen reads of one row.
Result<std::uint64_t> last_audit(port::Store& store, std::uint64_t at_least);

}  // namespace weft::serve
