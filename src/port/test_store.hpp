// For tests: a store in front of another, for those who override what shall go wrong.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "port/store.hpp"

namespace weft::port {

class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(std::unique_ptr<Store> real) : real_(std::move(real)) {}
  Result<std::uint64_t> commit(const Commit& commit) override { return real_->commit(commit); }
  Result<std::vector<StoredEvent>> events(std::uint64_t seq, std::size_t rows) override {
    return real_->events(seq, rows);
  }
  Result<Document> document(std::string_view kind, std::string_view id) override {
    return real_->document(kind, id);
  }
  Result<std::vector<Document>> documents(std::string_view kind, Timestamp before,
                                          std::size_t rows) override {
    return real_->documents(kind, before, rows);
  }
  Result<std::vector<AuditEntry>> audit(std::uint64_t seq, std::string_view subject,
                                        std::size_t rows) override {
    return real_->audit(seq, subject, rows);
  }
  Result<std::uint64_t> forget_events(std::uint64_t seq) override {
    return real_->forget_events(seq);
  }
  Result<std::uint64_t> forget_documents(std::string_view kind, Timestamp before) override {
    return real_->forget_documents(kind, before);
  }

 private:
  std::unique_ptr<Store> real_;
};

}  // namespace weft::port
