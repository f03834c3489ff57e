#include "operate/snapshot/secrets.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "base/text.hpp"

namespace weft::operate::snapshot {
namespace {

struct Word {
  std::size_t begin = 0, end = 0;  // without quotes
  bool is_quoted = false;
  std::string plain;  // small letters and digits alone
};

struct Keyword {
  std::string_view ending;  // of Word::plain
  std::string_view kind;
};
// A word that ends so is followed by a secret: "encrypted-password", "client_secret".
constexpr std::array<Keyword, 22> keywords{{{"password", "password"},
                                            {"passwd", "password"},
                                            {"passphrase", "password"},
                                            {"pwd", "password"},
                                            {"passwordvalue", "password"},
                                            {"secret", "password"},
                                            {"token", "token"},
                                            {"apikey", "token"},
                                            {"accesskey", "token"},
                                            {"secretkey", "token"},
                                            {"authorization", "token"},
                                            {"keystring", "key"},
                                            {"authenticationkey", "key"},
                                            {"encryptionkey", "key"},
                                            {"authkey", "key"},
                                            {"messagedigestkey", "key"},
                                            {"md5key", "key"},
                                            {"presharedkey", "key"},
                                            {"psk", "key"},
                                            {"privatekey", "key"},
                                            {"rocommunity", "snmp"},
                                            {"rwcommunity", "snmp"}}};

// How a secret is written, said between the keyword and the secret.
constexpr std::array<std::string_view, 43> manners{
    "1",      "2",         "3",      "0",      "4",         "5",       "6",         "7",
    "8",      "8a",        "9",      "10",     "md5",       "sha",     "sha1",      "sha224",
    "sha256", "sha384",    "sha512", "scrypt", "hmac",      "hmacmd5", "hmacsha1",  "hmacsha256",
    "aes",    "aes128",    "aes192", "aes256", "des",       "3des",    "128",       "192",
    "256",    "encrypted", "plain",  "clear",  "cleartext", "text",    "asciitext", "hexadecimal",
    "bearer", "basic",     "type7"};

// What may stand between the host that gets traps and the community.
constexpr std::array<std::string_view, 15> trap_words{
    "traps", "trap", "informs", "inform", "version", "1",    "2c",     "3",
    "v1",    "v2c",  "v3",      "auth",   "noauth",  "priv", "udpport"};

constexpr std::array<std::string_view, 12> token_beginnings{
    "ghp_",  "gho_",  "ghs_", "github_pat_", "glpat-", "xoxb-",
    "xoxp-", "xoxa-", "AKIA", "ASIA",        "AIza",   "hvs."};

constexpr unsigned depth_max = 3;

bool is_separator(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '=' || c == ',' || c == ';' || c == '{' ||
         c == '}' || c == '[' || c == ']' || c == '(' || c == ')';
}

std::string plain_of(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (is_digit(c) || (lower_case(c) >= 'a' && lower_case(c) <= 'z')) out += lower_case(c);
  return out;
}

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

std::string_view kind_of(std::string_view plain) {
  for (const Keyword& keyword : keywords)
    if (plain.ends_with(keyword.ending)) return keyword.kind;
  return {};
}

// The closing quote, or npos; what is escaped does not count.
std::size_t closing(std::string_view line, std::size_t open) {
  for (std::size_t i = open + 1; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == line[open]) {
      return i;
    }
  }
  return std::string_view::npos;
}

class Words {
 public:
  explicit Words(std::string_view line) : line_(line) {
    for (std::size_t at = 0; at < line.size();) {
      if (is_separator(line[at]) || (line[at] == ':' && !in_mark(at))) {
        ++at;
      } else if (const std::size_t end = quoted_end(at); end != std::string_view::npos) {
        add(at + 1, end, true);
        at = end + 1;
      } else {
        at = add_bare(at);
      }
    }
  }
  std::vector<Word> take() { return std::move(words_); }

