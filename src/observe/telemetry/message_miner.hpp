// Unknown messages grouped into templates, each proposed as a row of the catalogue.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "observe/telemetry/inventory.hpp"
#include "observe/telemetry/name_table.hpp"
#include "observe/telemetry/syslog.hpp"

namespace weft::observe::telemetry {

struct Proposal {
  std::uint64_t count = 0;
  std::string key;  // mnemonic, or program
  bool is_mnemonic = false;
  std::string text;     // pattern of the catalogue
  std::string kind;     // what its words sound like; "" when like nothing
  std::string example;  // the first such line
};

// Words of a message in turn; those with digits are variables from the start, others become so
// where messages of one key and length differ. A message joins the template of its key and length
// that it shares most words with, if that is more than half and the first word is among them. After
// "Drain: An Online Log Parsing Approach with Fixed Depth Tree" (He et al., ICWS 2017), with the
// message's key and length as the whole tree. Depends on the order of the messages only.
// Cost: O(words) for each template of the message's key and length.
// Memory: at most `templates_max` templates of `words_max` words; the rest is counted.
class MessageMiner {
 public:
  static constexpr std::size_t templates_max = 4'096, words_max = 64, example_bytes_max = 400;

  // Names of ports and neighbours in a message are those that `device` has.
  void add(const Inventory& inventory, model::NodeId device, const SyslogMessage& message,
           std::string_view line);
  // Most frequent first; of equal counts the first seen.
  std::vector<Proposal> proposals() const;
  std::uint64_t dropped() const { return dropped_; }  // without a usable key, or beyond the limit

 private:
  struct Word {
    std::string before, slot, after;  // a variable: "(", "{port}", "),"; a word: in `before` alone
    bool is_variable() const { return !slot.empty(); }
    std::uint64_t hash() const;
  };
  struct Template {
    std::uint64_t count = 0;
    std::string key, example;
    bool is_mnemonic = false;
    std::vector<Word> words;
    std::vector<std::uint64_t> hashes;     // of words: a message is compared with all of its length
    std::uint32_t next = NameTable::none;  // of the same key and length
  };
  static Word word_of(const Inventory& inventory, model::NodeId device, std::string_view text);

  std::vector<Template> templates_;
  NameTable first_;  // owner: number of words; key -> template
  std::uint64_t dropped_ = 0;
};

// As a catalogue that loads as it is and calls every message benign: `kind` is for people to set.
std::string to_yaml(const std::vector<Proposal>& proposals);
// One line of JSON each.
std::string to_json(const Proposal& proposal);

}  // namespace weft::observe::telemetry
