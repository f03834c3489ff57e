#include "rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "base/text.hpp"
#include "code.hpp"

namespace weft::tidy {
namespace {

constexpr std::size_t column_count_max = 100;
constexpr std::size_t line_count_max = 1000;
constexpr std::size_t function_line_count_max = 70;

// The levels of the house, by a room's first folder.
constexpr std::array<std::pair<std::string_view, int>, 16> house{{{"base", 0},
                                                                  {"os", 1},
                                                                  {"saddle", 1},
                                                                  {"model", 1},
                                                                  {"route", 2},
                                                                  {"transport", 2},
                                                                  {"workload", 2},
                                                                  {"port", 2},
                                                                  {"engine", 3},
                                                                  {"observe", 3},
                                                                  {"plan", 4},
                                                                  {"operate", 5},
                                                                  {"serve", 6},
                                                                  {"adapt", 6},
                                                                  {"app", 7},
                                                                  {"cli", 8}}};

struct Ban {
  std::string_view word;
  std::string_view instead;
  std::string_view allowed_under = "-";  // a path prefix
};
constexpr std::array<Ban, 26> bans{{
    {"rand(", "weft::Rng"},
    {"srand(", "weft::Rng"},
    {"random_device", "a seed from the scenario"},
    {"mt19937", "weft::Rng"},
    {"mt19937_64", "weft::Rng", "bench/clos/"},
    {"std::shuffle", "Rng::shuffle"},
    {"ranges::shuffle", "Rng::shuffle"},
    {"uniform_int_distribution", "Rng::below"},
    {"uniform_real_distribution", "Rng::uniform"},
    {"normal_distribution", "a transform of Rng::uniform"},
    {"exponential_distribution", "a transform of Rng::uniform"},
    {"discrete_distribution", "Rng::below"},
    {"std::regex", "a small parser"},
    {"std::format", "fmt::format"},
    {"system(", "posix_spawn with an argument list"},
    {"popen(", "posix_spawn with an argument list"},
    {"strcpy(", "std::string"},
    {"strcat(", "std::string"},
    {"sprintf(", "fmt::format"},
    {"gets(", "weft::read_file"},
    {"atoi(", "parse_count", "bench/"},
    {"getenv(", "an option of the command line", "src/cli/"},
    {"malloc(", "std::vector"},
    {"goto", "a function"},
    {"const_cast", "the right type", "src/base/file.cpp"},
    {"doctest::Approx(", "weft::approx", "src/base/test_approx.hpp"},
}};

constexpr std::array<std::string_view, 5> heavy_headers{"#include <nlohmann/",
                                                        "#include <yaml-cpp/", "#include <CLI/",
                                                        "#include <pugixml", "#include <regex>"};

std::string at_line(const File& file, std::size_t line, std::string_view what) {
  return fmt::format("{}:{}: {}", file.path, line, what);
}

std::string_view folder_of(std::string_view path) { return path.substr(0, path.rfind('/')); }

// "src/base/text_test.cpp" -> "src/base/text".
std::string_view stem_of(std::string_view path) {
  std::string_view stem = path.substr(0, path.rfind('.'));
  if (stem.ends_with("_test")) stem.remove_suffix(5);
  return stem;
}

bool is_room_file(std::string_view path) {
  return path.starts_with("src/") && path.ends_with("/CMakeLists.txt");
}

// The room whose folder holds the file: "engine/fluid" of "src/engine/fluid/solver.hpp".
std::string room_of(std::string_view path) {
  return std::string(folder_of(path.substr(std::string_view("src/").size())));
}

// Rooms of one folder may link each other; CMake sees that they stand in order.
bool in_one_folder(std::string_view a, std::string_view b) {
  const std::size_t slash = a.rfind('/');
  return slash != std::string_view::npos && slash == b.rfind('/') &&
         a.substr(0, slash) == b.substr(0, slash);
}

bool is_test(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.ends_with("_test.cpp") || name.starts_with("test_");
}

bool has_link(const std::vector<std::string>& links, std::string_view room) {
  return std::ranges::find(links, room) != links.end();
}

Room parse_room(std::string_view arguments) {
  Room out;
  std::string_view key;
  std::string flat(arguments);
  std::ranges::replace(flat, '\n', ' ');
  for (const std::string_view word : split(flat, ' ')) {
    if (word.empty()) continue;
    if (std::ranges::all_of(word, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; })) {
      key = word;  // LEVEL, LINKS, COLD, ...
    } else if (key == "LEVEL") {
      out.level = static_cast<int>(parse_count({word, {}}).value_or(-1));
    } else if (key == "LINKS") {
      out.links.emplace_back(word);
    } else if (key == "TEST_LINKS") {
      out.test_links.emplace_back(word);
    }
  }
  return out;
}

// new and delete outside of "= delete" and operators.
Findings check_naked_new(const File& file, std::string_view code) {
  Findings out;
  for (const std::string_view word : {std::string_view("new"), std::string_view("delete")}) {
    for (const std::size_t at : places_of_word(code, word)) {
      const std::string_view before = trim(code.substr(0, at));
      const bool deleted = word == "delete" && before.ends_with('=');
      if (deleted || before.ends_with("operator")) continue;
      out.push_back(
          at_line(file, line_at(code, at), fmt::format("naked {}; use a container", word)));
    }
  }
  return out;
}

bool is_key_char(char c) {
  return lower_case(c) != c || (c >= 'a' && c <= 'z') || is_digit(c) || c == '_';
}

// "key": or \"key\":, with no word before it, as messages have that quote a key.
bool has_key(std::string_view literal) {
  for (std::size_t at = literal.find("\":"); at != std::string_view::npos;
       at = literal.find("\":", at + 1)) {
    std::string_view key = literal.substr(0, at);
    if (key.ends_with('\\')) key.remove_suffix(1);
    const std::size_t open = key.find_last_of('"');
    if (open == std::string_view::npos || open + 1 == key.size()) continue;
    std::string_view before = key.substr(0, open);
    if (before.ends_with('\\')) before.remove_suffix(1);
    before = trim(before);
    const bool is_quoted_word = !before.empty() && is_key_char(before.back());
    if (!is_quoted_word && std::ranges::all_of(key.substr(open + 1), is_key_char)) return true;
  }
  return false;
}

// A format string, or what is glued to the end of an object, with a key in it. Examples in messages
// are neither.
bool makes_json(std::string_view literal) {
  for (const std::string_view object : {"{{\"", "{{\\\""})
    if (literal.find(object) != std::string_view::npos) return true;
  bool is_piece = literal.starts_with(",\"") || literal.starts_with(",\\\"");
  for (const std::string_view mark : {"{{", "{}", "{:", "{0"})
    is_piece = is_piece || literal.find(mark) != std::string_view::npos;
  return is_piece && has_key(literal);
}

}  // namespace

