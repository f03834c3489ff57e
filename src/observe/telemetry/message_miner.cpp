#include "observe/telemetry/message_miner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/json_text.hpp"
#include "base/text.hpp"

namespace weft::observe::telemetry {
namespace {

constexpr std::string_view any_slot = "{*}";

// The parts of a message between blanks; of very long ones the rest is one part.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t end =
        out.size() + 1 == MessageMiner::words_max ? std::string_view::npos : text.find(' ');
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

// What a double-quoted scalar of YAML, and a pattern, cannot hold as it is.
bool is_special(char c) {
  return c == '{' || c == '}' || c == '"' || c == '\\' || c < ' ' || c > '~';
}

bool has(std::string_view text, std::string_view word) { return text.contains(word); }

// What a template sounds like, in lower case; "" for nothing that is sure enough to suggest.
std::string_view sounds_like(std::string_view text) {
  const bool down = has(text, "down") || has(text, "fail") || has(text, "lost");
  const bool up = has(text, " up") || has(text, "establish");
  if (has(text, "clear") || has(text, "recover") || has(text, "restor")) return "";
  if (has(text, "bgp")) return down ? "bgp_down" : up ? "bgp_up" : "";
  if (has(text, "bfd")) return down ? "bfd_down" : up ? "bfd_up" : "";
  if (has(text, "fan")) return down || has(text, "remov") ? "fan_fail" : "";
  if (has(text, "power sup") || has(text, "psu"))
    return down || has(text, "absen") ? "psu_fail" : "";
  if (has(text, "temperature"))
    return has(text, "high") || has(text, "over") ? "temperature_high" : "";
  if (has(text, "crash") || has(text, "core dump")) return "process_crash";
  if (has(text, "parity") || has(text, "uncorrect")) return "memory_error";
  if (has(text, "crc") || has(text, "fcs")) return "crc_errors";
  if (has(text, "{nic}")) return down ? "nic_down" : up ? "nic_up" : "";
  if (has(text, "{port}")) return down ? "link_down" : up ? "link_up" : "";
  return "";
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  });
  return out;
}

// A scalar in double quotes; texts of patterns hold no backslash and no quote.
std::string yaml_text(std::string_view text) { return fmt::format("\"{}\"", text); }

}  // namespace

std::uint64_t MessageMiner::Word::hash() const {
  std::uint64_t out = 0;
  for (const std::string* part : {&before, &slot, &after})
    out = out * 0x9E3779B97F4A7C15u + std::hash<std::string>{}(*part);
  return out;
}

MessageMiner::Word MessageMiner::word_of(const Inventory& inventory, model::NodeId device,
                                         std::string_view text) {
  if (std::ranges::any_of(text, is_special)) return {"", std::string(any_slot), ""};
  if (std::ranges::none_of(text, is_digit)) return {std::string(text), "", ""};
  // What stands around the variable: "ifname:" and "]," of "ifname:swp1],".
  std::size_t begin = 0, end = text.size();
  while (end > 0 && std::string_view(".,:;)]>'!").contains(text[end - 1])) --end;
  for (std::size_t i = 0; i < end && !is_digit(text[i]); ++i)
    if (std::string_view("=:([<'#|").contains(text[i])) begin = i + 1;
  const std::string_view name = text.substr(begin, end - begin);
  std::string_view slot = any_slot;
  if (inventory.nic(device, name).valid())
    slot = "{nic}";
  else if (inventory.port(device, name).valid())
    slot = "{port}";
  else if (inventory.towards(device, name).valid())
    slot = "{peer}";
  return {std::string(text.substr(0, begin)), std::string(slot), std::string(text.substr(end))};
}

