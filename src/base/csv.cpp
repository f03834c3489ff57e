#include "base/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weft::inline base {
namespace {
constexpr std::size_t npos = static_cast<std::size_t>(-1);
}

CsvReader::CsvReader(std::string_view text, std::string file)
    : text_(text), file_(std::move(file)) {
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);  // UTF-8 byte order mark
}

void CsvReader::set_error(Error error) {
  failed_ = true;
  error_ = std::move(error);
}

// One record into `cells`; quoted cells may hold separators, quotes ("") and line ends.
bool CsvReader::read_line(std::vector<std::string>& cells) {
  for (;;) {
    if (text_.empty()) return false;
    const std::string_view line = text_.substr(0, text_.find('\n'));
    const std::string_view content = trim(line);
    if (!content.empty() && content.front() != '#') break;
    text_.remove_prefix(std::min(line.size() + 1, text_.size()));
    ++next_line_;
  }
  line_ = next_line_;
  cells.assign(1, {});
  columns_.assign(1, 1);
  bool quoted = false;
  std::size_t at = 0;
  std::size_t line_start = 0;
  for (; at < text_.size(); ++at) {
    const char c = text_[at];
    if (c == '\n') {
      ++next_line_;
      if (!quoted) break;
      line_start = at + 1;
    }
    if (quoted) {
      if (c != '"') {
        cells.back() += c;
      } else if (at + 1 < text_.size() && text_[at + 1] == '"') {
        cells.back() += '"';
        ++at;
      } else {
        quoted = false;
      }
    } else if (c == '"' && trim(cells.back()).empty()) {
      cells.back().clear();
      quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
      columns_.push_back(static_cast<std::uint32_t>(at - line_start + 2));
    } else {
      cells.back() += c;
    }
  }
  text_.remove_prefix(std::min(at + 1, text_.size()));
  if (quoted) {
    set_error({Errc::parse, where(), "a quoted cell is never closed", "add the missing '\"'", {}});
    return false;
  }
  return true;
}

Status CsvReader::header(std::span<const std::string> required,
                         std::span<const std::string> optional) {
  std::vector<std::string> names;
  if (!read_line(names)) {
    if (failed_) return std::unexpected(error_);
    return fail(Errc::parse, {file_, 1, 1}, "the file is empty",
                fmt::format("start it with the header line \"{}\"", fmt::join(required, ",")));
  }
  std::vector<std::string> known(required.begin(), required.end());
  known.insert(known.end(), optional.begin(), optional.end());
  position_.assign(known.size(), npos);
  Errors errors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Where at{file_, line_, columns_[i]};
    const std::string_view name = trim(names[i]);
    const auto it = std::ranges::find(known, name);
    if (it == known.end()) {
      errors.push_back({Errc::unknown, at,
                        fmt::format("unknown column \"{}\"{}", name, did_you_mean(name, known)),
                        fmt::format("known columns: {}", fmt::join(known, ",")), {}});
      continue;
    }
    std::size_t& position = position_[static_cast<std::size_t>(it - known.begin())];
    if (position != npos)
      errors.push_back({Errc::parse, at, fmt::format("column \"{}\" stands twice", name), {}, {}});
    position = i;
  }
  for (std::size_t i = 0; i < required.size(); ++i)
    if (position_[i] == npos)
      errors.push_back({Errc::parse, {file_, line_, 1},
                        fmt::format("column \"{}\" is missing", required[i]),
                        fmt::format("known columns: {}", fmt::join(known, ",")), {}});
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  width_ = names.size();
  return {};
}

bool CsvReader::next() {
  if (failed_ || !read_line(cells_)) return false;
  if (cells_.size() == width_) return true;
  set_error({Errc::parse, where(),
             fmt::format("{} cells where the header has {}", cells_.size(), width_),
             "give every column a cell; leave unused ones empty", {}});
  return false;
}

Token CsvReader::cell(std::size_t column) const {
  const std::size_t at = position_[column];
  if (at == npos) return {{}, where()};
  return {trim(cells_[at]), {file_, line_, columns_[at]}};
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace weft::base
