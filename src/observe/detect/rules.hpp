// What is worth telling, as data: combinations of events and values in windows of time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "observe/detect/event.hpp"

namespace weft::observe::detect {

inline constexpr std::size_t rules_max = 256;
inline constexpr std::size_t terms_max = 12;             // different ones of a rule
inline constexpr std::uint32_t group_events_max = 2048;  // that a term remembers of one group

// A term speaks of a group (a card, a port, ...) at a time T and looks back over (T - window, T].
enum class TermKind : std::uint8_t {
  count,   // so many events, or different parts with an event
  rate,    // events, or growth of a counter, a second
  value,   // the newest value of a series, which has been so for `for_ns` by all samples
  change,  // newest value less the oldest in the window
  absent,  // none, though the group has been known for as long
};
inline constexpr std::array<std::string_view, 5> term_names{"count", "rate", "value", "change",
                                                            "absent"};
enum class Side : std::uint8_t { above, below };

struct Term {
  TermKind kind = TermKind::count;
  Signals signals;
  Sources sources;               // empty: any
  std::optional<Part> distinct;  // of a count
  std::uint32_t at_least = 1;    // of a count
  double share_of_ports = 0;     // of a count, instead: of the group's ports; 0: not given
  Side side = Side::above;       // of a rate, value or change
  double limit = 0;
  std::int64_t window_ns = 0;
  std::int64_t for_ns = 0;  // of a value

  friend bool operator==(const Term&, const Term&) = default;
};

struct Rule {
  std::string name;
  model::EventKind kind = model::EventKind::info;  // of what is told
  Part per = Part::device;                         // groups
  Part entity = Part::device;                      // of what is told
  std::int64_t within_ns = 0;
  std::int64_t wait_ns = 0;  // how long members are held back, and the detection for more members
  std::int64_t hold_ns = 0;  // how long nothing must be wrong before it has ended
  std::vector<Term> terms;
  std::vector<bool> truth;  // whether the condition is true, by the set of terms that hold
  Kinds suppress;           // that are told as members only
  Kinds members;            // these, and those that speak for the detection
};

using Rules = std::vector<Rule>;

// Reads `detections:` as docs/agent.md describes it, laid over the built-in ones: a rule replaces
// the one of its name, `without:` drops some, `builtin: false` all. Fails with every error of the
// file and its position: unknown names, windows of no length, conditions that can never be true or
// are true of silence, rules that suppress what they tell.
Result<Rules> read_rules(const Config& config);
Rules default_rules();
// The YAML of the built-in rules, with reasons.
std::string_view default_rules_text();

}  // namespace weft::observe::detect