bool is_cpp(std::string_view path) { return path.ends_with(".cpp") || path.ends_with(".hpp"); }

Rooms rooms_of(const Files& files) {
  constexpr std::string_view call = "weft_room(";
  Rooms out;
  for (const File& file : files) {
    const std::size_t start = file.text.find(call);
    if (!is_room_file(file.path) || start == std::string::npos) continue;
    const std::size_t from = start + call.size();
    const std::string_view arguments =
        std::string_view(file.text).substr(from, file.text.find(')', from) - from);
    out[room_of(file.path)] = parse_room(arguments);
  }
  return out;
}

Findings check_levels(const Rooms& rooms) {
  Findings out;
  for (const auto& [name, room] : rooms) {
    const std::string path = fmt::format("src/{}/CMakeLists.txt", name);
    const std::string_view top = std::string_view(name).substr(0, name.find('/'));
    const auto place = std::ranges::find(house, top, &std::pair<std::string_view, int>::first);
    if (place == house.end()) {
      out.push_back(fmt::format("{}: the house has no room \"{}\"", path, top));
    } else if (place->second != room.level) {
      out.push_back(
          fmt::format("{}: level {} where the house has {}", path, room.level, place->second));
    }
    for (const std::string& link : room.links) {
      const auto lower = rooms.find(link);
      if (lower == rooms.end()) {
        out.push_back(fmt::format("{}: links {}, which is no room", path, link));
      } else if (lower->second.level >= room.level && !in_one_folder(name, link)) {
        out.push_back(fmt::format("{}: links {}, which is not below it", path, link));
      }
      if (link.starts_with("adapt/") && top != "cli" && top != "app" && top != "adapt")
        out.push_back(fmt::format("{}: links {}, which only app and cli may", path, link));
    }
  }
  return out;
}