 private:
  bool in_mark(std::size_t at) const { return line_.substr(at).starts_with(removed_mark); }
  std::size_t quoted_end(std::size_t at) const {
    return line_[at] == '"' || line_[at] == '\'' ? closing(line_, at) : std::string_view::npos;
  }
  void add(std::size_t begin, std::size_t end, bool quoted) {
    const std::string_view text = line_.substr(begin, end - begin);
    // What holds a mark is nobody's keyword.
    const bool is_fresh = text.find(removed_mark) == std::string_view::npos;
    words_.push_back({begin, end, quoted, is_fresh ? plain_of(text) : std::string()});
  }
  // Up to a separator; "password:x" is two words, "10.0.0.1:179" one. A mark is one, blanks and
  // all.
  std::size_t add_bare(std::size_t begin) {
    std::size_t end = begin;
    if (in_mark(begin)) {
      end = std::min(line_.find('>', begin), line_.size() - 1) + 1;
      add(begin, end, false);
      return end;
    }
    while (end < line_.size() && !is_separator(line_[end]) && line_[end] != '"' && !in_mark(end)) {
      if (line_[end] == ':' && end > begin &&
          !kind_of(plain_of(line_.substr(begin, end - begin))).empty())
        break;
      ++end;
    }
    end = std::max(end, begin + 1);
    add(begin, end, false);
    return end;
  }

  std::string_view line_;
  std::vector<Word> words_;
};

// One line under examination.
class Search {
 public:
  Search(std::string_view line, LineContext context, unsigned depth = 0)
      : line_(line), words_(Words(line).take()), depth_(depth) {
    is_snmp_ = context == LineContext::snmp;
    for (const Word& word : words_) {
      is_snmp_ = is_snmp_ || word.plain.starts_with("snmp") || word.plain == "com2sec" ||
                 word.plain == "createuser";
      is_server_ = is_server_ || word.plain.starts_with("tacacs") ||
                   word.plain.starts_with("radius") || word.plain.starts_with("ldap") ||
                   word.plain.starts_with("ntp") || word.plain == "isakmp";
    }
  }

  std::vector<Secret> find() {
    for (std::size_t i = 0; i < words_.size(); ++i) by_keyword(i);
    for (const Word& word : words_)
      if (const std::string_view kind = kind_by_look(text(word)); !kind.empty()) note(word, kind);
    if (line_.find("SECRET-DATA") != std::string_view::npos)
      for (const Word& word : words_)
        if (word.is_quoted) note(word, "password");
    in_urls();
    for (const Word& word : words_)
      if (word.is_quoted) in_quotes(word);
    return apart();
  }

 private:
  std::string_view text(const Word& word) const {
    return line_.substr(word.begin, word.end - word.begin);
  }
  void note(const Word& word, std::string_view kind) {
    if (word.begin < word.end && !text(word).starts_with(removed_mark))
      out_.push_back({word.begin, word.end, kind});
  }
  bool is_number(std::size_t i) const {
    return words_[i].plain.size() <= 5 && !words_[i].plain.empty() &&
           std::ranges::all_of(words_[i].plain, is_digit);
  }

  // The secret behind word i: the first that is not about how it is written.
  void take_behind(std::size_t i, std::string_view kind) {
    std::size_t at = i + 1;
    while (at + 1 < words_.size() && !words_[at].is_quoted &&
           (is_one_of(words_[at].plain, manners) || (kind == "key" && is_number(at))))
      ++at;
    if (at < words_.size()) note(words_[at], kind);
  }

  void by_keyword(std::size_t i) {
    const std::string& plain = words_[i].plain;
    if (const std::string_view kind = kind_of(plain); !kind.empty()) take_behind(i, kind);
    const bool typed = i + 2 < words_.size() && words_[i + 1].plain.size() == 1 && is_number(i + 1);
    if (plain == "key" && (is_server_ || typed)) take_behind(i, "key");
    if (is_snmp_) by_snmp(i);
  }

