// A store that lives as long as its process: for rehearsals, where nothing has to survive.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "port/store.hpp"

namespace weft::adapt::sim {

// Never fails but for documents that are not there. From one thread.
class MemoryStore final : public port::Store {
 public:
  Result<std::uint64_t> commit(const port::Commit& commit) override;
  Result<std::vector<port::StoredEvent>> events(std::uint64_t seq, std::size_t rows_max) override;
  Result<port::Document> document(std::string_view kind, std::string_view id) override;
  Result<std::vector<port::Document>> documents(std::string_view kind, Timestamp before,
                                                std::size_t rows_max) override;
  Result<std::vector<port::AuditEntry>> audit(std::uint64_t seq, std::string_view subject,
                                              std::size_t rows_max) override;
  Result<std::uint64_t> forget_events(std::uint64_t seq) override;
  Result<std::uint64_t> forget_documents(std::string_view kind, Timestamp before) override;

 private:
  std::deque<port::StoredEvent> events_;
  std::uint64_t next_event_ = 1;
  std::map<std::pair<std::string, std::string>, port::Document> documents_;
  std::set<std::tuple<std::string, Timestamp, std::string>> by_time_;  // kind and id of documents
  std::vector<port::AuditEntry> audit_;
};

}  // namespace weft::adapt::sim