Findings check_includes(const Files& files, const Rooms& rooms) {
  Findings out;
  for (const File& file : files) {
    if (!file.path.starts_with("src/") || !is_cpp(file.path)) continue;
    const std::string home = room_of(file.path);
    const auto room = rooms.find(home);
    if (room == rooms.end()) {
      out.push_back(fmt::format("{}: stands in no room", file.path));
      continue;
    }
    for (const Include& include : includes_in(code_of(file.text))) {
      const std::string target(folder_of(include.name));
      const bool may = target == home || has_link(room->second.links, target) ||
                       (is_test(file.path) && has_link(room->second.test_links, target));
      if (!may)
        out.push_back(at_line(
            file, include.line,
            fmt::format("{} includes \"{}\" without linking {}", home, include.name, target)));
    }
  }
  return out;
}

Findings check_readmes(const Files& files, const Rooms& rooms) {
  Findings out;
  for (const auto& [name, room] : rooms) {
    const std::string path = fmt::format("src/{}/README.md", name);
    if (std::ranges::find(files, path, &File::path) == files.end())
      out.push_back(fmt::format("{}: is missing", path));
  }
  return out;
}

Findings check_used(const Files& files) {
  std::set<std::string, std::less<>> used;
  for (const File& file : files) {
    if (!is_cpp(file.path)) continue;
    for (const Include& include : includes_in(code_of(file.text)))
      if (stem_of("src/" + include.name) != stem_of(file.path)) used.insert("src/" + include.name);
  }
  Findings out;
  for (const File& file : files)
    if (file.path.starts_with("src/") && file.path.ends_with(".hpp") && !used.contains(file.path))
      out.push_back(fmt::format("{}: nobody includes it", file.path));
  return out;
}

