#include "workload/parallel/layout.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string>

namespace weft::workload {
namespace {

constexpr std::size_t text_most = 1 << 16;  // unfolded

class Unfolder {
 public:
  explicit Unfolder(const Token& text) : text_(text) {}

  // "x*3(yz)*2" becomes "xxxyzyz".
  Result<std::string> run() {
    std::string out;
    while (at_ < text_.text.size()) {
      std::string piece;
      if (text_.text[at_] == '(') {
        const std::size_t end = text_.text.find(')', at_);
        if (end == std::string_view::npos) return wrong("a \"(\" without its \")\"");
        piece = text_.text.substr(at_ + 1, end - at_ - 1);
        if (piece.find('(') != std::string::npos) return wrong("parentheses within parentheses");
        at_ = end + 1;
      } else {
        piece = text_.text[at_++];
      }
      WEFT_TRY(const std::size_t times, repetitions());
      if (out.size() + piece.size() * times > text_most)
        return fail(Errc::infeasible, text_.where, "a layout of more than 65,536 letters");
      for (std::size_t i = 0; i < times; ++i) out += piece;
    }
    return out;
  }

 private:
  Result<std::size_t> repetitions() {
    if (at_ == text_.text.size() || text_.text[at_] != '*') return 1;
    std::size_t times = 0;
    const char* first = text_.text.data() + at_ + 1;
    const auto [end, error] = std::from_chars(first, text_.text.data() + text_.text.size(), times);
    if (error != std::errc{} || times == 0 || times > text_most)
      return wrong("a \"*\" without a number from 1 on");
    at_ += 1 + static_cast<std::size_t>(end - first);
    return times;
  }
  std::unexpected<Error> wrong(std::string_view what) const {
    return fail(Errc::parse, text_.where, fmt::format("layout {}: {}", quote(text_.text), what),
                "write e.g. \"Et|(tt|)*30mL\"");
  }

  const Token& text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<StageContents>> parse_layout(const Token& text) {
  WEFT_TRY(const std::string letters, Unfolder(text).run());
  std::vector<StageContents> stages(1);
  for (const char letter : letters) {
    StageContents& stage = stages.back();
    if (letter == '|')
      stages.emplace_back();
    else if (letter == 'E')
      stage.embedding = true;
    else if (letter == 't')
      ++stage.layers;
    else if (letter == 'm')
      ++stage.prediction;
    else if (letter == 'L')
      stage.head = true;
    else if (letter != ' ' && letter != ',')
      return fail(Errc::parse, text.where,
                  fmt::format("layout {}: unknown letter {}", quote(text.text),
                              quote(std::string_view(&letter, 1))),
                  "use E (embedding), t (layer), m (prediction layer), L (head), | (next stage)");
  }
  return stages;
}

}  // namespace weft::workload
