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

inline constexpr std::string_view case_kind = "case";  // of documents
inline constexpr std::size_t event_rows = 10'000;      // that are read from the store at a time

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
// Which members of a case to list.
struct MemberWish {
  std::size_t from = 0, limit = 0;
};
// The document of a case with `limit` members and as many of the records that it does not explain,
// both from number `from` on; and with "records" (members in all, also those that are summarised)
// and "next_member" (the `from` of what follows; null where nothing does). Other documents, and
// damaged ones, as they are.
std::string with_member_page(std::string body, const MemberWish& wish);
// {"items": [...], "next": ...}. A damaged document becomes {"id", "damaged"}. `members`: of cases.
std::string page_json(const Page& page, const std::optional<MemberWish>& members = std::nullopt);
// What a case ("standing") or repair ("stage") stands at, or another document's "state"; "" where
// it says nothing of that.
std::string state_of(std::string_view json);
bool is_json(std::string_view text);
// Members of a case, listed or summarised; 0 of what is no case.
std::uint64_t record_count(std::string_view json);

// {"seq", "t", "actor", "case", "action", "detail"}, in one line.
std::string audit_json(const port::AuditEntry& entry);
// The number of the last audit entry, 0 for none; `at_least` is one that is known to exist, or 0.
// Cost: some dozen reads of one row.
Result<std::uint64_t> last_audit(port::Store& store, std::uint64_t at_least);

}  // namespace weft::serve