  void by_snmp(std::size_t i) {
    const std::string& plain = words_[i].plain;
    if (plain == "community" || plain == "auth" || plain == "priv" || plain == "user" ||
        plain == "usmuser" || plain == "trapcommunity")
      take_behind(i, "snmp");
    if (plain == "com2sec" && i + 3 < words_.size()) note(words_[i + 3], "snmp");
    if (plain == "createuser")
      for (std::size_t k = i + 1; k < words_.size(); ++k)
        if (!is_one_of(words_[k].plain, manners)) note(words_[k], "snmp");
    if (plain == "host") {
      std::size_t at = i + 2;  // behind the address
      while (at < words_.size() && is_one_of(words_[at].plain, trap_words)) ++at;
      if (at < words_.size() && words_[at].plain != "vrf" && words_[at].plain != "usevrf")
        note(words_[at], "snmp");
    }
  }

  // "$6$salt$...", "$9$...": a short name between two "$", and more behind it.
  static bool holds_hash(std::string_view text) {
    constexpr std::size_t name_bytes_max = 10;
    std::size_t first = text.find('$');
    for (; first != std::string_view::npos; first = text.find('$', first + 1)) {
      const std::size_t second = text.find('$', first + 1);
      if (second == std::string_view::npos) return false;
      if (second > first + 1 && second - first <= name_bytes_max + 1 && second + 1 < text.size())
        return true;
    }
    return false;
  }

  // Hashes and tokens that can be told without their surroundings.
  static std::string_view kind_by_look(std::string_view text) {
    constexpr std::size_t token_bytes_least = 16;
    if (holds_hash(text)) return "hash";
    if (text.size() < token_bytes_least) return {};
    if (text.starts_with("eyJ") && text.find('.') != std::string_view::npos) return "token";
    for (const std::string_view beginning : token_beginnings)
      if (text.starts_with(beginning)) return "token";
    return {};
  }

  // A configuration or command as one text of JSON.
  void in_quotes(const Word& word) {
    if (depth_ >= depth_max || text(word).find(' ') == std::string_view::npos) return;
    const LineContext context = is_snmp_ ? LineContext::snmp : LineContext::any;
    for (const Secret& secret : Search(text(word), context, depth_ + 1).find())
      out_.push_back({word.begin + secret.begin, word.begin + secret.end, secret.kind});
  }

  // "https://user:password@host".
  void in_urls() {
    for (std::size_t at = line_.find("://"); at != std::string_view::npos;
         at = line_.find("://", at + 3)) {
      const std::size_t begin = at + 3;
      const std::size_t end = std::min(line_.find_first_of(" \t/\"'", begin), line_.size());
      const std::size_t host = line_.substr(0, end).rfind('@');
      const std::size_t colon = line_.find(':', begin);
      if (host == std::string_view::npos || host < begin || colon >= host) continue;
      note({colon + 1, host, false, {}}, "password");
    }
  }

  std::vector<Secret> apart() {
    std::ranges::sort(out_, [](const Secret& a, const Secret& b) {
      return std::pair(a.begin, b.end) < std::pair(b.begin, a.end);
    });
    std::vector<Secret> apart;
    for (const Secret& secret : out_) {
      if (apart.empty() || secret.begin >= apart.back().end) {
        apart.push_back(secret);
      } else {
        apart.back().end = std::max(apart.back().end, secret.end);
      }
    }
    return apart;
  }

  std::string_view line_;
  std::vector<Word> words_;
  unsigned depth_;  // of quotes within quotes
  bool is_snmp_ = false, is_server_ = false;
  std::vector<Secret> out_;
};

}  // namespace

std::vector<Secret> find_secrets(std::string_view line, LineContext context) {
  return Search(line, context).find();
}

}  // namespace weft::operate::snapshot
