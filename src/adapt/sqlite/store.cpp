#include "adapt/sqlite/store.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

#include "adapt/sqlite/database.hpp"
#include "adapt/sqlite/file_lock.hpp"
#include "adapt/sqlite/rows.hpp"
#include "adapt/sqlite/schema.hpp"
#include "base/pool.hpp"
#include "base/text.hpp"
#include "port/store_schema.hpp"

namespace weft::adapt::sqlite {
namespace {

constexpr std::size_t readers_max = 8;

// WAL lets readers and the writer go on side by side; FULL syncs it at every commit. The limits are
// for speed: pages that wait in the WAL, its size at rest, and the writer's cache in KiB.
constexpr const char* writer_setup =
    "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;"
    "PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384;"
    "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON";
constexpr const char* reader_setup = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON";

struct Writer {
  Database db;
  Statement count_events, count_audit, event, document, audit, forget_events, forget_documents;

  static Result<Writer> prepare(Database db) {
    WEFT_TRY(Statement count_events, db.prepare(port::sql_count_events));
    WEFT_TRY(Statement count_audit, db.prepare(port::sql_count_audit));
    WEFT_TRY(Statement event, db.prepare(insert_event));
    WEFT_TRY(Statement document, db.prepare(insert_document));
    WEFT_TRY(Statement audit, db.prepare(insert_audit));
    WEFT_TRY(Statement forget_events, db.prepare(port::sql_forget_events));
    WEFT_TRY(Statement forget_documents, db.prepare(port::sql_forget_documents));
    return Writer{std::move(db),
                  std::move(count_events),
                  std::move(count_audit),
                  std::move(event),
                  std::move(document),
                  std::move(audit),
                  std::move(forget_events),
                  std::move(forget_documents)};
  }

  // Takes the next `count` numbers; the first of them, 0 where there is none to take.
  static Result<std::uint64_t> numbers(Statement& counter, std::size_t count) {
    if (count == 0) return 0;
    const auto wanted = static_cast<std::int64_t>(count);
    std::int64_t last = 0;
    WEFT_TRY_STATUS(
        counter.bind(wanted).each([&](const Statement& row) { last = row.integer(0); }));
    return static_cast<std::uint64_t>(last - wanted + 1);
  }

  Result<std::uint64_t> commit(const port::Commit& commit) {
    WEFT_TRY(Transaction transaction, Transaction::begin(db));
    WEFT_TRY(const std::uint64_t first, numbers(count_events, commit.events.size()));
    std::uint64_t seq = first;
    for (const port::StoredEvent& row : commit.events) WEFT_TRY_STATUS(insert(event, seq++, row));
    for (const port::Document& row : commit.documents) WEFT_TRY_STATUS(insert(document, row));
    WEFT_TRY(seq, numbers(count_audit, commit.audit.size()));
    for (const port::AuditEntry& row : commit.audit) WEFT_TRY_STATUS(insert(audit, seq++, row));
    WEFT_TRY_STATUS(transaction.commit());
    return first;
  }

  // Runs a statement that deletes; how many rows.
  Result<std::uint64_t> forget(Statement& statement) {
    WEFT_TRY(Transaction transaction, Transaction::begin(db));
    WEFT_TRY_STATUS(statement.run());
    const std::uint64_t count = db.changed();
    WEFT_TRY_STATUS(transaction.commit());
    return count;
  }
};

struct Reader {
  Database db;
  Statement events, document, documents, audit, audit_of;

  static Result<std::unique_ptr<Reader>> open(const std::string& path) {
    WEFT_TRY(Database db, Database::open(path, Access::read));
    WEFT_TRY_STATUS(db.run(reader_setup));
    WEFT_TRY(Statement events, db.prepare(port::sql_events));
    WEFT_TRY(Statement document, db.prepare(port::sql_document));
    WEFT_TRY(Statement documents, db.prepare(port::sql_documents));
    WEFT_TRY(Statement audit, db.prepare(port::sql_audit));
    WEFT_TRY(Statement audit_of, db.prepare(port::sql_audit_of));
    return std::make_unique<Reader>(Reader{std::move(db), std::move(events), std::move(document),
                                           std::move(documents), std::move(audit),
                                           std::move(audit_of)});
  }
};

class SqliteStore final : public port::Store {
 public:
  SqliteStore(const std::string& path, FileLock lock, Writer writer)
      : lock_(std::move(lock)),
        readers_(readers_max, [path] { return Reader::open(path); }),
        writer_(std::move(writer)) {}

