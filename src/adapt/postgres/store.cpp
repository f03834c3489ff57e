#include "adapt/postgres/store.hpp"

#include <array>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "adapt/postgres/rows.hpp"
#include "adapt/postgres/schema.hpp"
#include "adapt/postgres/session.hpp"
#include "adapt/postgres/writer.hpp"
#include "base/pool.hpp"
#include "port/store_schema.hpp"

namespace weft::adapt::postgres {
namespace {

constexpr std::size_t readers_max = 4;

constexpr std::array<Prepared, 5> queries{{{"events", port::sql_events},
                                           {"document", port::sql_document},
                                           {"documents", port::sql_documents},
                                           {"audit", port::sql_audit},
                                           {"audit_of", port::sql_audit_of}}};

// A connection that reads, and comes back when it was lost.
class Reader {
 public:
  explicit Reader(Target target) : target_(std::move(target)) {}

  Status connect() {
    WEFT_TRY(session_, connect_store(target_, queries));
    return {};
  }
  // A connection that stood idle may have been lost long ago: that costs no failure.
  Result<Rows> ask(const Call& call) {
    const bool fresh = !session_ || session_->lost();
    if (fresh) WEFT_TRY_STATUS(connect());
    auto rows = session_->run({&call, 1});
    if (!rows && session_->lost() && !fresh) {
      WEFT_TRY_STATUS(connect());
      rows = session_->run({&call, 1});
    }
    if (!rows) return std::unexpected(std::move(rows).error());
    return std::move(rows->front());
  }

 private:
  Target target_;
  std::optional<Session> session_;
};

class PostgresStore final : public port::Store {
 public:
  PostgresStore(const Target& target, const std::string& instance)
      : readers_(readers_max,
                 [target]() -> Result<std::unique_ptr<Reader>> {
                   return std::make_unique<Reader>(target);
                 }),
        writer_(target, instance) {}

  // Whether the server is there and fit.
  Status try_it() {
    WEFT_TRY(const auto reader, readers_.borrow());
    return reader->connect();
  }

  Result<std::uint64_t> commit(const port::Commit& commit) override {
    WEFT_TRY_STATUS(port::check_commit(commit));
    const std::lock_guard lock(write_mutex_);
    return writer_.commit(commit);
  }

  Status claim() override {
    const std::lock_guard lock(write_mutex_);
    return writer_.claim();
  }

  bool is_superseded() const override { return writer_.is_superseded(); }

  Result<std::vector<port::StoredEvent>> events(std::uint64_t seq, std::size_t rows_max) override {
    return ask({"events", {count(seq), count(rows_max)}}, event_of);
  }

  Result<port::Document> document(std::string_view kind, std::string_view id) override {
    WEFT_TRY_STATUS(port::check_store_name("kind", kind));
    WEFT_TRY_STATUS(port::check_store_name("id", id));
    WEFT_TRY(auto found, ask({"document", {std::string(kind), std::string(id)}}, document_of));
    if (found.empty()) return port::no_document(kind, id);
    return std::move(found.front());
  }

  Result<std::vector<port::Document>> documents(std::string_view kind, Timestamp before,
                                                std::size_t rows_max) override {
    WEFT_TRY_STATUS(port::check_store_name("kind", kind));
    return ask({"documents", {std::string(kind), number(before.ns), count(rows_max)}}, document_of);
  }

  Result<std::vector<port::AuditEntry>> audit(std::uint64_t seq, std::string_view subject,
                                              std::size_t rows_max) override {
    WEFT_TRY_STATUS(port::check_store_name("subject", subject));
    if (subject.empty()) return ask({"audit", {count(seq), count(rows_max)}}, audit_of);
    return ask({"audit_of", {std::string(subject), count(seq), count(rows_max)}}, audit_of);
  }

  Result<std::uint64_t> forget_events(std::uint64_t seq) override {
    const std::lock_guard lock(write_mutex_);
    return writer_.forget({"forget_events", {count(seq)}});
  }

  Result<std::uint64_t> forget_documents(std::string_view kind, Timestamp before) override {
    WEFT_TRY_STATUS(port::check_store_name("kind", kind));
    const std::lock_guard lock(write_mutex_);
    return writer_.forget({"forget_documents", {std::string(kind), number(before.ns)}});
  }

 private:
  template <class Row>
  Result<std::vector<Row>> ask(const Call& call, Row (*make)(const Rows&, int)) {
    WEFT_TRY(const auto reader, readers_.borrow());
    WEFT_TRY(const Rows rows, reader->ask(call));
    return rows_of(rows, make);
  }

  Pool<Reader> readers_;
  std::mutex write_mutex_;
  Writer writer_;  // guarded by write_mutex_
};

}  // namespace

Result<std::unique_ptr<port::Store>> open_postgres(const std::string& conninfo, Patience patience) {
  WEFT_TRY_STATUS(check_conninfo(conninfo));
  WEFT_TRY(const std::string instance, new_instance());
  const Target target{conninfo, "weft reader " + instance.substr(0, 8), patience};
  auto store = std::make_unique<PostgresStore>(target, instance);
  WEFT_TRY_STATUS(store->try_it());
  return store;
}

}  // namespace weft::adapt::postgres
