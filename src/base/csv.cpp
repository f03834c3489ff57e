#include "base/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weft::inline base {
namespace {
constexpr std::size_t npos = std::string_view::npos;
constexpr std::size_t cell_count_max = 1024;
}  // namespace

CsvReader::CsvReader(std::string_view text, std::string file)
    : text_(text), file_(std::move(file)) {
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);  // UTF-8 byte order mark
}

bool CsvReader::refuse(Position at, std::string what, std::string hint) {
  failed_ = true;
  error_ = {Errc::parse, where(at), std::move(what), std::move(hint), {}};
  return false;
}

// Leaves text_ at a record; false at the end.
bool CsvReader::skip_blank() {
  while (!text_.empty()) {
    const std::string_view line = text_.substr(0, text_.find('\n'));
    const std::string_view content = trim(line);
    if (!content.empty() && content.front() != '#') return true;
    text_.remove_prefix(std::min(line.size() + 1, text_.size()));
    ++next_line_;
  }
  return false;
}

void CsvReader::start_cell(std::vector<std::string>& cells, std::size_t at,
                           std::size_t line_start) {
  cells.emplace_back();
  starts_.push_back({next_line_, static_cast<std::uint32_t>(at - line_start + 1)});
}

// One record into `cells`; quoted cells may hold separators, quotes ("") and line ends.
bool CsvReader::read_line(std::vector<std::string>& cells) {
  if (!skip_blank()) return false;
  line_ = next_line_;
  cells.clear();
  starts_.clear();
  start_cell(cells, 0, 0);
  enum class In : std::uint8_t { plain, quotes, closed } in = In::plain;
  std::size_t at = 0;
  std::size_t line_start = 0;
  for (; at < text_.size(); ++at) {
    const char c = text_[at];
    if (c == '\n') {
      ++next_line_;
      line_start = at + 1;
      if (in != In::quotes) break;
    }
    if (in == In::quotes) {
      if (c != '"') {
        cells.back() += c;
      } else if (at + 1 < text_.size() && text_[at + 1] == '"') {
        cells.back() += '"';
        ++at;
      } else {
        in = In::closed;
      }
    } else if (c == ',') {
      if (cells.size() == cell_count_max)
        return refuse(starts_.back(), fmt::format("more than {} cells", cell_count_max),
                      "check the separators of this line");
      start_cell(cells, at + 1, line_start);
      in = In::plain;
    } else if (in == In::plain && c == '"' && trim(cells.back()).empty()) {
      cells.back().clear();
      in = In::quotes;
    } else if (in == In::closed && !trim({&c, 1}).empty()) {
      return refuse(starts_.back(), "text after a closing quote",
                    "quote the whole cell, and write a quote inside it as \"\"");
    } else if (in == In::plain) {
      cells.back() += c;
    }
  }
  if (in == In::quotes)
    return refuse(starts_.back(), "unterminated quoted cell", "add the missing '\"'");
  if (find_not_text(text_.substr(0, at)) != npos)
    return refuse({line_, 1}, "the line contains bytes that are not text",
                  "save the file as UTF-8 without control characters");
  text_.remove_prefix(std::min(at + 1, text_.size()));
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
  std::vector<std::string> names_known = known;
  std::erase(names_known, "");
  const std::string hint = fmt::format("known columns: {}", fmt::join(names_known, ","));
  Errors errors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Where at = where(starts_[i]);
    const std::string_view name = trim(names[i]);
    const auto it = name.empty() ? known.end() : std::ranges::find(known, name);
    if (it == known.end()) {
      errors.push_back(
          {Errc::unknown,
           at,
           fmt::format("unknown column {}{}", quote(name), did_you_mean(name, names_known)),
           hint,
           {}});
      continue;
    }
    std::size_t& position = position_[static_cast<std::size_t>(it - known.begin())];
    if (position != npos)
      errors.push_back({Errc::parse,
                        at,
                        fmt::format("duplicate column {}", quote(name)),
                        "remove one of them",
                        {}});
    position = i;
  }
  for (std::size_t i = 0; i < required.size(); ++i)
    if (position_[i] == npos)
      errors.push_back({Errc::parse,
                        {file_, line_, 1},
                        fmt::format("column \"{}\" is missing", required[i]),
                        hint,
                        {}});
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  width_ = names.size();
  return {};
}

bool CsvReader::next() {
  if (failed_ || !read_line(cells_)) return false;
  if (cells_.size() == width_) return true;
  return refuse({line_, 1}, fmt::format("{} cells, but the header has {}", cells_.size(), width_),
                "give every column a cell; leave unused cells empty");
}

Token CsvReader::cell(std::size_t column) const {
  const std::size_t at = position_[column];
  if (at == npos) return {{}, where()};
  return {trim(cells_[at]), where(starts_[at])};
}

std::string csv_cell(std::string_view text) {
  const bool comment = text.starts_with('#');
  if (!comment && text.find_first_of(",\"\n\r") == npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace weft::base
