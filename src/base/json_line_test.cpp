#include "base/json_line.hpp"

#include <doctest/doctest.h>

namespace weft {
namespace {

JsonLine parsed(std::string_view line) {
  auto out = JsonLine::parse(line, {"t.jsonl", 7, 0});
  REQUIRE_MESSAGE(out.has_value(), line);
  return *std::move(out);
}

TEST_CASE("values by key") {
  const JsonLine line =
      parsed(R"({"s":"a\u00e9","n":-1.5,"i":18,"t":"1970-01-01T00:00:01Z","u":5,"l":["x","y"],)"
             R"("o":{"k":null,"d":[1]},"z":null})");
  Errors errors;
  CHECK(line.text("s", {}, errors) == "a\u00e9");
  CHECK(line.number("n", {}, -2, 2, errors) == -1.5);
  CHECK(line.count("i", {}, 0, 18, errors) == 18);
  CHECK(line.time("t", {}, errors).ns == ns_per_s);
  CHECK(line.time("u", {}, errors).ns == 5);
  CHECK(line.texts("l", errors) == std::vector<std::string>{"x", "y"});
  CHECK_FALSE(line.has("z"));
  CHECK(line.count("z", 3, 0, 9, errors) == 3);
  CHECK(line.texts("absent", errors).empty());
  const auto object = line.object("o", errors);
  REQUIRE(object.has_value());
  CHECK(object->members() ==
        std::vector<std::pair<std::string, std::string>>{{"k", "null"}, {"d", "[1]"}});
  CHECK(errors.empty());
}

TEST_CASE("wrong values say where, what and what to do") {
  const JsonLine line =
      parsed(R"({"s":1,"n":"x","i":1.5,"b":99999999999999999999,"t":true,"l":[1]})");
  Errors errors;
  CHECK(line.text("s", {}, errors).empty());
  CHECK(line.number("n", {}, 0, 1, errors) == 0);
  CHECK(line.count("i", {}, 0, 9, errors) == 0);
  CHECK(line.count("b", {}, 0, 9, errors) == 0);
  CHECK(line.time("t", {}, errors).ns == 0);
  CHECK(line.texts("l", errors).empty());
  CHECK_FALSE(line.object("l", errors).has_value());
  CHECK(line.count("absent", {}, 0, 9, errors) == 0);
  REQUIRE(errors.size() == 8);
  CHECK(errors[0].text() == "t.jsonl:7: \"s\" is 1; give a string");
  CHECK(errors[2].text() == "t.jsonl:7: \"i\" is 1.5; give a whole number from 0 to 9");
  CHECK(errors[7].text() == "t.jsonl:7: \"absent\" is missing; add \"absent\" to the line");
}

TEST_CASE("what is no object is refused") {
  const std::string deep = "{\"a\":" + std::string(5'000, '[') + std::string(5'000, ']') + "}";
  for (const std::string& line : {std::string(""), std::string("[]"), std::string("{"),
                                  std::string("{\"a\":1}x"), std::string("{\"a\":1,\"a\":2}"),
                                  std::string("{\"a\":\"\xff\"}"), std::string("nul"), deep})
    CHECK_MESSAGE(!JsonLine::parse(line, {}), line.substr(0, 20));
}

TEST_CASE("a stream gives its objects, and what is wrong with the rest") {
  LineReader lines("{\"a\":1}\n\n  \n[]\n{\"a\":2}", "t.jsonl");
  Errors errors;
  std::vector<std::int64_t> seen;
  while (const auto line = next_json_line(lines, errors))
    seen.push_back(line->count("a", {}, 0, 9, errors));
  CHECK(seen == std::vector<std::int64_t>{1, 2});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].where.text() == "t.jsonl:4");
}

TEST_CASE("a stream of rubbish ends after 100 errors, a broken one with what broke it") {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "x\n";
  LineReader rubbish(text, "t.jsonl");
  Errors errors;
  CHECK_FALSE(next_json_line(rubbish, errors).has_value());
  CHECK(errors.size() == 100);
  const std::string long_line(line_bytes_max + 1, ' ');
  LineReader broken(long_line, "t.jsonl");
  errors.clear();
  CHECK_FALSE(next_json_line(broken, errors).has_value());
  CHECK(errors.size() == 1);
}

TEST_CASE("text becomes a JSON string") {
  CHECK(json_string("a\"\n\x01") == R"("a\"\n\u0001")");
  CHECK(json_string("\xff") == "\"\xef\xbf\xbd\"");
}

TEST_CASE("members and items of what is no object or list are nothing") {
  const auto line = JsonLine::parse(R"({"n":7,"t":"x","l":[1],"o":{"a":1},"z":null})", {"x"});
  REQUIRE(line.has_value());
  for (const std::string_view key : {"n", "t", "z", "none"}) {
    const JsonNode node = line->node().member(key);
    CHECK(node.size() == 0);
    CHECK_FALSE(node.item(0));
    CHECK_FALSE(node.member("a"));
  }
  CHECK(line->node().member("l").item(0).whole() == 1);
  CHECK_FALSE(line->node().member("l").item(1));
  CHECK_FALSE(line->node().member("o").item(0));
  CHECK(line->node().member("o").size() == 1);
}

}  // namespace
}  // namespace weft
