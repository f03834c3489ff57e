#include "page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace weft::docs {
namespace {

constexpr std::string_view fence = "```", mark = "<!-- docs: ", mark_end = " -->";

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

class PageParser {
 public:
  PageParser(std::string path, std::string_view text) : lines_(lines_of(text)) {
    page_.path = std::move(path);
  }

  Page parse() {
    while (at_ < lines_.size()) {
      const std::string_view line = trim(lines_[at_]);
      if (line.starts_with(mark)) {
        end_prose();
        comment(line);
        ++at_;
      } else if (line.starts_with(fence)) {
        end_prose();
        block(line.substr(fence.size()));
      } else {
        if (!line.empty() && pending_) error(at_, "a comment \"docs:\" stands before a block");
        if (!line.empty()) pending_.reset();
        prose(line);
        ++at_;
      }
    }
    end_prose();
    if (pending_) error(at_ - 1, "a comment \"docs:\" stands before a block");
    for (std::size_t i = 0; i < page_.blocks.size(); ++i) judge(i);
    return std::move(page_);
  }

 private:
  void error(std::size_t line, std::string_view what) {
    page_.errors.push_back(fmt::format("{}:{}: {}", page_.path, line + 1, what));
  }

  void comment(std::string_view line) {
    if (!pending_) pending_.emplace();
    std::string_view text = line.substr(mark.size());
    const std::size_t end = text.find(mark_end);
    if (end == std::string_view::npos || end + mark_end.size() != text.size())
      return error(at_, "a comment \"docs:\" is one line, with \" -->\" at its end");
    text = trim(text.substr(0, end));
    Block& block = *pending_;
    if (take(text, "setup ")) {
      block.setup.emplace_back(text);
    } else if (take(text, "status ")) {
      const auto status = parse_count({text, {}});
      if (!status || *status < 0 || *status > 255) return error(at_, "not an exit status");
      block.status = static_cast<int>(*status);
    } else {
      reason(text, block);
    }
  }

  void reason(std::string_view text, Block& block) {
    const auto set = [&](std::string_view prefix, std::optional<std::string>& out) {
      if (!take(text, prefix)) return false;
      if (trim(text).empty()) error(at_, "a reason is missing");
      out = std::string(trim(text));
      return true;
    };
    if (!set("file ", block.file) && !set("not run:", block.not_run) &&
        !set("not compared:", block.not_compared) && !set("long:", block.is_long) &&
        !set("same as ", block.same_as))
      error(at_, fmt::format("\"{}\" is unknown; tests/docs/page.hpp lists what there is", text));
  }

  void block(std::string_view language) {
    Block block = pending_ ? *std::move(pending_) : Block{};
    pending_.reset();
    block.line = at_ + 1;
    block.language = trim(language);
    for (++at_; at_ < lines_.size() && trim(lines_[at_]) != fence; ++at_)
      block.lines.push_back(lines_[at_]);
    if (at_ == lines_.size()) error(block.line - 1, "the block does not end");
    ++at_;
    page_.blocks.push_back(std::move(block));
  }

  // A span of code may go on in the next line of its paragraph.
  void prose(std::string_view line) {
    if (line.empty()) return end_prose();
    for (const char c : line) {
      if (c == '`') {
        if (open_) page_.spans.push_back(*std::move(open_));
        if (open_)
          open_.reset();
        else
          open_ = Span{at_ + 1, {}};
      } else if (open_) {
        open_->text += c;
      }
    }
    if (open_) open_->text += ' ';
  }
  void end_prose() { open_.reset(); }

  void judge(std::size_t i) {
    Block& block = page_.blocks[i];
    const std::size_t line = block.line - 1;
    if (block.language == "console" || block.language == "bash")
      return error(line, "commands stand in a ```sh block, what they print in a block behind it");
    if (block.is_output() && std::ranges::all_of(block.lines, [](const std::string& l) {
          return trim(l).empty() || trim(l) == "...";
        }))
      return error(line, "an output of dots alone says nothing");
    if (block.is_output() && !block.same_as && !block.file) {
      const bool has_commands = i > 0 && page_.blocks[i - 1].is_commands();
      if (!has_commands)
        return error(line,
                     "which command prints this? Put it before in a ```sh block, or name the "
                     "block's language (text, csv)");
      if (page_.blocks[i - 1].not_run)
        return error(line, "output of commands that are not run is not checked; call it text");
      page_.blocks[i - 1].has_output = true;
    }
    if (!block.is_commands()) return;
    const bool is_followed = i + 1 < page_.blocks.size() && page_.blocks[i + 1].is_output() &&
                             !page_.blocks[i + 1].same_as && !page_.blocks[i + 1].file;
    if (!block.not_run && !block.not_compared && !is_followed)
      error(line, "no output follows: show it, or say why not: <!-- docs: not compared: ... -->");
  }

  Lines lines_;
  Page page_;
  std::size_t at_ = 0;
  std::optional<Block> pending_;  // comments for the next block
  std::optional<Span> open_;
};

// ---- Shell text ----

class WordReader {
 public:
  explicit WordReader(std::string_view text) : text_(text) {}

  std::vector<Lines> read() {
    while (at_ < text_.size()) step();
    end_command();
    return std::move(out_);
  }

 private:
  void step() {
    const char c = text_[at_++];
    if (c == '\\' && at_ < text_.size()) {
      if (text_[at_] != '\n') add(text_[at_]);
      ++at_;  // a line that goes on
    } else if (c == '"' || c == '\'') {
      is_word_ = true;
      while (at_ < text_.size() && text_[at_] != c) word_ += text_[at_++];
      ++at_;
    } else if (c == '#' && !is_word_) {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == ' ' || c == '\t') {
      end_word();
    } else if (std::string_view("\n|&;()").find(c) != std::string_view::npos) {
      end_command();
    } else if (c == '<' || c == '>') {
      if (word_ == "2" || word_ == "1") word_.clear(), is_word_ = false;  // a descriptor
      end_word();
      while (at_ < text_.size() && (text_[at_] == '>' || text_[at_] == '&')) ++at_;
      skips_word_ = true;
    } else {
      add(c);
    }
  }
  void add(char c) {
    word_ += c;
    is_word_ = true;
  }
  void end_word() {
    if (is_word_ && !skips_word_) words_.push_back(word_);
    if (is_word_) skips_word_ = false;
    word_.clear();
    is_word_ = false;
  }
  void end_command() {
    end_word();
    skips_word_ = false;
    if (!words_.empty()) out_.push_back(std::move(words_));
    words_.clear();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Lines> out_;
  Lines words_;
  std::string word_;
  bool is_word_ = false, skips_word_ = false;
};

}  // namespace

Lines lines_of(std::string_view text) {
  Lines out;
  for (const std::string_view line : split(text, '\n')) out.emplace_back(line);
  if (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

Page parse_page(std::string path, std::string_view text) {
  return PageParser(std::move(path), text).parse();
}

std::string with_block(std::string_view text, const Block& block, const Lines& lines) {
  Lines all = lines_of(text);
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(block.line);
  const auto next = all.erase(from, from + static_cast<std::ptrdiff_t>(block.lines.size()));
  all.insert(next, lines.begin(), lines.end());
  std::string out;
  for (const std::string& line : all) out += line + "\n";
  return out;
}

std::vector<Lines> commands_in(std::string_view text) { return WordReader(text).read(); }

}  // namespace weft::docs
