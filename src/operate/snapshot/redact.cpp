#include "operate/snapshot/redact.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "operate/snapshot/secrets.hpp"

namespace weft::operate::snapshot {
namespace {

constexpr std::size_t names_max = 10'000;
constexpr std::uint32_t pseudonym_first = 0xC6120001;  // 198.18.0.1, of the range for benchmarks
constexpr std::uint32_t pseudonym_count = 0x1FFFE;

bool is_alnum(char c) { return is_digit(c) || (lower_case(c) >= 'a' && lower_case(c) <= 'z'); }
bool is_of_address(char c) {
  return is_digit(c) || (lower_case(c) >= 'a' && lower_case(c) <= 'f') || c == ':' || c == '.';
}

std::string mark(std::string_view kind) { return fmt::format("{}{}>", removed_mark, kind); }

struct Prefix {
  std::uint32_t address;
  unsigned length;
};
// Not routed on the internet: private use, shared, loopback, link-local, documentation, benchmarks,
// multicast and above (masks). RFC 6890.
constexpr std::array<Prefix, 12> special{{{0x00000000, 8},
                                          {0x0A000000, 8},
                                          {0x64400000, 10},
                                          {0x7F000000, 8},
                                          {0xA9FE0000, 16},
                                          {0xAC100000, 12},
                                          {0xC0000200, 24},
                                          {0xC0A80000, 16},
                                          {0xC6120000, 15},
                                          {0xC6336400, 24},
                                          {0xCB007100, 24},
                                          {0xE0000000, 3}}};

bool is_public(std::uint32_t address) {
  return std::ranges::none_of(special, [&](const Prefix& prefix) {
    return (address ^ prefix.address) >> (32 - prefix.length) == 0;
  });
}

// Addresses that say nothing about anybody, whatever is asked for.
bool is_nobodys(std::uint32_t address) {
  return address >> 24 == 0 || address >> 24 == 127 || address >= 0xE0000000;
}

enum class Reach : std::uint8_t { nobodys, local, open };

std::optional<Reach> reach_of(const std::string& text) {
  in_addr four{};
  if (inet_pton(AF_INET, text.c_str(), &four) == 1) {
    const std::uint32_t address = ntohl(four.s_addr);
    if (is_nobodys(address)) return Reach::nobodys;
    return is_public(address) ? Reach::open : Reach::local;
  }
  in6_addr six{};
  if (inet_pton(AF_INET6, text.c_str(), &six) != 1) return std::nullopt;
  const std::uint8_t first = six.s6_addr[0], second = six.s6_addr[1];
  if (first == 0xff || first == 0) return Reach::nobodys;
  const bool documentation =
      first == 0x20 && second == 0x01 && six.s6_addr[2] == 0x0d && six.s6_addr[3] == 0xb8;
  const bool local = (first & 0xfe) == 0xfc || (first == 0xfe && (second & 0xc0) == 0x80);
  return local || documentation ? Reach::local : Reach::open;
}

Treatment read_treatment(Reader& reader, std::string_view key, Treatment fallback) {
  const std::array<std::string, 3> names{"keep", "remove", "pseudonym"};
  return static_cast<Treatment>(reader.choice(key, names, static_cast<std::size_t>(fallback)));
}

}  // namespace

RedactSettings read_redact_settings(const Config& config, Errors& errors) {
  RedactSettings out;
  Reader reader(config, "redact", errors);
  out.public_addresses = read_treatment(reader, "public_addresses", out.public_addresses);
  out.private_addresses = read_treatment(reader, "private_addresses", out.private_addresses);
  out.listed_names = read_treatment(reader, "listed_names", out.listed_names);
  for (const Token& name : reader.texts("names")) {
    if (trim(name.text).empty())
      reader.error(Errc::value, name.where, "an empty name matches everywhere");
    else
      out.names.emplace_back(name.text);
  }
  if (out.names.size() > names_max)
    reader.error(Errc::value, reader.where("names"),
                 fmt::format("at most {} names can be searched for", names_max));
  reader.finish();
  return out;
}

Redactor::Redactor(RedactSettings settings) : settings_(std::move(settings)) {
  for (std::string& name : settings_.names) name = lower_case(name);
  std::erase(settings_.names, "");
  // The longest first: "acme corp" before "acme".
  std::ranges::sort(settings_.names, [](const std::string& a, const std::string& b) {
    return std::pair(b.size(), a) < std::pair(a.size(), b);
  });
}

std::string Redactor::redact(std::string_view text) {
  in_private_key_ = false;
  snmp_depth_ = 0;
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += redact_line(text.substr(0, end));
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// A PEM block becomes one mark; one without an end takes the rest of the text with it.
std::string Redactor::redact_line(std::string_view line) {
  constexpr std::string_view begins = "-----BEGIN ", ends = "-----END ";
  std::string kept;
  while (true) {
    if (in_private_key_) {
      const std::size_t end = line.find(ends);
      if (end == std::string_view::npos) break;
      const std::size_t dashes = line.find("-----", end + ends.size());
      in_private_key_ = false;
      line.remove_prefix(dashes == std::string_view::npos ? line.size() : dashes + 5);
    }
    std::size_t begin = line.find(begins);
    while (begin != std::string_view::npos &&
           line.substr(begin, 48).find("PRIVATE KEY") == std::string_view::npos)
      begin = line.find(begins, begin + 1);
    kept += line.substr(0, begin);
    if (begin == std::string_view::npos) break;
    kept += replacement("private key", {}, Treatment::remove);
    in_private_key_ = true;
    line.remove_prefix(begin + begins.size());
  }
  return without_names(without_addresses(without_secrets(kept)));
}

std::string Redactor::without_secrets(std::string_view line) {
  const std::string_view plain = trim(line);
  const LineContext context = snmp_depth_ > 0 ? LineContext::snmp : LineContext::any;
  if (snmp_depth_ > 0 || (plain.starts_with("snmp") && plain.ends_with('{'))) {
    const auto opened = static_cast<std::size_t>(std::ranges::count(plain, '{'));
    const auto closed = static_cast<std::size_t>(std::ranges::count(plain, '}'));
    snmp_depth_ = snmp_depth_ + opened > closed ? snmp_depth_ + opened - closed : 0;
  }
  std::string out;
  std::size_t at = 0;
  for (const Secret& secret : find_secrets(line, context)) {
    out += line.substr(at, secret.begin - at);
    out += replacement(secret.kind, {}, Treatment::remove);
    at = secret.end;
  }
  return out += line.substr(at);
}

std::string Redactor::without_addresses(const std::string& line) {
  std::string out;
  for (std::size_t at = 0; at < line.size();) {
    std::size_t end = at;
    const bool fresh = at == 0 || !(is_alnum(line[at - 1]) || line[at - 1] == '_');
    while (fresh && end < line.size() && is_of_address(line[end])) ++end;
    if (end == at) {
      out += line[at++];
      continue;
    }
    std::string_view text = std::string_view(line).substr(at, end - at);
    if (end < line.size() && is_alnum(line[end])) text = {};  // part of a longer word
    // "10.0.0.1:179" and the full stop or colon that ends a phrase.
    std::string_view address = text;
    if (std::ranges::count(text, ':') == 1) address = text.substr(0, text.find(':'));
    while (!address.empty() &&
           (address.back() == '.' || (address.back() == ':' && !address.ends_with("::"))))
      address.remove_suffix(1);
    const auto reach = reach_of(std::string(address));
    const Treatment treatment = reach == Reach::open    ? settings_.public_addresses
                                : reach == Reach::local ? settings_.private_addresses
                                                        : Treatment::keep;
    const std::string original(address);
    if (treatment == Treatment::keep) {
      out += std::string_view(line).substr(at, end - at);
    } else {
      out += replacement(reach == Reach::open ? "public address" : "address", original, treatment);
      out += std::string_view(line).substr(at + address.size(), end - at - address.size());
    }
    at = end;
  }
  return out;
}

std::string Redactor::without_names(const std::string& line) {
  if (settings_.names.empty() || settings_.listed_names == Treatment::keep) return line;
  const std::string small = lower_case(line);
  std::string out;
  for (std::size_t at = 0; at < line.size();) {
    if (std::string_view(line).substr(at).starts_with(removed_mark)) {
      const std::size_t end = std::min(line.find('>', at), line.size() - 1) + 1;
      out += line.substr(at, end - at);
      at = end;
      continue;
    }
    const auto it = std::ranges::find_if(settings_.names, [&](const std::string& name) {
      return small.compare(at, name.size(), name) == 0;
    });
    if (it == settings_.names.end()) {
      out += line[at++];
    } else {
      out += replacement("name", *it, settings_.listed_names);
      at += it->size();
    }
  }
  return out;
}

std::string Redactor::replacement(std::string_view kind, const std::string& original,
                                  Treatment treatment) {
  ++counts_[std::string(kind)];
  if (treatment != Treatment::pseudonym) return mark(kind);
  const auto [it, fresh] = pseudonyms_.try_emplace(original);
  if (!fresh) return it->second;
  if (kind == "name") {
    it->second = fmt::format("anon-{}", ++names_);
  } else if (original.find(':') != std::string::npos) {
    it->second = fmt::format("2001:db8::{:x}:{:x}", addresses_ >> 16, addresses_ & 0xffff);
    ++addresses_;
  } else if (addresses_ < pseudonym_count) {
    it->second = ipv4_text(pseudonym_first + addresses_++);
  } else {
    it->second = mark(kind);  // no more addresses to give
  }
  return it->second;
}

}  // namespace weft::operate::snapshot
