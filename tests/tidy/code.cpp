#include "code.hpp"

#include <algorithm>
#include <cctype>

#include "base/text.hpp"

namespace weft::tidy {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

namespace {

// Walks a text and blanks what is no code.
class Blanker {
 public:
  explicit Blanker(std::string_view text) : text_(text), out_(text) {}

  std::string run() {
    while (at_ < text_.size()) step();
    return std::move(out_);
  }
  std::vector<std::string_view> literals;  // of the text walked so far

 private:
  bool here(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void blank_to(std::size_t end) {
    for (; at_ < std::min(end, text_.size()); ++at_)
      if (text_[at_] != '\n') out_[at_] = ' ';
  }
  std::size_t end_of(std::string_view mark, std::size_t from) const {
    const std::size_t found = text_.find(mark, from);
    return found == std::string_view::npos ? text_.size() : found + mark.size();
  }
  // Keeps the quotes, so that a literal stays visible as one.
  void literal(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n')
      end += text_[end] == '\\' ? 2 : 1;
    ++at_;
    if (quote == '"') literals.push_back(text_.substr(at_, end - at_));
    blank_to(end);
    if (at_ < text_.size()) ++at_;
  }
  void raw_literal() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return blank_to(text_.size());
    const std::string close = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
    const std::size_t end = end_of(close, open);
    literals.push_back(text_.substr(open + 1, end - open - 1 - close.size()));
    blank_to(end);
  }
  void step() {
    const bool in_word = at_ > 0 && is_word(text_[at_ - 1]);
    if (here("//")) {
      blank_to(std::min(text_.find('\n', at_), text_.size()));
    } else if (here("/*")) {
      blank_to(end_of("*/", at_ + 2));
    } else if (here("#include")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (here("R\"") && !in_word) {
      raw_literal();
    } else if (here("\"")) {
      literal('"');
    } else if (here("'") && !in_word) {  // inside a word it separates digits
      literal('\'');
    } else {
      at_ = std::min(text_.find_first_of("/#R\"'", at_ + 1), text_.size());
    }
  }

  std::string_view text_;
  std::string out_;
  std::size_t at_ = 0;
};

bool starts_with_word(std::string_view text, std::string_view word) {
  return text.starts_with(word) && (text.size() == word.size() || !is_word(text[word.size()]));
}

bool opens_scope(std::string_view head) {
  for (const char* word : {"namespace", "class", "struct", "union", "enum", "extern", "template"})
    if (starts_with_word(head, word) && head.find(')') == std::string_view::npos) return true;
  return head.empty();
}

// "Type(args) : member_" before the brace that initialises the member.
bool initialises_member(std::string_view head) {
  const std::size_t colon = head.find(" : ");
  return colon != std::string_view::npos && head.find(')') < colon && !head.empty() &&
         (is_word(head.back()) || head.back() == '>');
}

std::size_t closing_brace(std::string_view code, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < code.size(); ++at) {
    if (code[at] == '{') ++depth;
    if (code[at] == '}' && --depth == 0) return at;
  }
  return code.size();
}

}  // namespace

std::string code_of(std::string_view text) { return Blanker(text).run(); }

std::vector<Literal> literals_in(std::string_view text) {
  Blanker walk(text);
  walk.run();
  std::vector<Literal> out;
  for (const std::string_view literal : walk.literals)
    out.push_back({literal, line_at(text, static_cast<std::size_t>(literal.data() - text.data()))});
  return out;
}

std::size_t line_at(std::string_view text, std::size_t offset) {
  return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, offset), '\n'));
}

std::vector<Function> functions_in(std::string_view code) {
  std::vector<Function> out;
  std::size_t head_start = 0;
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (code[at] == ';' || code[at] == '}') head_start = at + 1;
    if (code[at] == '\n' && trim(code.substr(head_start, at - head_start)).starts_with('#'))
      head_start = at + 1;
    if (code[at] != '{') continue;
    const std::string_view head = trim(code.substr(head_start, at - head_start));
    const std::size_t close = closing_brace(code, at);
    if (initialises_member(head)) {
      at = close;  // and the head goes on
    } else if (head.find(')') != std::string_view::npos && !opens_scope(head)) {
      const std::size_t first = line_at(code, at);
      out.push_back({first, line_at(code, close) - first + 1});
      at = close;
      head_start = close + 1;
    } else {
      head_start = at + 1;
    }
  }
  return out;
}

std::vector<std::size_t> places_of_word(std::string_view code, std::string_view word) {
  std::vector<std::size_t> out;
  for (std::size_t at = code.find(word); at != std::string_view::npos;
       at = code.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool starts = at == 0 || !is_word(code[at - 1]) || !is_word(word.front());
    const bool ends = end == code.size() || !is_word(code[end]) || !is_word(word.back());
    if (starts && ends) out.push_back(at);
  }
  return out;
}

std::vector<std::size_t> lines_with_word(std::string_view code, std::string_view word) {
  std::vector<std::size_t> out = places_of_word(code, word);
  for (std::size_t& place : out) place = line_at(code, place);
  return out;
}

std::vector<Include> includes_in(std::string_view code) {
  constexpr std::string_view start = "#include \"";
  std::vector<Include> out;
  std::size_t number = 0;
  for (const std::string_view line : split(code, '\n')) {
    ++number;
    if (!line.starts_with(start)) continue;
    const std::string_view rest = line.substr(start.size());
    out.push_back({std::string(rest.substr(0, rest.find('"'))), number});
  }
  return out;
}

}  // namespace weft::tidy
