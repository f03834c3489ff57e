#include "adapt/sim/memory_store.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weft::adapt::sim {

Result<std::uint64_t> MemoryStore::commit(const port::Commit& commit) {
  const std::uint64_t first = commit.events.empty() ? 0 : next_event_;
  for (const port::StoredEvent& event : commit.events) {
    events_.push_back(event);
    events_.back().seq = next_event_++;
  }
  for (const port::Document& document : commit.documents) {
    port::Document& known = documents_[{document.kind, document.id}];
    by_time_.erase({known.kind, known.updated, known.id});
    known = document;
    by_time_.emplace(known.kind, known.updated, known.id);
  }
  for (const port::AuditEntry& entry : commit.audit) {
    audit_.push_back(entry);
    audit_.back().seq = audit_.size();
  }
  return first;
}

Result<std::vector<port::StoredEvent>> MemoryStore::events(std::uint64_t seq,
                                                           std::size_t rows_max) {
  const auto from = std::ranges::lower_bound(events_, seq, {}, &port::StoredEvent::seq);
  const auto left = static_cast<std::size_t>(events_.end() - from);
  const auto rows = static_cast<std::ptrdiff_t>(std::min(left, rows_max));
  return std::vector<port::StoredEvent>(from, from + rows);
}

Result<port::Document> MemoryStore::document(std::string_view kind, std::string_view id) {
  const auto at = documents_.find({std::string(kind), std::string(id)});
  if (at != documents_.end()) return at->second;
  return fail(Errc::unknown, {}, fmt::format("there is no {} with that name", kind));
}

Result<std::vector<port::Document>> MemoryStore::documents(std::string_view kind, Timestamp before,
                                                           std::size_t rows_max) {
  std::vector<port::Document> out;
  for (const auto& [key, document] : documents_)
    if (key.first == kind && document.updated < before) out.push_back(document);
  std::ranges::stable_sort(out, std::ranges::greater{}, &port::Document::updated);
  if (out.size() > rows_max) out.resize(rows_max);
  return out;
}

Result<std::vector<port::AuditEntry>> MemoryStore::audit(std::uint64_t seq,
                                                         std::string_view subject,
                                                         std::size_t rows_max) {
  std::vector<port::AuditEntry> out;
  for (const port::AuditEntry& entry : audit_)
    if (entry.seq >= seq && (subject.empty() || entry.subject == subject) && out.size() < rows_max)
      out.push_back(entry);
  return out;
}

Result<std::uint64_t> MemoryStore::forget_events(std::uint64_t seq) {
  std::uint64_t count = 0;
  for (; !events_.empty() && events_.front().seq < seq; ++count) events_.pop_front();
  return count;
}

Result<std::uint64_t> MemoryStore::forget_documents(std::string_view kind, Timestamp before) {
  std::uint64_t count = 0;
  for (auto at = by_time_.lower_bound({std::string(kind), {-timestamp_ns_max}, ""});
       at != by_time_.end() && std::get<0>(*at) == kind && std::get<1>(*at) < before; ++count) {
    documents_.erase({std::string(kind), std::get<2>(*at)});
    at = by_time_.erase(at);
  }
  return count;
}

}  // namespace weft::adapt::sim
