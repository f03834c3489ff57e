#include "port/store_schema.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/text.hpp"

namespace weft::port {
namespace {

// Words in angle brackets stand for what the dialects say differently.
constexpr std::string_view tables = R"(
CREATE TABLE meta (name <text> PRIMARY KEY, value <int> NOT NULL) <end>;
INSERT INTO meta (name, value) VALUES ('schema', 0), ('events', 0), ('audit', 0);
CREATE TABLE events (
  seq <int> PRIMARY KEY,
  received <int> NOT NULL,
  feed <text> NOT NULL,
  line <bytes> NOT NULL) <end>;
CREATE TABLE documents (
  kind <text> NOT NULL,
  id <text> NOT NULL,
  updated <int> NOT NULL,
  body <bytes> NOT NULL,
  PRIMARY KEY (kind, id)) <end>;
CREATE INDEX documents_by_time ON documents (kind, updated DESC, id);
CREATE TABLE audit (
  seq <int> PRIMARY KEY,
  t <int> NOT NULL,
  actor <text> NOT NULL,
  subject <text> NOT NULL,
  action <text> NOT NULL,
  detail <bytes> NOT NULL) <end>;
CREATE INDEX audit_by_subject ON audit (subject, seq);
)";

// The third is for INSERT OR REPLACE, which deletes without asking the triggers on deletion.
constexpr std::string_view sqlite_guards = R"(
CREATE TRIGGER audit_not_updated BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER audit_not_deleted BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER audit_not_replaced BEFORE INSERT ON audit
  WHEN NEW.seq <= (SELECT max(seq) FROM audit)
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
)";

// `writers` has a row for each instance that ever wrote: who it is, and its last commit, by which
// it learns of the fate of one whose answer was lost.
constexpr std::string_view postgres_guards = R"(
CREATE FUNCTION audit_only_grows() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'the audit log only grows'; END $$;
CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION audit_only_grows();
CREATE TABLE writers (
  instance text PRIMARY KEY,
  holder text NOT NULL,
  since bigint NOT NULL,
  commit_number bigint NOT NULL,
  first_event bigint NOT NULL);
)";

using Words = std::array<std::pair<std::string_view, std::string_view>, 4>;
constexpr Words sqlite_words{
    {{"<int>", "INTEGER"}, {"<text>", "TEXT"}, {"<bytes>", "BLOB"}, {"<end>", "STRICT"}}};
// "C" orders by bytes, as SQLite does.
constexpr Words postgres_words{
    {{"<int>", "bigint"}, {"<text>", "text COLLATE \"C\""}, {"<bytes>", "bytea"}, {"<end>", ""}}};

std::string say(std::string_view text, const Words& words) {
  std::string out(text);
  for (const auto& [word, meaning] : words)
    for (std::size_t at = 0; (at = out.find(word, at)) != std::string::npos; at += meaning.size())
      out.replace(at, word.size(), meaning);
  return out;
}

Status check_value(std::string_view what, std::string_view value) {
  if (value.size() <= store_value_bytes_max) return {};
  return fail(Errc::value, {},
              fmt::format("{} of {} bytes; the store accepts at most {}", what, value.size(),
                          store_value_bytes_max));
}

}  // namespace

std::vector<std::string> store_migrations(SqlDialect dialect) {
  if (dialect == SqlDialect::sqlite)
    return {say(tables, sqlite_words) + std::string(sqlite_guards)};
  return {say(tables, postgres_words) + std::string(postgres_guards)};
}

Status check_store_version(std::int64_t found, std::size_t known, const Where& where) {
  if (std::cmp_less_equal(found, known)) return {};
  return fail(
      Errc::unsupported, where,
      fmt::format("this store was written by a newer weft: its schema is {}, this weft supports {}",
                  found, known),
      "run that version, or restore the backup made before the update");
}

Status check_store_is_current(std::int64_t found, std::size_t known, const Where& where) {
  WEFT_TRY_STATUS(check_store_version(found, known, where));
  if (std::cmp_equal(found, known)) return {};
  if (found == 0)
    return fail(Errc::unknown, where, "there is no weft store here", "name what weft serve uses");
  return fail(Errc::unsupported, where,
              fmt::format("this store was written by an older weft: its schema is {}, this weft "
                          "reads {}",
                          found, known),
              "use the weft that wrote it, or start weft serve on it once, which upgrades it");
}

Status check_store_name(std::string_view what, std::string_view name) {
  if (name.size() > store_name_bytes_max)
    return fail(Errc::value, {},
                fmt::format("{} {} of {} bytes; the store accepts at most {}", what, quote(name),
                            name.size(), store_name_bytes_max));
  if (find_not_text(name) != std::string_view::npos)
    return fail(Errc::value, {}, fmt::format("{} {} is not UTF-8 text", what, quote(name)),
                "names in a store must be text; put anything else in its values");
  return {};
}

Status check_commit(const Commit& commit) {
  constexpr std::size_t row_bytes = 64;  // so that empty rows have a bound too
  std::size_t bytes = 0;
  for (const StoredEvent& event : commit.events) {
    WEFT_TRY_STATUS(check_store_name("feed", event.feed));
    WEFT_TRY_STATUS(check_value("a line", event.line));
    bytes += row_bytes + event.feed.size() + event.line.size();
  }
  for (const Document& document : commit.documents) {
    WEFT_TRY_STATUS(check_store_name("kind", document.kind));
    WEFT_TRY_STATUS(check_store_name("id", document.id));
    WEFT_TRY_STATUS(check_value("a document", document.body));
    bytes += row_bytes + document.kind.size() + document.id.size() + document.body.size();
  }
  for (const AuditEntry& entry : commit.audit) {
    WEFT_TRY_STATUS(check_store_name("actor", entry.actor));
    WEFT_TRY_STATUS(check_store_name("subject", entry.subject));
    WEFT_TRY_STATUS(check_store_name("action", entry.action));
    WEFT_TRY_STATUS(check_value("a detail", entry.detail));
    bytes += row_bytes + entry.actor.size() + entry.subject.size() + entry.action.size() +
             entry.detail.size();
  }
  if (bytes <= store_commit_bytes_max) return {};
  return fail(Errc::value, {},
              fmt::format("a commit of {} bytes; the store accepts at most {}", bytes,
                          store_commit_bytes_max),
              "split the commit");
}

std::unexpected<Error> no_document(std::string_view kind, std::string_view id) {
  return fail(Errc::unknown, {}, fmt::format("{} {} does not exist", kind, quote(id)));
}

}  // namespace weft::port
