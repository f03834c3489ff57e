#include "serve/event_feed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "serve/handling.hpp"
#include "serve/listing.hpp"

namespace weft::serve {
namespace {

constexpr std::size_t audit_rows = 256;
constexpr std::size_t documents_max = 2000;
constexpr std::chrono::milliseconds slice{500};  // how soon a client that left is noticed

std::string why(std::string_view reason) { return JsonObject().add("why", reason).text(); }

void add_audit(const std::vector<port::AuditEntry>& rows, std::uint64_t& seq, std::string& out) {
  for (const port::AuditEntry& row : rows) {
    seq = row.seq;
    out += event_text("audit", std::to_string(row.seq), audit_json(row));
  }
}

}  // namespace

std::string event_text(std::string_view event, std::string_view id, std::string_view data) {
  std::string out;
  if (!id.empty()) out += fmt::format("id: {}\n", id);
  out += fmt::format("event: {}\n", event);
  for (const std::string_view line : split(data, '\n')) {
    out += "data: ";
    std::ranges::copy_if(line, std::back_inserter(out), [](char c) { return c != '\r'; });
    out += '\n';
  }
  return out + "\n";
}

// The listener comes first: what is announced from now on is not lost.
EventFeed::EventFeed(const Needs& needs, std::optional<std::uint64_t> after, Share seat)
    : needs_(needs),
      after_(after),
      seat_(std::move(seat)),
      listener_(needs.bus),
      heard_(std::chrono::steady_clock::now()) {}

std::optional<std::string> EventFeed::next() {
  if (phase_ == Phase::over) return std::nullopt;
  if (needs_.is_stopping) return last_words("closing", "the service is stopping; reconnect later");
  Result<std::string> out;
  switch (phase_) {
    case Phase::hello:
      out = hello();
      break;
    case Phase::catching_up:
      out = deliver(std::chrono::milliseconds(0));
      break;
    default:
      out = deliver(std::min(slice, needs_.heartbeat));
      break;
  }
  if (!out) return last_words("failed", out.error().text());
  if (!out->empty()) heard_ = std::chrono::steady_clock::now();
  return *std::move(out);
}

Result<std::string> EventFeed::hello() {
  std::string out = "retry: 1000\n\n";
  WEFT_TRY(const std::uint64_t last, last_audit(needs_.store, 0));
  phase_ = Phase::catching_up;
  seq_ = last;
  if (after_ && *after_ <= last) {
    seq_ = *after_;
    WEFT_TRY(const std::string documents, changed_documents());
    return out + documents;
  }
  if (after_) out += event_text("reset", "", why("no entry has this number yet: read all anew"));
  return out + event_text("hello", std::to_string(seq_), JsonObject().add("seq", seq_).text());
}

// Cases and repairs since the last entry that the client saw, oldest first.
Result<std::string> EventFeed::changed_documents() {
  WEFT_TRY(const auto entries, needs_.store.audit(seq_, "", 1));
  if (entries.empty()) return "";  // it saw none, and there is none
  std::string out;
  for (const std::string_view kind : {case_kind, std::string_view("repair"), handling_kind}) {
    WEFT_TRY(auto rows, needs_.store.documents(kind, end_of_time, documents_max));
    const bool is_cut = rows.size() == documents_max && rows.back().updated >= entries[0].t;
    if (is_cut) out += event_text("reset", "", why("too much changed: read all anew"));
    std::erase_if(rows, [&](const port::Document& row) { return row.updated < entries[0].t; });
    std::ranges::reverse(rows);
    for (const port::Document& row : rows) out += event_text(kind, "", row.body);
  }
  return out;
}

Result<std::string> EventFeed::deliver(std::chrono::milliseconds patience) {
  constexpr std::size_t all = SIZE_MAX;
  auto heard = listener_.wait(patience, all);
  const bool is_quiet = std::chrono::steady_clock::now() - heard_ >= needs_.heartbeat;
  if (phase_ == Phase::live && heard.rows.empty() && heard.lost == 0 && !is_quiet) return "";
  WEFT_TRY(const auto entries, needs_.store.audit(seq_ + 1, "", audit_rows));
  // What was announced before these entries were committed is here by now, and goes first: whoever
  // has seen an entry has seen all that came before it.
  auto more = listener_.wait(std::chrono::milliseconds(0), all);
  std::ranges::move(more.rows, std::back_inserter(heard.rows));
  if (const std::uint64_t lost = heard.lost + more.lost; lost > 0) {
    ++needs_.meters.events_dropped;
    return last_words(
        "dropped",
        fmt::format("too slow: {} events were lost; come back with Last-Event-ID", lost));
  }
  std::string out;
  for (const auto& row : heard.rows)
    if (row->event != "audit") out += event_text(row->event, "", row->data);
  add_audit(entries, seq_, out);
  phase_ = entries.size() < audit_rows ? Phase::live : Phase::catching_up;
  if (out.empty() && is_quiet) out = ": still here\n\n";
  return out;
}

std::string EventFeed::last_words(std::string_view event, std::string_view reason) {
  phase_ = Phase::over;
  return event_text(event, "", why(reason));
}

}  // namespace weft::serve
