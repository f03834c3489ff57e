// Taking secrets and what tells whose network it is out of configurations, logs and answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"

namespace weft::operate::snapshot {

// What becomes of something that is no secret, and still tells something.
enum class Treatment : std::uint8_t {
  keep,
  remove,     // "<removed:name>"
  pseudonym,  // the same stands for the same in the whole export
};

struct RedactSettings {
  Treatment public_addresses = Treatment::remove;
  Treatment private_addresses = Treatment::keep;
  std::vector<std::string> names;  // of customers, sites, ...; found in any spelling of case
  Treatment listed_names = Treatment::remove;
};
// YAML: {public_addresses: remove|pseudonym|keep, private_addresses: ..., names: [...],
// listed_names: ...}. Errors go to the reader's list.
RedactSettings read_redact_settings(const Config& config, Errors& errors);

// Reads one text after another; pseudonyms hold for all of them. The outcome depends on the texts
// and their order alone.
//
// Removed always, wherever they stand: values behind words like password, secret, key-string,
// pre-shared-key, token, in the manner of FRRouting, EOS, IOS, NX-OS and Junos, of JSON and of
// key=value; SNMP communities and users; hashes ("$6$...", "$9$..."); PEM private keys; JSON web
// tokens and the tokens of well-known services; passwords in URLs. Where it is in doubt a word more
// goes. Passing a text twice changes nothing more.
class Redactor {
 public:
  explicit Redactor(RedactSettings settings);

  // Cost: O(bytes * names). The result is at most 16 times as long.
  std::string redact(std::string_view text);

  // How many of each kind were taken out so far.
  const std::map<std::string, std::uint64_t>& counts() const { return counts_; }
  // What stands for what, for the one who exports.
  const std::map<std::string, std::string>& pseudonyms() const { return pseudonyms_; }

 private:
  std::string redact_line(std::string_view line);
  std::string without_secrets(std::string_view line);
  std::string without_addresses(const std::string& line);
  std::string without_names(const std::string& line);
  std::string replacement(std::string_view kind, const std::string& original, Treatment treatment);

  RedactSettings settings_;
  std::map<std::string, std::uint64_t> counts_;
  std::map<std::string, std::string> pseudonyms_;
  std::uint32_t addresses_ = 0, names_ = 0;  // pseudonyms given
  bool in_private_key_ = false;              // within a PEM block
  std::size_t snmp_depth_ = 0;               // within Junos' snmp { ... }: braces open
};

}  // namespace weft::operate::snapshot
