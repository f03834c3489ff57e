// Heads of requests, targets, bodies of commands and files of tokens: no bytes crash; what is
// understood is bounded and clean.
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "fuzz.hpp"
#include "serve/auth.hpp"
#include "serve/http.hpp"
#include "serve/openapi.hpp"

namespace {

namespace serve = weft::serve;

void check_target(std::string_view text) {
  const auto target = serve::parse_target(text);
  if (!target) return;
  WEFT_CHECK(text.starts_with('/'));
  for (const std::string& piece : target->path)
    WEFT_CHECK(piece.size() <= text.size() && weft::find_not_text(piece) == std::string::npos);
  for (const auto& [name, value] : target->query)
    WEFT_CHECK(weft::find_not_text(name + value) == std::string::npos);
}

void check_head(std::string_view text) {
  const auto head = serve::parse_head(text);
  if (!head) {
    WEFT_CHECK(head.error().status >= 400 && !serve::phrase_of(head.error().status).empty());
    return;
  }
  WEFT_CHECK(head->target.starts_with('/') && head->target.size() <= serve::target_bytes_max);
  WEFT_CHECK(head->fields.size() <= serve::field_count_max);
  for (const auto& [name, value] : head->fields)
    WEFT_CHECK(value.find_first_of("\r\n") == std::string::npos && !name.empty());
  check_target(head->target);
}

void check_body(std::string_view text) {
  const serve::Route route{
      .method = "POST",
      .path = "/",
      .id = "x",
      .fields = {{.name = "reason", .meaning = "why", .least = 1, .most = 50},
                 {.name = "until", .meaning = "the end", .type = serve::Param::Type::time}}};
  const auto fields = serve::read_fields(route, text);
  if (fields && fields->has("reason")) WEFT_CHECK(fields->text("reason").size() <= 50);
  const auto lines = serve::lines_of(text, 100);
  WEFT_CHECK(!lines || lines->size() <= 100);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = weft::fuzz::text_of(data, size);
  check_head(text);
  check_target(text);
  check_body(text);
  static_cast<void>(serve::token_of_header(text));
  const auto tokens = serve::Tokens::parse(text, "tokens");
  WEFT_CHECK(!tokens || tokens->size() > 0);
  return 0;
}
