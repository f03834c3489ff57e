#include "adapt/sqlite/schema.hpp"

#include <fmt/format.h>

#include "port/store_schema.hpp"

namespace weft::adapt::sqlite {
namespace {

constexpr std::int64_t our_mark = 0x77656674;  // "weft", in SQLite's header

// The version of the schema; 0 of an empty file.
Result<std::int64_t> version_of(Database& db, const std::string& path) {
  WEFT_TRY(const std::int64_t mark, db.integer("PRAGMA application_id"));
  if (mark == our_mark) return db.integer(port::sql_version);
  WEFT_TRY(const std::int64_t tables, db.integer("SELECT count(*) FROM sqlite_schema"));
  if (mark == 0 && tables == 0) return 0;
  return fail(Errc::io, {path}, "this is not a weft database",
              "specify a weft store, or a file that does not exist yet");
}

}  // namespace

Status migrate(Database& db, const std::string& path, std::span<const std::string> steps) {
  WEFT_TRY(const std::int64_t found, version_of(db, path));
  WEFT_TRY_STATUS(port::check_store_version(found, steps.size(), {path}));
  for (auto version = static_cast<std::size_t>(found); version < steps.size(); ++version) {
    WEFT_TRY(Transaction transaction, Transaction::begin(db));
    WEFT_TRY_STATUS(db.run(steps[version]));
    WEFT_TRY_STATUS(
        db.run(fmt::format("UPDATE meta SET value = {} WHERE name = 'schema'; "
                           "PRAGMA application_id = {}",
                           version + 1, our_mark)));
    WEFT_TRY_STATUS(transaction.commit());
  }
  return {};
}

Status check_current(Database& db, const std::string& path) {
  WEFT_TRY(const std::int64_t found, version_of(db, path));
  const std::size_t known = port::store_migrations(port::SqlDialect::sqlite).size();
  return port::check_store_is_current(found, known, {path});
}

}  // namespace weft::adapt::sqlite
