// The rules of the house. Each takes text and gives findings, so that tests can show it fail.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft::tidy {

struct File {
  std::string path;  // from the top of the tree: "src/base/text.cpp"
  std::string text;
};
using Files = std::vector<File>;

// "path:line: what".
using Findings = std::vector<std::string>;

struct Room {
  int level = 0;
  std::vector<std::string> links;
  std::vector<std::string> test_links = {};  // what tests alone include
};
using Rooms = std::map<std::string, Room, std::less<>>;  // by name: "engine/fluid"

// The weft_room(...) lines of src/*/CMakeLists.txt.
Rooms rooms_of(const Files& files);

// Rooms stand on the level that their first folder has in the house, link downwards or within
// their folder, and only app and cli link adapt.
Findings check_levels(const Rooms& rooms);
// Sources under src/ stand in a room's own folder and include only that room and those it links.
Findings check_includes(const Files& files, const Rooms& rooms);
// Every room has a README.md.
Findings check_readmes(const Files& files, const Rooms& rooms);
// Every header under src/ is included by a file other than its own source and test.
Findings check_used(const Files& files);

// One C++ file: lines of at most 100 columns, at most 1,000 of them, functions of at most 70.
Findings check_sizes(const File& file);
// One C++ file: calls and types that the style guide bans; heavy headers in headers; no include
// guard.
Findings check_banned(const File& file);
// One C++ file: a range-based for over an element of what a call returns, "f()[0].rows". Where f
// returns a value, g++ destroys it before the first round; clang keeps it, so that no sanitizer
// sees this. A heuristic: calls that return references are found too.
Findings check_ranges(const File& file);
// Any file: marks of unfinished work.
Findings check_finished(const File& file);
// README and docs: names of places that a user does not have.
Findings check_places(const File& file);

// Sources under src/: no JSON made by hand in format strings; base/json_text.hpp writes it. Those
// on the list still do, and must leave the list once they no longer do.
using Paths = std::set<std::string, std::less<>>;
Paths json_by_hand();
Findings check_json(const Files& files, const Paths& allowed);

bool is_cpp(std::string_view path);

}  // namespace weft::tidy
