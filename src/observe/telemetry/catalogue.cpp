#include "observe/telemetry/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"

namespace weft::observe::telemetry {
namespace {

template <std::size_t n>
std::vector<std::string> to_strings(const std::array<std::string_view, n>& names) {
  return {names.begin(), names.end()};
}

// Where a byte of a scalar stands, near enough: scalars of patterns are on one line.
Where behind(Where where, std::size_t offset) {
  if (where.column != 0) where.column += static_cast<std::uint32_t>(offset);
  return where;
}

constexpr std::uint32_t exact = 0, by_facility = 1;  // owners in the table of keys

// What a mnemonic begins with: "ETHPORT" of "ETHPORT-5-IF_UP", "RPD" of "RPD_BGP_...".
std::string_view facility_of(std::string_view key) {
  return key.substr(0, key.find_first_of("-_*"));
}

// Whether a key is such a one, "*" standing for anything.
bool is_like(std::string_view pattern, std::string_view key) {
  std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == key;
  if (!key.starts_with(pattern.substr(0, star))) return false;
  key.remove_prefix(star);
  while (true) {
    pattern.remove_prefix(star + 1);
    star = pattern.find('*');
    if (star == std::string_view::npos) return key.ends_with(pattern);
    const std::size_t at = key.find(pattern.substr(0, star));
    if (at == std::string_view::npos) return false;
    key.remove_prefix(at + star);
  }
}

// Whether a message's name tells the end of what the rest of it names: a family of faults does not
// include it.
bool tells_end(std::string_view key) {
  constexpr std::string_view ends[] = {"CLEAR",     "CLEARED",  "OK",
                                       "RECOVERED", "RESTORED", "RECOVER"};
  return std::ranges::any_of(ends, [&](std::string_view end) {
    return key.ends_with(end) && key.size() > end.size() && key[key.size() - end.size() - 1] == '_';
  });
}

MessageRow read_message_row(const Config& config, Errors& errors) {
  MessageRow out;
  Reader reader(config, "message", errors);
  const std::vector<std::string> dialects = to_strings(dialect_names);
  for (const Token& name : reader.texts("dialect")) {
    if (const auto known = dialect(name.text))
      out.dialects |= 1u << static_cast<unsigned>(*known);
    else
      reader.error(
          Errc::unknown, name.where,
          fmt::format("unknown dialect {}{}", quote(name.text), did_you_mean(name.text, dialects)),
          fmt::format("choose from: {}", fmt::join(dialects, ", ")));
  }
  out.program = reader.text("program", "");
  out.mnemonic = reader.text("mnemonic", "");
  if (out.key().empty())
    reader.error(Errc::value, config.where, "a message needs a key",
                 "give its mnemonic, or the program that logs it");
  if (out.key().contains('*') &&
      (out.mnemonic.empty() || out.mnemonic.find_first_of("-_*") == out.mnemonic.find('*')))
    reader.error(Errc::value, config.where, "only the end of a mnemonic may hold \"*\"",
                 "begin with its facility, e.g. \"ETHPORT-*-IF_DOWN_*\"");
  out.severity = static_cast<std::uint8_t>(reader.count("severity", 5, 0, 7));
  if (const Config* text = reader.child("text"); text != nullptr) {
    auto pattern = parse_pattern(token_of(*text));
    if (pattern)
      out.pattern = *std::move(pattern);
    else
      reader.error(std::move(pattern).error());
  } else {
    out.pattern = {{"", ""}, {Slot::any}};
  }
  const auto kinds = model::event_kind_names();
  out.kind = static_cast<model::EventKind>(reader.choice("kind", kinds, 0));
  const std::vector<std::string> reasons(reason_names.begin() + 1, reason_names.end());
  if (reader.has("reason"))
    out.reason = static_cast<Reason>(reader.choice("reason", reasons, 0) + 1);
  reader.finish();
  return out;
}

}  // namespace

Result<Pattern> parse_pattern(const Token& token) {
  Pattern out;
  out.words.emplace_back();
  std::string_view text = token.text;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '{') {
      out.words.back() += text[i++];
      continue;
    }
    const std::size_t end = text.find('}', i);
    const auto fault = [&](std::string what, std::string hint) {
      return fail(Errc::parse, behind(token.where, i), std::move(what), std::move(hint));
    };
    if (end == std::string_view::npos)
      return fault("unterminated slot: \"}\" is missing", "close it, e.g. {port}");
    const std::string_view name = text.substr(i + 1, end - i - 1);
    const auto known = std::ranges::find(slot_names, name);
    if (known == slot_names.end())
      return fault(fmt::format("unknown slot {}", quote(name)),
                   fmt::format("write {{NAME}} with one of: {}", fmt::join(slot_names, ", ")));
    if (!out.slots.empty() && out.words.back().empty())
      return fault("two slots without text between them",
                   "separate them: otherwise their boundary is ambiguous");
    out.slots.push_back(static_cast<Slot>(known - slot_names.begin()));
    out.words.emplace_back();
    i = end + 1;
  }
  return out;
}

