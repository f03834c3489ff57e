// Runs every golden/*.yaml: input files, a command, and what must come out. Keys of a case:
//   run: [flows, --fabric, f.yaml]     arguments of weft; {tree} stands for the source tree
//   files: {f.yaml: "...", ...}        written before the run
//   exit: 2                            the exit status, 0 unless given
//   out, err: ["text", ...]            texts that must occur on standard output or error
//   json: {a.b.0.c: value, ...}        fields of the JSON on standard output; a number may be
//                                      {near: x, within: share}, and "#" stands for a count of
//                                      items
//   makes: [out/report.json, ...]      files that must exist afterwards; none other may (unless
//                                      the key is absent)
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/config.hpp"
#include "base/text.hpp"
#include "run_weft.hpp"

using namespace weft;
using cli_test::Outcome;
using cli_test::Scratch;
using nlohmann::json;

namespace {

std::vector<std::string> cases() {
  std::vector<std::string> out;
  const std::string folder = cli_test::tree() + "/tests/cli/golden";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".yaml") out.push_back(entry.path().string());
  std::ranges::sort(out);
  return out;
}

std::string with_tree(std::string_view text) {
  constexpr std::string_view mark = "{tree}";
  std::string out(text);
  for (std::size_t at = out.find(mark); at != std::string::npos; at = out.find(mark, at))
    out.replace(at, mark.size(), cli_test::tree());
  return out;
}

// The value at "a.b.0.c", or nullptr.
const json* find(const json& top, std::string_view path) {
  const json* at = &top;
  for (const std::string_view step : split(path, '.')) {
    const std::string key(step);
    if (at->is_array()) {
      const auto index = parse_count({step, {}});
      if (!index || static_cast<std::size_t>(*index) >= at->size()) return nullptr;
      at = &(*at)[static_cast<std::size_t>(*index)];
    } else if (at->is_object() && at->contains(key)) {
      at = &(*at)[key];
    } else {
      return nullptr;
    }
  }
  return at;
}

void check_number(const json& value, const Config& expected, Errors& errors) {
  Reader reader(expected, "json", errors);
  const double near = reader.number("near", {}, -1e300, 1e300);
  const double within = reader.number("within", {}, 0, 1);
  reader.finish();
  REQUIRE(value.is_number());
  CHECK(std::abs(value.get<double>() - near) <= within * std::abs(near));
}

void check_field(const json& top, const Config::Field& field, Errors& errors) {
  INFO(field.where.text(), ": ", field.key);
  const bool count = field.key.ends_with(".#");
  const json* value = find(top, field.key.substr(0, field.key.size() - (count ? 2 : 0)));
  REQUIRE(value != nullptr);
  if (field.value.kind == Config::Kind::map) {
    check_number(*value, field.value, errors);
  } else if (count) {
    CHECK(std::to_string(value->size()) == field.value.text);
  } else if (value->is_string()) {
    CHECK(value->get<std::string>() == field.value.text);
  } else {
    CHECK(*value == json::parse(field.value.text, nullptr, false));
  }
}

void check_json(const Outcome& outcome, const Config& expected, Errors& errors) {
  const json top = json::parse(outcome.out, nullptr, false);
  INFO(outcome.out.substr(0, 2000));
  REQUIRE_FALSE(top.is_discarded());
  for (const Config::Field& field : expected.fields) check_field(top, field, errors);
}

void check_texts(std::string_view said, const std::vector<Token>& wanted) {
  for (const Token& text : wanted) {
    INFO(text.where.text(), ": wanted: ", std::string(text.text));
    INFO("got: ", std::string(said.substr(0, 2000)));
    CHECK(said.find(text.text) != std::string_view::npos);
  }
}

void check_files(const Scratch& scratch, const Config* files, const std::vector<Token>& makes) {
  std::vector<std::string> expected;
  if (files != nullptr)
    for (const Config::Field& field : files->fields) expected.push_back(field.key);
  for (const Token& name : makes) expected.emplace_back(name.text);
  std::ranges::sort(expected);
  CHECK(fmt::format("{}", scratch.files()) == fmt::format("{}", expected));
}

void run_case(const std::string& path) {
  const auto config = load_yaml(path);
  if (!config) FAIL(config.error().text());
  Errors errors;
  Reader reader(*config, "case", errors);
  const Scratch scratch;
  const Config* files = reader.child("files");
  if (files != nullptr)
    for (const Config::Field& field : files->fields) scratch.write(field.key, field.value.text);
  std::vector<std::string> arguments;
  for (const Token& word : reader.texts("run")) arguments.push_back(with_tree(word.text));
  const Outcome outcome = scratch.run(arguments);
  INFO("standard error: ", outcome.err.substr(0, 2000));
  CHECK(outcome.status == reader.count("exit", 0));
  check_texts(outcome.out, reader.texts("out"));
  check_texts(outcome.err, reader.texts("err"));
  if (const Config* fields = reader.child("json")) check_json(outcome, *fields, errors);
  const bool closed = reader.has("makes");
  if (closed) check_files(scratch, files, reader.texts("makes"));
  reader.finish();
  if (!errors.empty()) FAIL(combine(std::move(errors)).text());
}

}  // namespace

TEST_CASE("golden cases") {
  REQUIRE(cases().size() > 0);
  for (const std::string& path : cases()) {
    CAPTURE(path);
    run_case(path);
  }
}
