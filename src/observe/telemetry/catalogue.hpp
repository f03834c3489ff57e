// What messages mean: patterns of texts and the records that they make, as data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "model/events/event_kind.hpp"
#include "observe/telemetry/dialect.hpp"
#include "observe/telemetry/name_table.hpp"

namespace weft::observe::telemetry {

// What a pattern takes out of a text.
enum class Slot : std::uint8_t { any, port, peer, nic, card, value, change };
inline constexpr std::array<std::string_view, 7> slot_names{"*",    "port",  "peer",  "nic",
                                                            "card", "value", "change"};

// "neighbor {peer}({*}) in vrf {*} Down": words and slots in turn. A slot reaches to the first
// place where the words behind it stand; the last one to the end.
struct Pattern {
  std::vector<std::string> words;  // one more than slots; the first and last may be empty
  std::vector<Slot> slots;
};
// Fails: Errc::parse for an unknown or unclosed slot, and two slots without words between.
Result<Pattern> parse_pattern(const Token& token);

struct Captures {
  std::array<std::string_view, slot_names.size()> of{};  // by slot; "" where the pattern has none
  std::string_view operator[](Slot slot) const { return of[static_cast<std::size_t>(slot)]; }
};
// Whether the whole text is such a one. Cost: O(text), no allocation.
bool matches(const Pattern& pattern, std::string_view text, Captures& out);

struct MessageRow {
  std::uint32_t dialects = 0;  // bit by Dialect
  // The key is the mnemonic, or without one the program. "*" in a mnemonic stands for anything;
  // at its end not for the names of ends, such as "..._CLEAR" and "..._RECOVERED".
  std::string program, mnemonic;
  Pattern pattern;
  std::uint8_t severity = 5;  // for those who write such messages
  model::EventKind kind = model::EventKind::info;
  Reason reason = Reason::none;
  std::uint32_t next = NameTable::none;  // the next row of the same key

  // Without the container of SONiC's "swss#orchagent".
  std::string_view key() const {
    const std::string_view all = mnemonic.empty() ? program : mnemonic;
    return all.substr(all.find('#') + 1);
  }
  bool is_of(Dialect dialect) const {
    return (dialects >> static_cast<unsigned>(dialect) & 1u) != 0;
  }
};

// Of one key, the first row that matches counts; rows of files stand before the built-in ones, rows
// of exact keys before those with "*".
class Catalogue {
 public:
  static Catalogue built_in();
  // `messages:` as docs/telemetry.md describes it, before the built-in ones; alone with
  // `builtin: false`. Fails with every error of the file, each with its position.
  static Result<Catalogue> from_yaml(const Config& config);

  const std::vector<MessageRow>& rows() const { return rows_; }
  // The row that says what a message means, and what its slots hold; nullptr when nobody knows it.
  // Cost: of the rows of its key, and without one of those of its facility ("ETHPORT", "RPD").
  const MessageRow* find(std::string_view key, std::string_view text, Captures& out) const;
  // The first row of that exact key; NameTable::none when nobody knows it.
  std::uint32_t first(std::string_view key) const { return keys_.find(0, key); }
  // Rows of what a device of that dialect says for it, in order.
  std::vector<const MessageRow*> sayings(Dialect dialect, model::EventKind kind,
                                         Reason reason) const;

 private:
  Status add(const Config& config);
  void index();

  std::vector<MessageRow> rows_;
  NameTable keys_;
};

// The YAML texts of the built-in rows: those before the ones that devices of the twin write, these,
// and those behind them.
std::string_view first_messages();
std::string_view builtin_messages();
std::array<std::string_view, 3> device_messages();

}  // namespace weft::observe::telemetry
