#include "adapt/gnmi/path.hpp"

#include <fmt/format.h>

namespace weft::adapt::gnmi {
namespace {

std::unexpected<Error> refuse(const Token& token, std::string what) {
  return fail(Errc::parse, token.where, fmt::format("{} in {}", what, quote(token.text)),
              "write e.g. /interfaces/interface[name=*]/state");
}

// Where a piece ends: the first `mark` that stands outside of brackets.
std::size_t end_of_piece(std::string_view text, char mark) {
  bool inside = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && inside)
      ++at;
    else if (text[at] == '[')
      inside = true;
    else if (text[at] == ']')
      inside = false;
    else if (text[at] == mark && !inside)
      return at;
  }
  return text.size();
}

// Takes "name=value]" from the front of `rest`; npos where it does not end.
std::size_t take_key(std::string_view rest, std::pair<std::string, std::string>& key) {
  const std::size_t equals = rest.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::string_view::npos;
  key.first = rest.substr(0, equals);
  bool is_escaped = false;
  for (std::size_t at = equals + 1; at < rest.size(); ++at) {
    const char c = rest[at];
    if (c == ']' && !is_escaped) return at + 1;
    is_escaped = c == '\\' && !is_escaped;
    if (!is_escaped) key.second += c;
  }
  return std::string_view::npos;
}

}  // namespace

Result<PathElement> parse_path_element(const Token& token) {
  PathElement out;
  const std::size_t open = token.text.find('[');
  out.name = token.text.substr(0, open);
  if (out.name.empty()) return refuse(token, "an element has no name");
  std::string_view rest =
      open == std::string_view::npos ? std::string_view{} : token.text.substr(open);
  while (!rest.empty()) {
    if (rest.front() != '[') return refuse(token, "unexpected text after a key");
    auto& key = out.keys.emplace_back();
    const std::size_t end = take_key(rest.substr(1), key);
    if (end == std::string_view::npos)
      return refuse(token, "a key is not of the form [name=value]");
    rest.remove_prefix(end + 1);
  }
  return out;
}

Result<TreePath> parse_path(const Token& token) {
  if (token.text.size() > path_bytes_max) return refuse(token, "too many bytes");
  TreePath out;
  std::string_view rest = trim(token.text);
  const std::size_t colon = rest.find(":/");
  if (colon != std::string_view::npos && rest.substr(0, colon).find_first_of("/[") == rest.npos) {
    out.origin = rest.substr(0, colon);
    rest.remove_prefix(colon + 1);
  }
  if (rest.starts_with('/')) rest.remove_prefix(1);
  while (!rest.empty()) {
    const std::size_t end = end_of_piece(rest, '/');
    WEFT_TRY(PathElement element, parse_path_element({rest.substr(0, end), token.where}));
    if (out.elements.size() == path_elements_max) return refuse(token, "too many elements");
    out.elements.push_back(std::move(element));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (out.elements.empty()) return refuse(token, "no elements");
  return out;
}

std::string_view without_module(std::string_view name) {
  const std::size_t colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

}  // namespace weft::adapt::gnmi
