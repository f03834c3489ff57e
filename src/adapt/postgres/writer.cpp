#include "adapt/postgres/writer.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <map>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "adapt/postgres/schema.hpp"
#include "port/store_schema.hpp"

namespace weft::adapt::postgres {
namespace {

// Many rows go in one statement; more than so many bytes go in several.
constexpr std::size_t piece_bytes = std::size_t{16} << 20;
constexpr std::size_t row_bytes = 64;  // of a row beside its texts

// How long to wait for the lock: for a writer that is leaving, not for one that stays.
constexpr std::chrono::milliseconds lock_patience{500};

// The counters have been moved by now: $1 is how far behind its end a piece begins, less one.
constexpr std::array<Prepared, 12> statements{{
    {"begin", "BEGIN"},
    {"commit", "COMMIT"},
    {"count_events", port::sql_count_events},
    {"count_audit", port::sql_count_audit},
    {"events",
     "INSERT INTO events (seq, received, feed, line)"
     " SELECT m.value + $1 + u.n, u.received, u.feed, u.line FROM meta AS m,"
     " unnest($2::bigint[], $3::text[], $4::bytea[])"
     " WITH ORDINALITY AS u (received, feed, line, n) WHERE m.name = 'events'"},
    {"documents",
     "INSERT INTO documents (kind, id, updated, body)"
     " SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[])"
     " ON CONFLICT (kind, id) DO UPDATE SET updated = excluded.updated, body = excluded.body"},
    {"audit",
     "INSERT INTO audit (seq, t, actor, subject, action, detail)"
     " SELECT m.value + $1 + u.n, u.t, u.actor, u.subject, u.action, u.detail FROM meta AS m,"
     " unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bytea[])"
     " WITH ORDINALITY AS u (t, actor, subject, action, detail, n) WHERE m.name = 'audit'"},
    {"note",
     "UPDATE writers SET commit_number = $1, first_event = CASE WHEN $2::bigint = 0 THEN 0"
     " ELSE (SELECT value FROM meta WHERE name = 'events') - $2::bigint + 1 END"
     " WHERE instance = $3"},
    {"enter",
     "INSERT INTO writers (instance, holder, since, commit_number, first_event)"
     " VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint, 0, 0)"
     " ON CONFLICT (instance) DO UPDATE SET since = excluded.since"
     " RETURNING commit_number, first_event"},
    {"others", "SELECT coalesce(sum(commit_number), 0)::bigint FROM writers WHERE instance <> $1"},
    {"forget_events", port::sql_forget_events},
    {"forget_documents", port::sql_forget_documents},
}};

// Who holds the lock, as a FROM clause. A lock on a bigint shows as its two halves.
constexpr std::string_view holders =
    "FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid"
    " LEFT JOIN writers AS w ON a.application_name = 'weft ' || w.instance"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND l.classid = {} AND l.objid = {}";

std::string from_holders() {
  return fmt::format(holders, writer_lock >> 32, writer_lock & 0xffffffff);
}

std::string this_process() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("{}, process {}", host.data(), getpid());
}

// Calls use(rows, offset of the first) with pieces of `rows` of a bounded size.
template <class Row, class Size, class Use>
void in_pieces(std::span<const Row> rows, Size size, Use use) {
  for (std::size_t from = 0; from < rows.size();) {
    std::size_t to = from;
    for (std::size_t bytes = 0; to < rows.size() && bytes < piece_bytes; ++to)
      bytes += size(rows[to]);
    use(rows.subspan(from, to - from), from);
    from = to;
  }
}

// One column of `rows` as an array.
template <class Row, class Get>
std::string column(Element type, std::span<const Row> rows, Get get) {
  Array out(type, rows.size());
  for (const Row& row : rows) out.add(get(row));
  return out.take();
}

std::string offset_of(std::size_t from, std::size_t count) {
  return number(static_cast<std::int64_t>(from) - static_cast<std::int64_t>(count));
}

void add_events(std::span<const port::StoredEvent> all, std::vector<Call>& calls) {
  using Row = port::StoredEvent;
  if (all.empty()) return;
  calls.push_back({"count_events", {number(static_cast<std::int64_t>(all.size()))}});
  const auto size = [](const Row& row) { return row_bytes + row.feed.size() + row.line.size(); };
  in_pieces(all, size, [&](std::span<const Row> rows, std::size_t from) {
    calls.push_back(
        {"events",
         {offset_of(from, all.size()),
          column(Element::bigint, rows, [](const Row& row) { return row.received.ns; }),
          column(Element::text, rows, [](const Row& row) { return std::string_view(row.feed); }),
          column(Element::bytea, rows,
                 [](const Row& row) { return std::string_view(row.line); })}});
  });
}

void add_audit(std::span<const port::AuditEntry> all, std::vector<Call>& calls) {
  using Row = port::AuditEntry;
  if (all.empty()) return;
  calls.push_back({"count_audit", {number(static_cast<std::int64_t>(all.size()))}});
  const auto size = [](const Row& row) {
    return row_bytes + row.actor.size() + row.subject.size() + row.action.size() +
           row.detail.size();
  };
  in_pieces(all, size, [&](std::span<const Row> rows, std::size_t from) {
    const auto texts = [&](std::string Row::* member) {
      return column(member == &Row::detail ? Element::bytea : Element::text, rows,
                    [member](const Row& row) { return std::string_view(row.*member); });
    };
    calls.push_back(
        {"audit",
         {offset_of(from, all.size()),
          column(Element::bigint, rows, [](const Row& row) { return row.t.ns; }),
          texts(&Row::actor), texts(&Row::subject), texts(&Row::action), texts(&Row::detail)}});
  });
}

// One statement may not touch a row twice: of several with one name only the last counts.
std::vector<const port::Document*> last_words(std::span<const port::Document> documents) {
  std::map<std::pair<std::string_view, std::string_view>, const port::Document*> last;
  for (const port::Document& document : documents) last[{document.kind, document.id}] = &document;
  std::vector<const port::Document*> out;
  for (const auto& [name, document] : last) out.push_back(document);
  return out;
}

void add_documents(std::span<const port::Document> all, std::vector<Call>& calls) {
  using Row = const port::Document*;
  const std::vector<Row> last = last_words(all);
  const auto size = [](Row row) {
    return row_bytes + row->kind.size() + row->id.size() + row->body.size();
  };
  in_pieces(std::span<const Row>(last), size, [&](std::span<const Row> rows, std::size_t) {
    const auto texts = [&](Element type, std::string port::Document::* member) {
      return column(type, rows, [member](Row row) { return std::string_view(row->*member); });
    };
    calls.push_back(
        {"documents",
         {texts(Element::text, &port::Document::kind), texts(Element::text, &port::Document::id),
          column(Element::bigint, rows, [](Row row) { return row->updated.ns; }),
          texts(Element::bytea, &port::Document::body)}});
  });
}

Status superseded() {
  return fail(Errc::infeasible, {},
              "another weft took over this store while this one had no connection to it",
              "start this one again: it then reads what is new");
}

constexpr const char* delete_all =
    "ALTER TABLE audit DISABLE TRIGGER audit_only_grows; TRUNCATE events, documents, audit;"
    "ALTER TABLE audit ENABLE TRIGGER audit_only_grows; UPDATE meta SET value = 0"
    " WHERE name IN ('events', 'audit')";
constexpr const char* how_used =
    "SELECT (SELECT coalesce(sum(value), 0) FROM meta WHERE name IN ('events', 'audit'))"
    " + (SELECT count(*) FROM documents)";

}  // namespace

