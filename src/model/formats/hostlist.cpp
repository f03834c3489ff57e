#include "model/formats/hostlist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace weft::model {
namespace {

constexpr std::size_t digits_max = 9;
constexpr std::size_t name_length_max = 255;
constexpr std::string_view digits = "0123456789";

std::optional<std::uint64_t> parse_number(std::string_view text) {
  if (text.empty() || text.size() > digits_max) return {};
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

// Reads one expression from left to right. Where names its beginning; columns are counted on.
class Expander {
 public:
  Expander(const Token& expression, std::size_t most)
      : text_(trim(expression.text)), where_(expression.where), most_(most) {}

  Result<std::vector<std::string>> expand() {
    for (std::size_t at = 0; at <= text_.size();) {
      const std::size_t end = end_of_item(at);
      WEFT_TRY_STATUS(expand_item(at, end));
      at = end + 1;
    }
    return std::move(names_);
  }

 private:
  Where at(std::size_t offset) const {
    Where where = where_;
    if (where.column != 0) where.column += static_cast<std::uint32_t>(offset);
    return where;
  }
  std::unexpected<Error> wrong(std::size_t offset, std::string_view what) const {
    return fail(Errc::parse, at(offset), fmt::format("host list: {}", what),
                "write names such as \"n7\", \"n[0-3,9]\" or \"r[0-1]n[00-15]\", with commas");
  }
  std::unexpected<Error> too_many(std::size_t offset) const {
    return fail(Errc::value, at(offset), fmt::format("host list: more than {} names", most_),
                "shorten the range");
  }

  // The comma that ends the item at `begin`, or the end of the text.
  std::size_t end_of_item(std::size_t begin) const {
    bool inside = false;
    for (std::size_t i = begin; i < text_.size(); ++i) {
      if (text_[i] == '[') inside = true;
      if (text_[i] == ']') inside = false;
      if (text_[i] == ',' && !inside) return i;
    }
    return text_.size();
  }

  Status expand_item(std::size_t begin, std::size_t end) {
    if (begin == end) return wrong(begin, "empty name");
    std::vector<std::string> stems{""};
    while (begin < end) {
      const std::size_t open = std::min(text_.find('[', begin), end);
      const std::string_view fixed = text_.substr(begin, open - begin);
      if (fixed.contains(']')) return wrong(begin, "\"]\" without \"[\"");
      if (stems.front().size() + fixed.size() > name_length_max)
        return wrong(begin, fmt::format("name longer than {} bytes", name_length_max));
      for (std::string& stem : stems) stem += fixed;
      if (open == end) break;
      const std::size_t close = text_.find(']', open);
      if (close == text_.npos || close > end) return wrong(open, "\"[\" without \"]\"");
      WEFT_TRY(const std::vector<std::string> numbers, expand_bracket(open + 1, close));
      if (numbers.size() * stems.size() > most_ - names_.size()) return too_many(open);
      std::vector<std::string> longer;
      longer.reserve(numbers.size() * stems.size());
      for (const std::string& stem : stems)
        for (const std::string& number : numbers) longer.push_back(stem + number);
      stems = std::move(longer);
      begin = close + 1;
    }
    if (stems.size() > most_ - names_.size()) return too_many(begin);
    names_.insert(names_.end(), stems.begin(), stems.end());
    return {};
  }

  // "0-3,9,12-14" as texts, padded.
  Result<std::vector<std::string>> expand_bracket(std::size_t begin, std::size_t end) const {
    std::vector<std::string> numbers;
    for (const std::string_view part : split(text_.substr(begin, end - begin), ',')) {
      const auto offset = static_cast<std::size_t>(part.data() - text_.data());
      const std::size_t dash = part.find('-');
      const std::string_view low = part.substr(0, dash);
      const auto first = parse_number(low);
      const auto last = dash == part.npos ? first : parse_number(part.substr(dash + 1));
      if (!first || !last || *first > *last)
        return wrong(offset, fmt::format("\"{}\" is not a range of numbers", part.substr(0, 40)));
      if (*last - *first >= most_ - std::min(most_, numbers.size())) return too_many(offset);
      for (std::uint64_t n = *first; n <= *last; ++n)
        numbers.push_back(fmt::format("{:0{}}", n, low.size()));
    }
    return numbers;
  }

  std::string_view text_;
  Where where_;
  std::size_t most_;
  std::vector<std::string> names_;
};

// A name as prefix and trailing number, e.g. "tux" and "07".
struct Numbered {
  std::string_view prefix, number;
};
Numbered take_apart(std::string_view name) {
  const std::size_t last_other = name.find_last_not_of(digits);
  const std::size_t cut = last_other == name.npos ? 0 : last_other + 1;
  if (name.size() - cut > digits_max) return {name, {}};
  return {name.substr(0, cut), name.substr(cut)};
}

// Consecutive numbers that a range can stand for: its width is that of the first one.
class Ranges {
 public:
  void add(std::string_view number) {
    const std::uint64_t value = parse_number(number).value_or(0);
    const bool follows = !first_.empty() && value == last_value_ + 1 &&
                         number == fmt::format("{:0{}}", value, first_.size());
    if (!follows) {
      close();
      first_ = number;
    }
    last_ = number;
    last_value_ = value;
    ++count_;
  }
  std::string text() {
    close();
    return count_ == 1 ? text_ : "[" + text_ + "]";
  }

 private:
  void close() {
    if (first_.empty()) return;
    if (!text_.empty()) text_ += ',';
    text_ += first_ == last_ ? first_ : first_ + "-" + last_;
  }
  std::string text_, first_, last_;
  std::uint64_t last_value_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

Result<std::vector<std::string>> expand_hostlist(const Token& expression, std::size_t most) {
  return Expander(expression, most).expand();
}

std::string compress_hostlist(std::span<const std::string> names) {
  std::vector<std::pair<std::string_view, Ranges>> groups;  // in order of first appearance
  std::map<std::string_view, std::size_t> group_of;
  std::vector<std::string_view> plain;
  for (const std::string& name : names) {
    const Numbered parts = take_apart(name);
    if (parts.number.empty()) {
      plain.push_back(name);
      continue;
    }
    const auto [it, is_new] = group_of.try_emplace(parts.prefix, groups.size());
    if (is_new) groups.push_back({parts.prefix, {}});
    groups[it->second].second.add(parts.number);
  }
  std::string out = fmt::format("{}", fmt::join(plain, ","));
  for (auto& [prefix, ranges] : groups) {
    if (!out.empty()) out += ',';
    out += prefix;
    out += ranges.text();
  }
  return out;
}

}  // namespace weft::model
