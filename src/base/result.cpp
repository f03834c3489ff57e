#include "base/result.hpp"

#include <fmt/format.h>

#include "base/check.hpp"

namespace weft::inline base {

std::string Where::text() const {
  if (line == 0) return file;
  if (column == 0) return fmt::format("{}:{}", file, line);
  return fmt::format("{}:{}:{}", file, line, column);
}

std::string Error::text() const {
  std::string out = where.text();
  if (!out.empty()) out += ": ";
  out += what;
  if (!hint.empty()) out.append("; ").append(hint);
  for (const Error& other : more) out.append("\n").append(other.text());
  return out;
}

Error combine(Errors errors) {
  WEFT_CHECK(!errors.empty());
  Error first = std::move(errors.front());
  for (std::size_t i = 1; i < errors.size(); ++i) first.more.push_back(std::move(errors[i]));
  return first;
}

}  // namespace weft::base