// Chance, not weft::Rng: no two instances, on no two machines, may ever have the same.
Result<std::string> new_instance() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return fail(Errc::io, {}, "the operating system provides no random numbers");
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

Writer::Writer(Target target, std::string instance)
    : target_(std::move(target)), instance_(std::move(instance)) {
  target_.application = "weft " + instance_;  // by which the server's other sessions know us
}

Status Writer::ready() {
  if (is_superseded_) return superseded();
  if (session_ && !session_->lost()) return {};
  WEFT_TRY(Session session, connect_store(target_, statements));
  WEFT_TRY_STATUS(take_lock(session));
  WEFT_TRY_STATUS(settle(session));
  session_ = std::move(session);
  return {};
}

// A connection that stood idle may have been lost long ago, and with it the lock.
Status Writer::claim() {
  if (session_ && !session_->lost()) {
    const std::array<Call, 1> ask{{{"others", {instance_}}}};
    if (session_->run(ask)) return {};
  }
  return ready();
}

// A session that has just ended, ours or another's, keeps the lock for some milliseconds more.
Status Writer::take_lock(Session& session) {
  constexpr std::chrono::milliseconds pause{20};
  const auto deadline = std::chrono::steady_clock::now() + lock_patience;
  for (;;) {
    WEFT_TRY(const std::string taken,
             session.script(fmt::format("SELECT pg_try_advisory_lock({})", writer_lock)));
    if (taken == "t") return {};
    WEFT_TRY_STATUS(end_our_earlier_session(session));
    if (std::chrono::steady_clock::now() > deadline) return name_holder(session);
    std::this_thread::sleep_for(pause);
  }
}

// One that was cut off, and of which the server does not know that yet.
Status Writer::end_our_earlier_session(Session& session) {
  WEFT_TRY_STATUS(session.script(
      fmt::format("SELECT pg_terminate_backend(l.pid) {} AND a.application_name = 'weft {}'",
                  from_holders(), instance_)));
  return {};
}

// Who had the lock and finds another with it will never know again what is true.
Status Writer::name_holder(Session& session) {
  WEFT_TRY(const std::string strangers,
           session.script(
               fmt::format("SELECT count(*) {} AND a.application_name IS DISTINCT FROM 'weft {}'",
                           from_holders(), instance_)));
  is_superseded_ = others_.has_value() && strangers != "0";
  WEFT_TRY(const std::string holder,
           session.script("SELECT coalesce(w.holder, 'connection ' || l.pid || ' of the server') " +
                          from_holders()));
  return fail(Errc::io, {session.where()},
              fmt::format("another weft writes to this store: {}", holder),
              "stop that one, or give this one its own database; weft retries");
}

