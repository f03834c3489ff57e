#include "serve/past.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_line.hpp"
#include "base/json_text.hpp"
#include "serve/handling.hpp"
#include "serve/listing.hpp"

namespace weft::serve {
namespace {

constexpr std::size_t changed_rows = 500;
constexpr std::size_t changed_max = 100'000;

// The least number for which `is_before` does not hold; it holds for a first few numbers alone.
template <class IsBefore>
Result<std::uint64_t> first_after(const IsBefore& is_before) {
  std::uint64_t high = 1;
  for (;; high *= 2) {  // at most 63 rounds
    WEFT_TRY(const bool goes_on, is_before(high));
    if (!goes_on) break;
  }
  std::uint64_t low = high / 2;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    WEFT_TRY(const bool goes_on, is_before(middle));
    (goes_on ? low : high) = middle;
  }
  return high;
}

class PastStore final : public port::Store {
 public:
  using Kinds = std::map<std::string, PastCases, std::less<>>;

  PastStore(port::Store& store, Timestamp at, Kinds known)
      : store_(store), at_(at), known_(std::move(known)) {}

  Result<std::uint64_t> commit(const port::Commit&) override { return read_only(); }
  Result<std::vector<port::StoredEvent>> events(std::uint64_t, std::size_t) override {
    return std::vector<port::StoredEvent>();
  }
  Result<port::Document> document(std::string_view kind, std::string_view id) override {
    const auto unknown = fail(Errc::unknown, {}, fmt::format("there was no {} {} then", kind, id));
    const auto of = known_.find(kind);
    if (of == known_.end()) return unknown;
    if (const auto at = of->second.find(id); at != of->second.end())
      return at->second ? Result<port::Document>(*at->second) : unknown;
    auto found = store_.document(kind, id);
    if (found && found->updated > at_) return unknown;
    return found;
  }
  Result<std::vector<port::Document>> documents(std::string_view kind, Timestamp before,
                                                std::size_t rows_max) override {
    std::vector<port::Document> out;
    const auto of = known_.find(kind);
    if (of == known_.end()) return out;
    // As many as may be replaced are read beyond what is wanted.
    const std::size_t known = of->second.size();
    const std::size_t rows = rows_max > SIZE_MAX - known ? SIZE_MAX : rows_max + known;
    WEFT_TRY(out, store_.documents(kind, std::min(before, Timestamp{at_.ns + 1}), rows));
    std::erase_if(out, [&](const port::Document& row) { return of->second.contains(row.id); });
    for (const auto& [id, document] : of->second)
      if (document && document->updated < before) out.push_back(*document);
    std::ranges::stable_sort(out, std::greater<>(), &port::Document::updated);
    out.resize(std::min(out.size(), rows_max));
    return out;
  }
  Result<std::vector<port::AuditEntry>> audit(std::uint64_t, std::string_view,
                                              std::size_t) override {
    return std::vector<port::AuditEntry>();
  }
  Result<std::uint64_t> forget_events(std::uint64_t) override { return read_only(); }
  Result<std::uint64_t> forget_documents(std::string_view, Timestamp) override {
    return read_only();
  }

 private:
  static std::unexpected<Error> read_only() {
    return fail(Errc::unsupported, {}, "the past cannot be changed");
  }

  port::Store& store_;
  const Timestamp at_;
  const Kinds known_;
};

// What is said of all cases by people; few enough to be read at every start as well.
Result<PastCases> past_handlings(port::Store& store, Timestamp at) {
  PastCases out;
  WEFT_TRY(auto documents, store.documents(handling_kind, end_of_time, SIZE_MAX));
  for (port::Document& document : documents) {
    std::optional<port::Document>& was = out[document.id];
    if (document.updated <= at) {
      was = std::move(document);
      continue;
    }
    WEFT_TRY(auto entries, store.audit(1, document.id, SIZE_MAX));
    std::erase_if(entries, [&](const port::AuditEntry& entry) { return entry.t > at; });
    WEFT_TRY(was, handling_of(document.id, entries));
  }
  return out;
}

}  // namespace

std::string to_json(const PastFacts& facts) {
  return JsonObject()
      .add("log_from", facts.log_from)
      .add("read_from", facts.read_from)
      .add("events", facts.events)
      .add("not_known", facts.not_known)
      .add("previous", facts.previous)
      .add("next", facts.next)
      .text();
}

Result<std::vector<Changed>> cases_changed_since(port::Store& store, Timestamp at) {
  std::vector<Changed> out;
  for (Timestamp before = end_of_time;;) {
    WEFT_TRY(const auto documents, store.documents(case_kind, before, changed_rows));
    for (const port::Document& row : documents) {
      if (row.updated <= at) return out;
      if (out.size() == changed_max)
        return fail(Errc::value, {},
                    fmt::format("more than {} cases changed since then", changed_max),
                    "ask for a later instant");
      WEFT_TRY(const JsonLine line, JsonLine::parse(row.body, {"case " + row.id}));
      Errors errors;
      out.push_back({row.id, line.time("opened", row.updated, errors)});
      if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
      before = row.updated;
    }
    if (documents.size() < changed_rows) return out;
  }
}

Result<std::uint64_t> first_event_since(port::Store& store, Timestamp t) {
  return first_after([&](std::uint64_t seq) -> Result<bool> {
    WEFT_TRY(const auto rows, store.events(seq, 1));
    return !rows.empty() && rows.front().received < t;
  });
}

Status find_neighbours(port::Store& store, Timestamp at, PastFacts& out) {
  const auto first = [&](Timestamp t) {
    return first_after([&, t](std::uint64_t seq) -> Result<bool> {
      WEFT_TRY(const auto rows, store.audit(seq, "", 1));
      return !rows.empty() && rows.front().t < t;
    });
  };
  WEFT_TRY(const std::uint64_t here, first(at));
  if (here > 1) {
    WEFT_TRY(const auto rows, store.audit(here - 1, "", 1));
    if (!rows.empty()) out.previous = rows.front().t;
  }
  WEFT_TRY(const std::uint64_t later, first({at.ns + 1}));
  WEFT_TRY(const auto rows, store.audit(later, "", 1));
  if (!rows.empty()) out.next = rows.front().t;
  return {};
}

Result<std::unique_ptr<port::Store>> past_documents(port::Store& store, Timestamp at,
                                                    PastCases cases) {
  PastStore::Kinds known;
  known[std::string(case_kind)] = std::move(cases);
  WEFT_TRY(known[std::string(handling_kind)], past_handlings(store, at));
  return std::make_unique<PastStore>(store, at, std::move(known));
}

}  // namespace weft::serve
