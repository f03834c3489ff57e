#include "adapt/postgres/session.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace weft::adapt::postgres {
namespace {

constexpr int oldest_server = 120000;

// TCP notices within a minute that the other machine is gone: the server for us, by what we set,
// and we for the server, so that a writer that is gone does not keep the others out.
constexpr const char* settings =
    "SET search_path = weft; SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10;"
    "SET tcp_keepalives_count = 3; SET tcp_user_timeout = 60000;"
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'";

// PostgreSQL's messages end in line ends, and may have several lines.
std::string one_line(std::string_view text) {
  std::string out(trim(text));
  std::ranges::replace(out, '\n', ' ');
  return out;
}

struct Advice {
  std::string_view state;  // an SQLSTATE, or the class that it begins with
  std::string_view hint;
};
// From: PostgreSQL documentation, appendix A, "PostgreSQL Error Codes".
constexpr std::array<Advice, 9> advices{{
    {"53100", "free space on the server's disk; nothing acknowledged is lost"},
    {"53300", "raise max_connections of the server; weft takes up to 5"},
    {"53", "the server is short of memory or disk; see its log"},
    {"25006",
     "this server is read-only, perhaps a standby: specify the primary, or several hosts with "
     "target_session_attrs=read-write"},
    {"42501", "have the database owner run weft once, or GRANT CREATE ON DATABASE to its user"},
    {"42P01", "weft's tables were dropped; restore a backup"},
    {"55P03", "another instance is changing the schema; try again"},
    {"XX", "the server reports damaged files; see its log and restore a backup"},
    {"57", "the server is stopping or ended the connection; try again"},
}};

std::string_view hint_for(std::string_view state) {
  for (const Advice& advice : advices)
    if (state.starts_with(advice.state)) return advice.hint;
  return {};
}

using Answer = std::unique_ptr<PGresult, ClearResult>;

}  // namespace

Status check_conninfo(const std::string& conninfo) {
  char* message = nullptr;
  PQconninfoOption* const options = conninfo.find('\0') == std::string::npos
                                        ? PQconninfoParse(conninfo.c_str(), &message)
                                        : nullptr;
  PQfreemem(message);
  PQconninfoFree(options);
  if (options != nullptr) return {};
  return fail(Errc::value, {}, "not a PostgreSQL connection string",
              "write e.g. \"host=db1 dbname=weft user=weft\" or \"postgresql://weft@db1/weft\"; "
              "put values with spaces in single quotes");
}

Result<Session> Session::connect(const Target& target) {
  const std::string timeout = std::to_string(target.patience.connect.count());
  // Of a name given twice the last counts: what stands before the user's text are defaults.
  const std::array<std::pair<const char*, const char*>, 8> options{{
      {"connect_timeout", timeout.c_str()},
      {"keepalives_idle", "30"},
      {"keepalives_interval", "10"},
      {"keepalives_count", "3"},
      {"tcp_user_timeout", "60000"},
      {"dbname", target.conninfo.c_str()},
      {"application_name", target.application.c_str()},
      {"client_encoding", "UTF8"},
  }};
  std::array<const char*, options.size() + 1> names{};
  std::array<const char*, options.size() + 1> values{};
  for (std::size_t i = 0; i < options.size(); ++i) {
    names[i] = options[i].first;
    values[i] = options[i].second;
  }
  constexpr int dbname_is_conninfo = 1;
  Session out(PQconnectdbParams(names.data(), values.data(), dbname_is_conninfo), target.patience);
  PGconn* const connection = out.connection_.get();
  const auto text = [](const char* given) { return given == nullptr ? "" : given; };
  out.where_ = fmt::format("database {} at {}", text(PQdb(connection)), text(PQhost(connection)));
  if (PQstatus(connection) != CONNECTION_OK)
    return fail(Errc::io, {out.where_}, one_line(PQerrorMessage(connection)),
                "check that the server is running and accepts this user; weft retries");
  PQsetNoticeReceiver(connection, [](void*, const PGresult*) {}, nullptr);
  if (PQsetnonblocking(connection, 1) != 0) return out.lose(PQerrorMessage(connection));
  WEFT_TRY_STATUS(out.check_server());
  WEFT_TRY_STATUS(out.script(settings));
  return out;
}

Status Session::check_server() {
  if (PQserverVersion(connection_.get()) < oldest_server)
    return fail(Errc::unsupported, {where_}, "the server is older than PostgreSQL 12", "update it");
  WEFT_TRY(const std::string fsync, script("SELECT current_setting('fsync')"));
  if (fsync != "on")
    return fail(Errc::unsupported, {where_},
                "the server runs with fsync = off and may lose acknowledged data",
                "set fsync = on in postgresql.conf");
  WEFT_TRY(const std::string encoding, script("SELECT current_setting('server_encoding')"));
  if (encoding != "UTF8")
    return fail(Errc::unsupported, {where_},
                fmt::format("the database has the encoding {}; weft's names are UTF-8", encoding),
                "create one with: createdb --encoding=UTF8 --template=template0 NAME");
  return {};
}