// With the lock in hand nothing of an earlier session of ours can change any more.
Status Writer::settle(Session& session) {
  const std::array<Call, 2> enter{
      {{"enter", {instance_, this_process()}}, {"others", {instance_}}}};
  WEFT_TRY(const std::vector<Rows> rows, session.run(enter));
  WEFT_TRY_STATUS(check_others(rows[1].integer(0, 0)));
  if (!doubt_ || doubt_->first) return {};
  if (rows[0].integer(0, 0) == doubt_->number) {
    doubt_->first = static_cast<std::uint64_t>(rows[0].integer(0, 1));
  } else {
    doubt_.reset();
  }
  return {};
}

// The same where it gets the lock back after another had it.
Status Writer::check_others(std::int64_t commits) {
  if (!others_) others_ = commits;
  if (*others_ == commits) return {};
  is_superseded_ = true;
  return superseded();
}

Result<std::uint64_t> Writer::commit(const port::Commit& commit) {
  WEFT_TRY_STATUS(ready());
  if (const auto doubt = std::exchange(doubt_, std::nullopt);
      doubt && doubt->first && doubt->commit == commit)
    return *doubt->first;
  ++number_;
  const auto event_count = static_cast<std::int64_t>(commit.events.size());
  std::vector<Call> calls{{"begin", {}}};
  add_events(commit.events, calls);
  add_documents(commit.documents, calls);
  add_audit(commit.audit, calls);
  calls.push_back({"note", {number(number_), number(event_count), instance_}});
  calls.push_back({"commit", {}});
  auto done = session_->run(calls);
  if (!done && session_->lost()) return ask_again(commit, std::move(done).error());
  if (!done) return std::unexpected(std::move(done).error());
  // The count comes right behind "begin".
  if (event_count == 0) return 0;
  return static_cast<std::uint64_t>((*done)[1].integer(0, 0) - event_count + 1);
}

// The connection broke somewhere between the first byte and the answer.
Result<std::uint64_t> Writer::ask_again(const port::Commit& commit, Error failure) {
  doubt_ = Doubt{commit, number_, {}};
  if (!ready()) {
    failure.hint =
        "it is not known whether the commit was applied: retry the same commit before any other";
    return std::unexpected(std::move(failure));
  }
  const auto doubt = std::exchange(doubt_, std::nullopt);
  if (doubt && doubt->first) return *doubt->first;
  failure.hint = "the server is back, and none of the commit was applied: try again";
  return std::unexpected(std::move(failure));
}

Result<std::uint64_t> Writer::forget(Call call) {
  WEFT_TRY_STATUS(ready());
  const std::array<Call, 1> calls{std::move(call)};
  WEFT_TRY(const std::vector<Rows> rows, session_->run(calls));
  return rows[0].changed();
}

Status Writer::take(port::StoreImage& image, port::IfUsed if_used) {
  WEFT_TRY_STATUS(ready());
  WEFT_TRY_STATUS(session_->script("BEGIN"));
  const Status done = fill(image, if_used);
  if (!done && !session_->lost()) static_cast<void>(session_->script("ROLLBACK"));
  return done;
}

// In a transaction. The counters are moved to before the first row; each piece moves them on.
Status Writer::fill(port::StoreImage& image, port::IfUsed if_used) {
  WEFT_TRY(const std::string used, session_->script(how_used));
  if (used != "0" && if_used == port::IfUsed::refuse)
    return fail(Errc::infeasible, {session_->where()}, "this store has been used",
                "name another database, or delete what is there with --replace");
  WEFT_TRY_STATUS(session_->script(delete_all));
  WEFT_TRY(const port::StoreNumbers last, image.numbers());
  WEFT_TRY(const auto first_event, image.events(0, 1));
  WEFT_TRY(const auto first_audit, image.audit(0, 1));
  const auto start = [&](std::string_view name, std::uint64_t before) {
    return session_->script(
        fmt::format("UPDATE meta SET value = {} WHERE name = '{}'", before, name));
  };
  WEFT_TRY_STATUS(start("events", first_event.empty() ? last.events : first_event.front().seq - 1));
  WEFT_TRY_STATUS(start("audit", first_audit.empty() ? last.audit : first_audit.front().seq - 1));
  WEFT_TRY_STATUS(port::each_piece(image, [&](const port::Commit& rows) -> Status {
    std::vector<Call> calls;
    add_events(rows.events, calls);
    add_documents(rows.documents, calls);
    add_audit(rows.audit, calls);
    WEFT_TRY_STATUS(session_->run(calls));
    return {};
  }));
  // As many commits as microseconds since 1970: a service that wrote here before and comes back
  // finds that others have written since.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  number_ = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const std::array<Call, 2> end{
      {{"note", {number(number_), number(0), instance_}}, {"commit", {}}}};
  WEFT_TRY_STATUS(session_->run(end));
  return {};
}

}  // namespace weft::adapt::postgres
