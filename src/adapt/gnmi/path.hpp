// Paths into a data tree as people write them and as old targets send them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"

namespace weft::adapt::gnmi {

inline constexpr std::size_t path_elements_max = 64;
inline constexpr std::size_t path_bytes_max = 4096;

struct PathElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> keys;
};
struct TreePath {
  std::string origin;  // "": the target's default
  std::vector<PathElement> elements;
};

// "/interfaces/interface[name=eth0]/state" or "openconfig:/interfaces". In a key's value "\" makes
// the next character stand for itself; "*" is any. Fails: Errc::parse.
Result<TreePath> parse_path(const Token& token);
// "interface[name=eth0]". Fails: Errc::parse.
Result<PathElement> parse_path_element(const Token& token);

// The name without the module before it: "openconfig-interfaces:interface" is "interface".
std::string_view without_module(std::string_view name);

}  // namespace weft::adapt::gnmi
