#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/text.hpp"
#include "workload/trace/goal.hpp"

namespace weft::workload {
namespace {

constexpr std::string_view grammar_hint = "see the GOAL grammar in the documentation";

struct GoalToken {
  enum class Kind : std::uint8_t { word, number, size, minus_one, symbol, end, bad };
  Kind kind = Kind::end;
  std::string_view text;  // bad: what is wrong with it
  std::uint64_t at = 0;
  std::uint64_t value = 0;  // number, size
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word_part(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  GoalToken next() {
    if (const char* broken = skip_blanks()) return bad(broken);
    if (at_ == text_.size()) return {.at = at_};
    const std::size_t start = at_;
    const char c = text_[at_];
    if (is_letter(c)) {
      while (at_ < text_.size() && is_word_part(text_[at_])) ++at_;
      return make(GoalToken::Kind::word, start);
    }
    if (is_digit(c)) return number();
    if (text_.substr(at_).starts_with("-1") &&
        (at_ + 2 == text_.size() || !is_word_part(text_[at_ + 2]))) {
      at_ += 2;
      return make(GoalToken::Kind::minus_one, start);
    }
    if (c != '{' && c != '}' && c != ':') return bad("unexpected character");
    ++at_;
    return make(GoalToken::Kind::symbol, start);
  }

 private:
  GoalToken make(GoalToken::Kind kind, std::size_t start) const {
    return {kind, text_.substr(start, at_ - start), start};
  }
  GoalToken bad(const char* what) const { return {GoalToken::Kind::bad, what, at_}; }

  GoalToken number() {
    const std::size_t start = at_;
    std::uint64_t value = 0;
    const char* const end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc{}) return bad("number longer than 64 bits");
    at_ = static_cast<std::size_t>(stop - text_.data());
    const bool size = at_ < text_.size() && text_[at_] == 'b';
    if (size) ++at_;
    if (at_ < text_.size() && is_word_part(text_[at_]))
      return bad("letters or digits after a number");
    GoalToken token = make(size ? GoalToken::Kind::size : GoalToken::Kind::number, start);
    token.value = value;
    return token;
  }