void MessageMiner::add(const Inventory& inventory, model::NodeId device,
                       const SyslogMessage& message, std::string_view line) {
  // A catalogue reads "*" of a key as anything and what stands before "#" as a container.
  if (message.key.empty() || message.key.find_first_of("*#") != std::string_view::npos ||
      std::ranges::any_of(message.key, is_special)) {
    ++dropped_;
    return;
  }
  std::vector<Word> words;
  std::vector<std::uint64_t> hashes;
  for (const std::string_view part : split(message.text)) {
    words.push_back(word_of(inventory, device, part));
    hashes.push_back(words.back().hash());
  }
  const auto length = static_cast<std::uint32_t>(words.size());
  const std::uint32_t head = first_.find(length, message.key);
  std::uint32_t best = NameTable::none;
  std::size_t most = words.size() / 2;
  for (std::uint32_t at = head; at != NameTable::none; at = templates_[at].next) {
    const std::vector<std::uint64_t>& known = templates_[at].hashes;
    if (!words.empty() && hashes.front() != known.front()) continue;
    std::size_t same = 0;
    for (std::size_t i = 0; i < words.size(); ++i) same += hashes[i] == known[i] ? 1 : 0;
    if (same > most || (same == most && words.size() <= 1)) {
      best = at;
      most = same;
    }
  }
  if (best != NameTable::none) {
    Template& row = templates_[best];
    ++row.count;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (row.hashes[i] != hashes[i]) {
        row.words[i] = {"", std::string(any_slot), ""};
        row.hashes[i] = row.words[i].hash();
      }
    return;
  }
  if (templates_.size() == templates_max) {
    ++dropped_;
    return;
  }
  const auto made = static_cast<std::uint32_t>(templates_.size());
  templates_.push_back({1, std::string(message.key), std::string(line.substr(0, example_bytes_max)),
                        message.key != message.program, std::move(words), std::move(hashes),
                        NameTable::none});
  if (head == NameTable::none) {
    first_.add(length, message.key, made);
    return;
  }
  templates_[made].next = templates_[head].next;
  templates_[head].next = made;
}

std::vector<Proposal> MessageMiner::proposals() const {
  std::vector<Proposal> out;
  for (const Template& row : templates_) {
    Proposal made{row.count, row.key, row.is_mnemonic, "", "", row.example};
    bool has_port = false, has_peer = false, after_slot = false;
    for (const Word& word : row.words) {
      if (&word != &row.words.front()) made.text += ' ';
      std::string slot = word.slot;
      bool& seen = slot == "{peer}" ? has_peer : has_port;  // a row names a part once
      if (slot.size() > any_slot.size() && std::exchange(seen, true)) slot = any_slot;
      // A run of variables is one.
      if (after_slot && word.before.empty() && slot == any_slot && made.text.ends_with("{*} ")) {
        made.text.pop_back();
        made.text += word.after;
      } else {
        made.text += word.before + slot + word.after;
      }
      after_slot = word.is_variable();
    }
    made.kind = sounds_like(lower(row.key + " " + made.text));
    out.push_back(std::move(made));
  }
  std::ranges::stable_sort(out, std::greater{}, &Proposal::count);
  return out;
}

std::string to_yaml(const std::vector<Proposal>& proposals) {
  std::string out =
      "# Proposed by weft triage --propose: set the kind of what is an event (without one it is\n"
      "# benign), name its parts ({port} {peer} {nic} {card}), delete the rest.\nmessages:\n";
  for (const Proposal& p : proposals) {
    std::string example = p.example;
    std::ranges::replace_if(example, [](char c) { return c < ' ' || c > '~'; }, '?');
    out += fmt::format("  # {} times, e.g. {}\n", p.count, example);
    if (!p.kind.empty()) out += fmt::format("  # sounds like kind: {}\n", p.kind);
    out += fmt::format("  - {{{}: {}, text: {}}}\n", p.is_mnemonic ? "mnemonic" : "program",
                       yaml_text(p.key), yaml_text(p.text));
  }
  return proposals.empty() ? "messages: []\n" : out;
}

std::string to_json(const Proposal& p) {
  return JsonObject()
      .add("count", p.count)
      .add(p.is_mnemonic ? "mnemonic" : "program", p.key)
      .add("text", p.text)
      .add_if("kind", p.kind)
      .add("example", p.example)
      .text();
}

}  // namespace weft::observe::telemetry
