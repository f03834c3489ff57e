#include "serve/listing.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace weft::serve {
namespace {

constexpr std::size_t batch_rows = 500;
constexpr std::size_t looked_at_max = 20'000;

// Documents before a time, and all of the last time among them.
struct Batch {
  std::vector<port::Document> rows;
  bool is_last = false;
};
Result<Batch> read_batch(port::Store& store, std::string_view kind, Timestamp before) {
  for (std::size_t rows_max = batch_rows;; rows_max *= 4) {
    Batch out;
    WEFT_TRY(out.rows, store.documents(kind, before, rows_max));
    out.is_last = out.rows.size() < rows_max;
    if (out.is_last || rows_max > looked_at_max) return out;
    // The last time may go on behind this batch: leave it to the next one.
    const Timestamp edge = out.rows.back().updated;
    if (out.rows.front().updated == edge) continue;
    std::erase_if(out.rows, [&](const port::Document& row) { return row.updated == edge; });
    return out;
  }
}

template <class Json>
std::uint64_t count_records(const Json& document) {
  if (!document.is_object()) return 0;
  const auto members = document.find("members");
  if (members == document.end() || !members->is_array()) return 0;
  std::uint64_t out = members->size();
  const auto rows = document.find("members_summarised");
  if (rows == document.end() || !rows->is_array()) return out;
  for (const Json& row : *rows) {
    if (!row.is_object()) continue;
    if (const auto at = row.find("records"); at != row.end() && at->is_number_unsigned())
      out += at->template get<std::uint64_t>();
  }
  return out;
}

}  // namespace

std::string state_of(std::string_view json) {
  const auto object = nlohmann::json::parse(json, nullptr, false);
  if (object.is_object())
    for (const char* name : {"standing", "stage", "state"})
      if (const auto at = object.find(name); at != object.end() && at->is_string())
        return at->get<std::string>();
  return "";
}

std::uint64_t record_count(std::string_view json) {
  return count_records(nlohmann::json::parse(json, nullptr, false));
}

bool is_json(std::string_view text) { return nlohmann::json::accept(text); }

Result<Page> read_page(port::Store& store, const PageWish& wish) {
  Page out;
  Timestamp before = wish.before;
  for (std::size_t looked_at = 0;;) {
    WEFT_TRY(Batch batch, read_batch(store, wish.kind, before));
    for (port::Document& row : batch.rows) {
      const bool is_full = out.rows.size() >= wish.limit || looked_at >= looked_at_max;
      if (is_full && row.updated != before) {
        out.next = before;
        return out;
      }
      before = row.updated;
      ++looked_at;
      const bool is_own = row.id.starts_with('@');  // the service's, of no case
      if (!is_own && (wish.state.empty() || state_of(row.body) == wish.state))
        out.rows.push_back(std::move(row));
    }
    if (batch.is_last) return out;
  }
}

std::string with_member_page(std::string body, const MemberWish& wish) {
  auto document = nlohmann::ordered_json::parse(body, nullptr, false);
  if (!document.is_object() || !document.contains("members")) return body;
  const std::uint64_t records = count_records(document);
  bool is_last = true;
  for (const char* key : {"members", "unexplained"}) {
    const auto rows = document.find(key);
    if (rows == document.end() || !rows->is_array()) continue;
    const std::size_t from = std::min(wish.from, rows->size());
    const std::size_t to = from + std::min(wish.limit, rows->size() - from);
    is_last = is_last && to == rows->size();
    rows->erase(rows->begin() + static_cast<std::ptrdiff_t>(to), rows->end());
    rows->erase(rows->begin(), rows->begin() + static_cast<std::ptrdiff_t>(from));
  }
  document["records"] = records;
  document["next_member"] = nullptr;
  if (!is_last) document["next_member"] = wish.from + wish.limit;
  return document.dump();
}

std::string page_json(const Page& page, const std::optional<MemberWish>& members) {
  JsonList items;
  for (const port::Document& row : page.rows) {
    if (!is_json(row.body))
      items.add(JsonObject().add("id", row.id).add("damaged", true));
    else
      items.add(JsonText{members ? with_member_page(row.body, *members) : row.body});
  }
  return JsonObject().add("items", items).add("next", page.next).text();
}

std::string audit_json(const port::AuditEntry& entry) {
  std::string detail = "{}";
  if (is_json(entry.detail))
    detail = nlohmann::ordered_json::parse(entry.detail).dump();
  else if (!entry.detail.empty())
    detail = json_string(entry.detail);
  return JsonObject()
      .add("seq", entry.seq)
      .add("t", entry.t)
      .add("actor", entry.actor)
      .add("case", entry.subject)
      .add("action", entry.action)
      .add("detail", JsonText{detail})
      .text();
}

Result<std::uint64_t> last_audit(port::Store& store, std::uint64_t at_least) {
  // Entries from `seq` on are many or few, but whether there are any is cheap to ask.
  const auto exists = [&](std::uint64_t seq) -> Result<bool> {
    WEFT_TRY(const auto rows, store.audit(seq, "", 1));
    return !rows.empty();
  };
  std::uint64_t low = at_least;
  std::uint64_t step = 1;
  for (;; step *= 2) {  // none from low + step on; at most 63 rounds
    WEFT_TRY(const bool is_there, exists(low + step));
    if (!is_there) break;
    low += step;
  }
  std::uint64_t high = low + step;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    WEFT_TRY(const bool is_there, exists(middle));
    (is_there ? low : high) = middle;
  }
  return low;
}

}  // namespace weft::serve