bool matches(const Pattern& pattern, std::string_view text, Captures& out) {
  if (!text.starts_with(pattern.words.front())) return false;
  text.remove_prefix(pattern.words.front().size());
  for (std::size_t i = 0; i < pattern.slots.size(); ++i) {
    const std::string& behind = pattern.words[i + 1];
    const bool is_last = i + 1 == pattern.slots.size();
    std::size_t end = text.size();
    if (is_last && !behind.empty()) {
      if (!text.ends_with(behind)) return false;
      end = text.size() - behind.size();
    } else if (!is_last) {
      end = text.find(behind);
      if (end == std::string_view::npos) return false;
    }
    out.of[static_cast<std::size_t>(pattern.slots[i])] = text.substr(0, end);
    text.remove_prefix(end + behind.size());
  }
  return text.empty();
}

Status Catalogue::add(const Config& config) {
  Errors errors;
  Reader reader(config, "catalogue", errors);
  reader.flag("builtin", true);
  if (const Config* list = reader.child("messages"); list != nullptr) {
    if (list->kind != Config::Kind::list && list->kind != Config::Kind::null)
      reader.error(Errc::parse, list->where, "\"messages\" is not a list",
                   "write one row per message");
    for (const Config& row : list->items) rows_.push_back(read_message_row(row, errors));
  }
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return {};
}

void Catalogue::index() {
  // The last row of each chain: walking it for every row is quadratic in the rows of a key.
  std::vector<std::uint32_t> last(rows_.size());
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    const std::string_view key = rows_[i].key();
    const bool is_exact = !key.contains('*');
    const std::uint32_t owner = is_exact ? exact : by_facility;
    const std::string_view name = is_exact ? key : facility_of(key);
    const std::uint32_t head = keys_.find(owner, name);
    if (head == NameTable::none)
      keys_.add(owner, name, i);
    else
      rows_[last[head]].next = i;
    last[head == NameTable::none ? i : head] = i;
  }
}

const MessageRow* Catalogue::find(std::string_view key, std::string_view text,
                                  Captures& out) const {
  for (std::uint32_t at = keys_.find(exact, key); at != NameTable::none; at = rows_[at].next) {
    if (matches(rows_[at].pattern, text, out)) return &rows_[at];
    out = {};
  }
  for (std::uint32_t at = keys_.find(by_facility, facility_of(key)); at != NameTable::none;
       at = rows_[at].next) {
    const MessageRow& row = rows_[at];
    if (is_like(row.mnemonic, key) && (row.mnemonic.back() != '*' || !tells_end(key)) &&
        matches(row.pattern, text, out))
      return &row;
    out = {};
  }
  return nullptr;
}

Catalogue Catalogue::built_in() {
  Catalogue out;
  const auto [switches, chassis, hosts] = device_messages();
  for (const std::string_view yaml :
       {first_messages(), builtin_messages(), switches, chassis, hosts}) {
    const auto config = parse_yaml(yaml, "built-in catalogue");
    WEFT_CHECK(config.has_value());
    WEFT_CHECK(out.add(*config).has_value());
  }
  out.index();
  return out;
}

Result<Catalogue> Catalogue::from_yaml(const Config& config) {
  Catalogue out;
  WEFT_TRY_STATUS(out.add(config));
  const Config* flag = config.find("builtin");
  if (flag == nullptr || flag->text != "false") {
    static const std::vector<MessageRow> rows = built_in().rows_;  // some thousand lines of YAML
    std::ranges::copy(rows, std::back_inserter(out.rows_));
  }
  for (MessageRow& row : out.rows_) row.next = NameTable::none;
  out.index();
  return out;
}

std::vector<const MessageRow*> Catalogue::sayings(Dialect dialect, model::EventKind kind,
                                                  Reason reason) const {
  std::vector<const MessageRow*> out;
  for (const MessageRow& row : rows_)
    if (row.is_of(dialect) && row.kind == kind && row.reason == reason) out.push_back(&row);
  return out;
}

}  // namespace weft::observe::telemetry
