#include "adapt/postgres/image.hpp"

#include <array>
#include <charconv>
#include <utility>

#include "adapt/postgres/rows.hpp"
#include "adapt/postgres/schema.hpp"
#include "adapt/postgres/session.hpp"
#include "adapt/postgres/writer.hpp"
#include "port/store_schema.hpp"

namespace weft::adapt::postgres {
namespace {

constexpr std::array<Prepared, 3> image_queries{{{"events", port::sql_events},
                                                 {"documents", port::sql_documents_from},
                                                 {"audit", port::sql_audit}}};

class PostgresImage final : public port::StoreImage {
 public:
  explicit PostgresImage(Session session) : session_(std::move(session)) {}

  Result<port::StoreNumbers> numbers() override {
    port::StoreNumbers out;
    WEFT_TRY(out.events, whole(port::sql_last_event));
    WEFT_TRY(out.audit, whole(port::sql_last_audit));
    return out;
  }
  Result<std::vector<port::StoredEvent>> events(std::uint64_t seq, std::size_t rows_max) override {
    return ask({"events", {count(seq), count(rows_max)}}, event_of);
  }
  Result<std::vector<port::AuditEntry>> audit(std::uint64_t seq, std::size_t rows_max) override {
    return ask({"audit", {count(seq), count(rows_max)}}, audit_of);
  }
  Result<std::vector<port::Document>> documents(const std::string& kind, const std::string& id,
                                                std::size_t rows_max) override {
    return ask({"documents", {kind, id, count(rows_max)}}, document_of);
  }

 private:
  Result<std::uint64_t> whole(const char* sql) {
    WEFT_TRY(const std::string text, session_.script(sql));
    std::uint64_t out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  }
  template <class Row>
  Result<std::vector<Row>> ask(const Call& call, Row (*make)(const Rows&, int)) {
    WEFT_TRY(const std::vector<Rows> rows, session_.run({&call, 1}));
    return rows_of(rows.front(), make);
  }

  Session session_;
};

}  // namespace

Result<std::unique_ptr<port::StoreImage>> open_postgres_image(const std::string& conninfo,
                                                              Patience patience) {
  WEFT_TRY_STATUS(check_conninfo(conninfo));
  WEFT_TRY(Session session, Session::connect({conninfo, "weft backup", patience}));
  WEFT_TRY_STATUS(check_current(session));
  WEFT_TRY_STATUS(session.prepare(image_queries));
  WEFT_TRY_STATUS(session.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
  return std::make_unique<PostgresImage>(std::move(session));
}

Status write_postgres_image(const std::string& conninfo, port::StoreImage& image,
                            port::IfUsed if_used, Patience patience) {
  WEFT_TRY_STATUS(check_conninfo(conninfo));
  WEFT_TRY(const std::string instance, new_instance());
  Writer writer({conninfo, "", patience}, instance);
  return writer.take(image, if_used);
}

}  // namespace weft::adapt::postgres
