// Holds the rules against this tree.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.hpp"
#include "rules.hpp"

using namespace weft::tidy;
namespace fs = std::filesystem;

namespace {

bool is_skipped(const fs::path& folder) {
  const std::string name = folder.filename();
  return name == "node_modules" || name == "corpus" || name == "dist" || name == "build" ||
         name == "out" || name == ".git";
}

bool is_text(const fs::path& path) {
  constexpr std::array<std::string_view, 11> kinds{".cpp", ".hpp", ".txt", ".md",   ".cmake", ".sh",
                                                   ".ts",  ".css", ".mjs", ".yaml", ".js"};
  return std::ranges::find(kinds, path.extension().string()) != kinds.end();
}

// Every text file of the tree, sorted by path.
const Files& tree() {
  static const Files files = [] {
    const fs::path top = WEFT_TREE;
    Files out;
    for (auto it = fs::recursive_directory_iterator(top); it != fs::end(it); ++it) {
      if (it->is_directory() && is_skipped(it->path())) it.disable_recursion_pending();
      if (!it->is_regular_file() || !is_text(it->path())) continue;
      auto text = weft::read_file(it->path().string());
      if (!text) FAIL(text.error().text());
      out.push_back({fs::relative(it->path(), top).string(), *std::move(text)});
    }
    std::ranges::sort(out, {}, &File::path);
    return out;
  }();
  return files;
}

void report(const Findings& findings) {
  INFO(fmt::format("{}", fmt::join(findings, "\n")));
  CHECK(findings.empty());
}

template <class Rule, class Filter>
void check_each(Rule rule, Filter filter) {
  Findings all;
  for (const File& file : tree())
    if (filter(file.path)) std::ranges::copy(rule(file), std::back_inserter(all));
  report(all);
}

}  // namespace

TEST_CASE("this tree is there") {
  CHECK(rooms_of(tree()).size() >= 9);
  CHECK(tree().size() > 50);
}

TEST_CASE("this tree: levels") { report(check_levels(rooms_of(tree()))); }
TEST_CASE("this tree: includes") { report(check_includes(tree(), rooms_of(tree()))); }
TEST_CASE("this tree: readmes") { report(check_readmes(tree(), rooms_of(tree()))); }
TEST_CASE("this tree: dead headers") { report(check_used(tree())); }
TEST_CASE("this tree: sizes") { check_each(check_sizes, is_cpp); }
TEST_CASE("this tree: banned calls") { check_each(check_banned, is_cpp); }
TEST_CASE("this tree: ranges") { check_each(check_ranges, is_cpp); }
TEST_CASE("this tree: JSON by hand") { report(check_json(tree(), json_by_hand())); }
TEST_CASE("this tree: finished") {
  check_each(check_finished, [](const std::string&) { return true; });
}
TEST_CASE("this tree: places") {
  check_each(check_places, [](const std::string&) { return true; });
}