  Result<std::uint64_t> commit(const port::Commit& commit) override {
    WEFT_TRY_STATUS(port::check_commit(commit));
    const std::lock_guard lock(write_mutex_);
    return writer_.commit(commit);
  }

  Result<std::vector<port::StoredEvent>> events(std::uint64_t seq, std::size_t rows_max) override {
    WEFT_TRY(const auto reader, readers_.borrow());
    return rows_of(reader->events.bind(port::sql_number(seq), port::sql_number(rows_max)),
                   event_of);
  }

  Result<port::Document> document(std::string_view kind, std::string_view id) override {
    WEFT_TRY_STATUS(port::check_store_name("kind", kind));
    WEFT_TRY_STATUS(port::check_store_name("id", id));
    WEFT_TRY(const auto reader, readers_.borrow());
    WEFT_TRY(auto found, rows_of(reader->document.bind(Text{kind}, Text{id}), document_of));
    if (found.empty()) return port::no_document(kind, id);
    return std::move(found.front());
  }

  Result<std::vector<port::Document>> documents(std::string_view kind, Timestamp before,
                                                std::size_t rows_max) override {
    WEFT_TRY_STATUS(port::check_store_name("kind", kind));
    WEFT_TRY(const auto reader, readers_.borrow());
    return rows_of(reader->documents.bind(Text{kind}, before.ns, port::sql_number(rows_max)),
                   document_of);
  }

  Result<std::vector<port::AuditEntry>> audit(std::uint64_t seq, std::string_view subject,
                                              std::size_t rows_max) override {
    WEFT_TRY_STATUS(port::check_store_name("subject", subject));
    WEFT_TRY(const auto reader, readers_.borrow());
    const std::int64_t limit = port::sql_number(rows_max);
    Statement& statement = subject.empty()
                               ? reader->audit.bind(port::sql_number(seq), limit)
                               : reader->audit_of.bind(Text{subject}, port::sql_number(seq), limit);
    return rows_of(statement, sqlite::audit_of);
  }

  Result<std::uint64_t> forget_events(std::uint64_t seq) override {
    const std::lock_guard lock(write_mutex_);
    return writer_.forget(writer_.forget_events.bind(port::sql_number(seq)));
  }

  Result<std::uint64_t> forget_documents(std::string_view kind, Timestamp before) override {
    WEFT_TRY_STATUS(port::check_store_name("kind", kind));
    const std::lock_guard lock(write_mutex_);
    return writer_.forget(writer_.forget_documents.bind(Text{kind}, before.ns));
  }

 private:
  FileLock lock_;  // given back last
  Pool<Reader> readers_;
  std::mutex write_mutex_;
  Writer writer_;  // guarded by write_mutex_
};

// One name for one file, whatever way leads to it; the lock stands beside that.
Result<std::string> resolve(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos)
    return fail(Errc::value, {}, fmt::format("{} is not a file name", weft::quote(path)));
  std::error_code error;
  const std::filesystem::path out = std::filesystem::weakly_canonical(path, error);
  if (error) return file_failure(path, "cannot be opened", error.value());
  return std::filesystem::absolute(out).string();
}

// So that it is not readable by everybody; SQLite gives what stands beside it the same rights.
Status make_file(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (!file.valid()) return file_failure(path, "cannot be opened", errno);
  return {};
}

Status start_wal(Database& db, const std::string& path) {
  WEFT_TRY(const std::string mode, db.text("PRAGMA journal_mode = WAL"));
  if (mode != "wal")
    return fail(
        Errc::unsupported, {path},
        fmt::format("its file system does not support write-ahead logs (SQLite reports {})", mode),
        "put the store on a local disk, not on a network file system");
  WEFT_TRY_STATUS(db.run(writer_setup));
  // The first read makes PATH-shm. Now, so that readers need no room when the disk is full.
  return db.run(port::sql_version);
}

}  // namespace

Result<std::unique_ptr<port::Store>> open_sqlite(const std::string& path) {
  WEFT_TRY(const std::string file, resolve(path));
  WEFT_TRY(FileLock lock, FileLock::take(file));
  WEFT_TRY_STATUS(make_file(file));
  WEFT_TRY(Database db, Database::open(file, Access::write));
  // First, since it finds out whether the file is ours to change.
  WEFT_TRY_STATUS(migrate(db, file, port::store_migrations(port::SqlDialect::sqlite)));
  WEFT_TRY_STATUS(start_wal(db, file));
  WEFT_TRY(Writer writer, Writer::prepare(std::move(db)));
  return std::make_unique<SqliteStore>(file, std::move(lock), std::move(writer));
}

}  // namespace weft::adapt::sqlite