Findings check_sizes(const File& file) {
  Findings out;
  std::size_t number = 0;
  for (const std::string_view line : split(file.text, '\n')) {
    ++number;
    const auto columns = std::ranges::count_if(
        line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    if (static_cast<std::size_t>(columns) > column_count_max)
      out.push_back(at_line(file, number, fmt::format("{} columns", columns)));
  }
  if (number > line_count_max + 1)
    out.push_back(at_line(file, number, fmt::format("{} lines", number - 1)));
  for (const Function& function : functions_in(code_of(file.text)))
    if (function.line_count > function_line_count_max)
      out.push_back(
          at_line(file, function.line, fmt::format("a function of {} lines", function.line_count)));
  return out;
}

Findings check_banned(const File& file) {
  const std::string code = code_of(file.text);
  Findings out = check_naked_new(file, code);
  for (const Ban& ban : bans) {
    if (file.path.starts_with(ban.allowed_under)) continue;
    for (const std::size_t line : lines_with_word(code, ban.word))
      out.push_back(
          at_line(file, line, fmt::format("{} is banned; use {}", ban.word, ban.instead)));
  }
  if (!file.path.ends_with(".hpp")) return out;
  for (const std::string_view header : heavy_headers)
    for (const std::size_t line : lines_with_word(code, header))
      out.push_back(at_line(file, line, "a heavy header in a header"));
  if (code.find("#pragma once") == std::string::npos)
    out.push_back(at_line(file, 1, "no #pragma once"));
  return out;
}

namespace {

// "a.b(c)[d].e()" as "a.b(_)[_].e()": of the range of a range-based for whose "(" stands at `open`;
// "" for other loops.
std::string shape_of_range(std::string_view code, std::size_t open) {
  std::string out;
  std::size_t depth = 0;
  bool is_range = false;
  for (std::size_t i = open; i < code.size(); ++i) {
    const char c = code[i];
    if ((c == ')' || c == ']' || c == '}') && --depth == 0) break;
    if (depth == 1 && (c == ';' || (c == ':' && code[i - 1] != ':' && code[i + 1] != ':'))) {
      is_range = c == ':';
      out.clear();
    } else if (depth == 1) {
      out += c;
    } else if (!out.empty() && (out.back() == '(' || out.back() == '[')) {
      out += '_';
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
  }
  return is_range ? std::string(trim(out)) : "";
}

// Whether a shape goes on from what a call returns to an element of it.
bool is_element_of_result(std::string_view shape) {
  // They give parts of what they are called on, no values of their own.
  constexpr std::array<std::string_view, 5> getters{"[_]", ".at(_)", ".front()", ".back()",
                                                    ".value()"};
  bool has_call = false;
  for (std::size_t at = 0; at < shape.size(); ++at) {
    const std::string_view head = shape.substr(0, at + 1);
    const bool is_getter = std::ranges::any_of(
        getters, [&](std::string_view getter) { return head.ends_with(getter); });
    if (is_getter && has_call) return true;
    const std::size_t open = shape[at] == ')' ? head.rfind('(') : 0;
    const bool is_call = open > 0 && (is_word(shape[open - 1]) || shape[open - 1] == '>');
    if (is_call && !is_getter) has_call = true;
  }
  return has_call && shape.starts_with('*');
}

}  // namespace

Findings check_ranges(const File& file) {
  const std::string code = code_of(file.text);
  Findings out;
  for (const std::size_t at : places_of_word(code, "for"))
    if (code.substr(at, 5) == "for (" && is_element_of_result(shape_of_range(code, at + 4)))
      out.push_back(at_line(file, line_at(code, at),
                            "an element of what a call returns: name the whole before the loop "
                            "(g++ before 15 destroys it too soon)"));
  return out;
}

Paths json_by_hand() {
  return {
      "src/serve/api_schemas.cpp",  // the schemas, as they stand in the document
  };
}

Findings check_json(const Files& files, const Paths& allowed) {
  Findings out;
  for (const File& file : files) {
    if (!file.path.starts_with("src/") || file.path.starts_with("src/base/") ||
        !is_cpp(file.path) || file.path.ends_with("_test.cpp"))
      continue;
    Findings found;
    for (const Literal& literal : literals_in(file.text))
      if (makes_json(literal.text))
        found.push_back(at_line(file, literal.line, "JSON by hand; use weft::JsonObject"));
    if (!allowed.contains(file.path))
      std::ranges::move(found, std::back_inserter(out));
    else if (found.empty())
      out.push_back(fmt::format("{}: no JSON by hand any more; strike it off the list", file.path));
  }
  return out;
}

Findings check_finished(const File& file) {
  // In pieces, so that this file passes its own rule.
  const std::array<std::string, 5> marks{
      "TO"
      "DO",
      "FIX"
      "ME",
      "XX"
      "X",
      "not imple"
      "mented",
      "st"
      "ub"};
  Findings out;
  for (const std::string& mark : marks)
    for (const std::size_t line : lines_with_word(file.text, mark))
      out.push_back(at_line(file, line, fmt::format("unfinished: {}", mark)));
  return out;
}

Findings check_places(const File& file) {
  const std::array<std::string, 3> places{
      "../sha"
      "red",
      "/work/sha"
      "red",
      "/work/ma"
      "in"};
  Findings out;
  for (const std::string& place : places)
    for (const std::size_t line : lines_with_word(file.text, place))
      out.push_back(at_line(file, line, fmt::format("users have no {}", place)));
  return out;
}

}  // namespace weft::tidy