  // Blanks and comments; what is wrong with them, or nullptr.
  const char* skip_blanks() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      if (std::string_view(" \t\r\n\f\v").contains(rest[0])) {
        ++at_;
      } else if (rest.starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (rest.starts_with("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return "unterminated comment";
        at_ = end + 2;
      } else {
        break;
      }
    }
    return nullptr;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class TextParser {
 public:
  TextParser(std::string_view text, const std::string& file)
      : text_(text), file_(file), lexer_(text) {}

  Result<GoalSchedule> parse() {
    advance();
    if (parse_file() && errors_.empty()) {
      std::ranges::sort(schedule_.ranks, {}, &GoalRank::rank);
      return std::move(schedule_);
    }
    std::ranges::stable_sort(
        errors_, {}, [](const Error& e) { return std::pair(e.where.line, e.where.column); });
    return std::unexpected(combine(std::move(errors_)));
  }

 private:
  using Kind = GoalToken::Kind;

  void advance() {
    token_ = next_ ? *next_ : lexer_.next();
    next_.reset();
  }
  const GoalToken& peek() {
    if (!next_) next_ = lexer_.next();
    return *next_;
  }
  bool is(std::string_view text) const { return token_.kind != Kind::bad && token_.text == text; }

  void report(Errc code, std::uint64_t at, std::string what, std::string_view hint) {
    if (errors_.size() < goal_faults_max)
      errors_.push_back(
          {code, goal_where(text_, file_, at), std::move(what), std::string(hint), {}});
  }

  // The grammar is broken here; always false.
  bool syntax(std::string_view wanted) {
    std::string what(token_.text);
    if (token_.kind == Kind::end)
      what = fmt::format("expected {}, but the file ends", wanted);
    else if (token_.kind != Kind::bad)
      what = fmt::format("expected {1}, found {0}", quote(token_.text), wanted);
    report(Errc::parse, token_.at, std::move(what), grammar_hint);
    return false;
  }

  bool expect(std::string_view text) {
    if (!is(text)) return syntax(fmt::format("\"{}\"", text));
    advance();
    return true;
  }

  bool number(std::uint64_t most, std::string_view what, std::uint64_t& out) {
    if (token_.kind != Kind::number) return syntax(what);
    if (token_.value > most)
      report(Errc::value, token_.at, fmt::format("{} is {}", what, token_.value),
             fmt::format("at most {}", most));
    out = std::min(token_.value, most);
    advance();
    return true;
  }

  bool parse_file() {
    std::uint64_t count = 0;
    const std::uint64_t at = token_.at;
    if (!expect("num_ranks") || !number(goal_ranks_max, "the number of ranks", count)) return false;
    if (count == 0) report(Errc::value, at, "no ranks", "num_ranks must be at least 1");
    schedule_.rank_count = static_cast<std::uint32_t>(count);
    seen_.assign(count, 0);
    while (token_.kind != Kind::end)
      if (!parse_rank()) return false;
    return true;
  }

  bool parse_rank() {
    if (!expect("rank")) return false;
    const std::uint64_t at = token_.at;
    std::uint64_t rank = 0;
    if (!number(goal_any - 1, "the number of a rank", rank) || !expect("{")) return false;
    if (rank >= schedule_.rank_count)
      report(Errc::value, at, fmt::format("rank {} of {}", rank, schedule_.rank_count),
             "ranks are numbered from 0 to num_ranks - 1");
    else if (seen_[rank]++ != 0)
      report(Errc::value, at, fmt::format("duplicate rank {}", rank), "merge the two");
    schedule_.ranks.push_back({.rank = static_cast<std::uint32_t>(rank)});
    labels_.clear();
    while (!is("}"))
      if (!parse_line()) return false;
    advance();
    return true;
  }

  bool parse_line() {
    if (token_.kind != Kind::word) return syntax("an operation, a label or \"}\"");
    const GoalToken& behind = peek();
    if (behind.kind == Kind::word && (behind.text == "requires" || behind.text == "irequires"))
      return parse_dependency();
    if (behind.kind == Kind::symbol && behind.text == ":") {
      const auto index = static_cast<std::uint32_t>(schedule_.ranks.back().ops.size());
      if (!labels_.try_emplace(token_.text, index).second)
        report(Errc::value, token_.at, fmt::format("label {} is defined twice", quote(token_.text)),
               "labels must be unique within a rank");
      advance();
      advance();
    }
    return parse_operation();
  }

  bool parse_dependency() {
    GoalEdge edge;
    edge.after = label();
    edge.when = is("requires") ? GoalEdge::When::end : GoalEdge::When::start;
    advance();
    if (token_.kind != Kind::word) return syntax("a label");
    edge.before = label();
    if (edge.after != unknown && edge.before != unknown) {
      if (++edges_ > 4 * goal_operations_max) return syntax("at most 400 million dependencies");
      schedule_.ranks.back().edges.push_back(edge);
    }
    return true;
  }

  // The operation behind a label; reports a label that is not defined above.
  std::uint32_t label() {
    const auto found = labels_.find(token_.text);
    const bool known = found != labels_.end();
    if (!known)
      report(Errc::value, token_.at,
             fmt::format("label {} is used before its definition", quote(token_.text)),
             "define it above, in the same rank");
    advance();
    return known ? found->second : unknown;
  }

  bool parse_operation() {
    GoalOp op{.at = token_.at};
    if (is("calc")) {
      advance();
      if (!number(UINT64_MAX, "a number of nanoseconds", op.size)) return false;
    } else if (is("send") || is("recv")) {
      if (!parse_message(op)) return false;
    } else {
      return syntax("\"calc\", \"send\" or \"recv\"");
    }
    if (!parse_options(op)) return false;
    if (++operations_ > goal_operations_max) return syntax("at most 100 million operations");
    schedule_.ranks.back().ops.push_back(op);
    return true;
  }

  bool parse_message(GoalOp& op) {
    const bool sends = is("send");
    op.kind = sends ? GoalOp::Kind::send : GoalOp::Kind::recv;
    advance();
    if (token_.kind != Kind::size) return syntax("a size in bytes such as 8b");
    op.size = token_.value;
    advance();
    if (!expect(sends ? "to" : "from")) return false;
    if (!sends && token_.kind == Kind::minus_one) {
      op.peer = goal_any;
      advance();
      return true;
    }
    const std::uint64_t at = token_.at;
    std::uint64_t peer = 0;
    if (!number(goal_any - 1, "the number of a rank", peer)) return false;
    if (peer >= schedule_.rank_count)
      report(Errc::value, at, fmt::format("rank {} of {}", peer, schedule_.rank_count),
             "ranks are numbered from 0 to num_ranks - 1");
    op.peer = static_cast<std::uint32_t>(peer);
    return true;
  }

  // [tag] [cpu] [nic], in this order; calc has cpu alone.
  bool parse_options(GoalOp& op) {
    std::uint64_t value = 0;
    const bool message = op.kind != GoalOp::Kind::calc;
    if (message && is("tag")) {
      advance();
      if (op.kind == GoalOp::Kind::recv && token_.kind == Kind::minus_one) {
        op.tag = goal_any;
        advance();
      } else {
        if (!number(goal_any - 1, "a tag", value)) return false;
        op.tag = static_cast<std::uint32_t>(value);
      }
    }
    // A label may be spelt like an option.
    if (is("cpu") && peek().kind == Kind::number) {
      advance();
      if (!number(goal_cpu_max, "the number of a cpu", value)) return false;
      op.cpu = static_cast<std::uint8_t>(value);
    }
    if (message && is("nic") && peek().kind == Kind::number) {
      advance();
      if (!number(UINT8_MAX, "the number of a nic", value)) return false;
      op.nic = static_cast<std::uint8_t>(value);
    }
    for (const std::string_view option : {"tag", "cpu", "nic"})
      if (is(option) && peek().kind == Kind::number)
        return syntax("the next line (options: tag, cpu, nic, in this order, each once)");
    return true;
  }

  static constexpr std::uint32_t unknown = UINT32_MAX;

  std::string_view text_;
  const std::string& file_;
  Lexer lexer_;
  GoalToken token_;
  std::optional<GoalToken> next_;
  GoalSchedule schedule_;
  Errors errors_;
  std::vector<std::uint8_t> seen_;                              // by rank
  std::unordered_map<std::string_view, std::uint32_t> labels_;  // of the rank at hand; looked up
  std::uint64_t operations_ = 0, edges_ = 0;
};

}  // namespace

Where goal_where(std::string_view text, const std::string& file, std::uint64_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line_end = before.rfind('\n');
  const std::size_t column = line_end == std::string_view::npos ? at : at - line_end - 1;
  return {file, static_cast<std::uint32_t>(std::ranges::count(before, '\n') + 1),
          static_cast<std::uint32_t>(column + 1)};
}

Result<GoalSchedule> parse_goal_text(std::string_view text, const std::string& file) {
  return TextParser(text, file).parse();
}

}  // namespace weft::workload