// `reason` may be a text of the connection's own, which goes with it.
std::unexpected<Error> Session::lose(std::string_view reason) {
  auto failed =
      fail(Errc::io, {where_}, fmt::format("connection to the server lost: {}", one_line(reason)),
           "check that it is running and reachable; weft retries");
  connection_.reset();
  return failed;
}

std::unexpected<Error> Session::refusal(const PGresult* result) const {
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* const message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return fail(Errc::io, {where_},
              one_line(message == nullptr ? PQresultErrorMessage(result) : message),
              std::string(hint_for(state == nullptr ? "" : state)));
}

// Until a result can be taken without waiting. Says what is wrong where there will be none.
std::optional<std::string> Session::wait(Deadline deadline) {
  PGconn* const connection = connection_.get();
  for (;;) {
    const int unsent = PQflush(connection);
    if (unsent < 0 || PQstatus(connection) == CONNECTION_BAD) return PQerrorMessage(connection);
    if (PQisBusy(connection) == 0) return std::nullopt;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return fmt::format("no answer in {} s", patience_.answer.count());
    const auto events = static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN);
    pollfd socket{PQsocket(connection), events, 0};
    const int ready = poll(&socket, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return "poll failed";
    if (ready > 0 && (socket.revents & ~POLLOUT) != 0 && PQconsumeInput(connection) == 0)
      return PQerrorMessage(connection);
  }
}

// Of a pipeline: results up to its end.
Result<std::vector<Rows>> Session::answers() {
  const Deadline deadline = std::chrono::steady_clock::now() + patience_.answer;
  std::vector<Rows> out;
  std::optional<std::unexpected<Error>> failed;
  for (;;) {
    if (auto trouble = wait(deadline)) return lose(failed ? failed->error().what : *trouble);
    Answer result(PQgetResult(connection_.get()));
    if (!result) continue;  // between two statements
    switch (PQresultStatus(result.get())) {
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK:
        out.emplace_back(result.release());
        break;
      case PGRES_PIPELINE_ABORTED:  // one before it failed
        break;
      case PGRES_PIPELINE_SYNC:
        if (failed) return *std::move(failed);
        return out;
      default:
        if (!failed) failed = refusal(result.get());
    }
  }
}

Result<std::vector<Rows>> Session::in_pipeline(const std::function<bool()>& send) {
  if (lost()) return lose("not connected");
  if (PQenterPipelineMode(connection_.get()) == 0 || !send() ||
      PQpipelineSync(connection_.get()) == 0)
    return lose(PQerrorMessage(connection_.get()));
  auto out = answers();
  if (lost()) return out;
  if (PQexitPipelineMode(connection_.get()) == 0) return lose(PQerrorMessage(connection_.get()));
  if (!out) WEFT_TRY_STATUS(leave_transaction());
  return out;
}

Result<std::vector<Rows>> Session::run(std::span<const Call> calls) {
  return in_pipeline([&] {
    return std::ranges::all_of(calls, [&](const Call& call) {
      std::vector<const char*> values;
      std::vector<int> sizes;
      for (const std::string& parameter : call.parameters) {
        values.push_back(parameter.data());
        sizes.push_back(static_cast<int>(parameter.size()));
      }
      constexpr int binary = 1;
      const std::vector<int> formats(values.size(), binary);
      return PQsendQueryPrepared(connection_.get(), call.statement, static_cast<int>(values.size()),
                                 values.data(), sizes.data(), formats.data(), binary) == 1;
    });
  });
}

Status Session::prepare(std::span<const Prepared> statements) {
  auto done = in_pipeline([&] {
    return std::ranges::all_of(statements, [&](const Prepared& statement) {
      return PQsendPrepare(connection_.get(), statement.name, statement.sql, 0, nullptr) == 1;
    });
  });
  if (!done) return std::unexpected(std::move(done).error());
  return {};
}

Result<std::string> Session::script(const std::string& sql) {
  if (lost()) return lose("not connected");
  const Deadline deadline = std::chrono::steady_clock::now() + patience_.answer;
  if (PQsendQuery(connection_.get(), sql.c_str()) == 0)
    return lose(PQerrorMessage(connection_.get()));
  std::string out;
  std::optional<std::unexpected<Error>> failed;
  for (;;) {
    if (auto trouble = wait(deadline)) return lose(failed ? failed->error().what : *trouble);
    const Answer result(PQgetResult(connection_.get()));
    if (!result) break;
    const int rows = PQntuples(result.get());
    if (PQresultStatus(result.get()) == PGRES_FATAL_ERROR) {
      failed = refusal(result.get());
    } else if (rows > 0) {
      out = PQgetvalue(result.get(), rows - 1, 0);
    }
  }
  if (!failed) return out;
  WEFT_TRY_STATUS(leave_transaction());
  return *std::move(failed);
}

// After a failure; a script that fails here has lost the server.
Status Session::leave_transaction() {
  const auto status = PQtransactionStatus(connection_.get());
  if (status == PQTRANS_IDLE) return {};
  if (status == PQTRANS_UNKNOWN) return lose(PQerrorMessage(connection_.get()));
  WEFT_TRY_STATUS(script("ROLLBACK"));
  return {};
}

}  // namespace weft::adapt::postgres
