#include "serve/listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_line.hpp"

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

}  // namespace

std::string state_of(std::string_view json) {
  const auto object = nlohmann::json::parse(json, nullptr, false);
  if (object.is_object())
    for (const char* name : {"standing", "stage", "state"})
      if (const auto at = object.find(name); at != object.end() && at->is_string())
        return at->get<std::string>();
  return "";
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

std::string page_json(const Page& page) {
  std::string out = R"({"items":[)";
  const char* comma = "";
  for (const port::Document& row : page.rows) {
    out += comma;
    out += is_json(row.body) ? row.body
                             : fmt::format(R"({{"id":{},"damaged":true}})", json_string(row.id));
    comma = ",";
  }
  out += R"(],"next":)";
  out += page.next ? json_string(to_text(*page.next)) : "null";
  return out + "}";
}

std::string audit_json(const port::AuditEntry& entry) {
  std::string detail = "{}";
  if (is_json(entry.detail))
    detail = nlohmann::ordered_json::parse(entry.detail).dump();
  else if (!entry.detail.empty())
    detail = json_string(entry.detail);
  return fmt::format(R"({{"seq":{},"t":"{}","actor":{},"case":{},"action":{},"detail":{}}})",
                     entry.seq, to_text(entry.t), json_string(entry.actor),
                     json_string(entry.subject), json_string(entry.action), detail);
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
