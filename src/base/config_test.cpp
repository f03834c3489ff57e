#include "base/config.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/test_effort.hpp"

using namespace weft;

namespace {

Config parsed(std::string_view text) {
  auto config = parse_yaml(text, "s.yaml");
  if (!config) FAIL(config.error().text());
  return *std::move(config);
}

std::string refusal(std::string_view text) {
  const auto config = parse_yaml(text, "s.yaml");
  if (config) return "accepted: " + to_yaml(*config);
  CHECK_FALSE(config.error().hint.empty());
  return config.error().where.text() + ": " + config.error().what;
}

// The scalar at a path of keys.
std::string at(const Config& config, std::initializer_list<const char*> path) {
  const Config* value = &config;
  for (const char* key : path) {
    value = value->find(key);
    if (value == nullptr) return "(missing)";
  }
  return value->kind == Config::Kind::null ? "(null)" : value->text;
}

std::string repeat(std::string_view text, std::size_t size) {
  std::string out;
  while (out.size() < size) out += text;
  return out;
}

}  // namespace

TEST_CASE("every value and key knows its line and column") {
  const Config config = parsed("fabric:\n  racks: 4\n  list: [a,  b]\n");
  const Config& fabric = *config.find("fabric");
  CHECK(fabric.where.text() == "s.yaml:2:3");
  CHECK(fabric.fields[0].where.text() == "s.yaml:2:3");
  CHECK(fabric.find("racks")->where.text() == "s.yaml:2:10");
  CHECK(fabric.find("list")->items[1].where.text() == "s.yaml:3:14");
  CHECK(fabric.find("nothing") == nullptr);
}

TEST_CASE("kinds of values") {
  const Config config =
      parsed("a: x\nb: [1]\nc: {d: 1}\ne: ~\nf:\ng: null\nh: \"null\"\ni: \"\"\n");
  CHECK(config.find("a")->kind == Config::Kind::scalar);
  CHECK(config.find("b")->kind == Config::Kind::list);
  CHECK(config.find("c")->kind == Config::Kind::map);
  for (const char* key : {"e", "f", "g"}) CHECK(config.find(key)->kind == Config::Kind::null);
  for (const char* key : {"h", "i"}) CHECK(config.find(key)->kind == Config::Kind::scalar);
  CHECK(parsed("").kind == Config::Kind::null);
  CHECK(parsed("").where.text() == "s.yaml:1:1");
  CHECK(parsed("# only a note\n").kind == Config::Kind::null);
  CHECK(parsed("{\"json\": [1, true]}").find("json")->items.size() == 2);
}

TEST_CASE("anchors and aliases") {
  const Config config = parsed("a: &x {k: 1}\nb: *x\n");
  CHECK(at(config, {"b", "k"}) == "1");
  CHECK(config.find("b")->where.text() == "s.yaml:2:4");
}

TEST_CASE("broken input is refused with its place") {
  CHECK(refusal("a: 1\nb: 2\na: 3\n") == "s.yaml:3:1: duplicate key \"a\"");
  CHECK(refusal("a: {b: 1, b: 2}") == "s.yaml:1:11: duplicate key \"b\"");
  CHECK(refusal("a: [1, 2") == "s.yaml:1:9: not valid YAML: end of sequence flow not found");
  CHECK(refusal("a: b: c") == "s.yaml:1:5: not valid YAML: illegal map value");
  CHECK(refusal("a: \"x\nb: 1\n") == "s.yaml:2:5: the file ends inside a quoted string");
  CHECK(refusal("a: 'x") == "s.yaml:1:6: the file ends inside a quoted string");
  CHECK(refusal("a: 1\nracks\n") == "s.yaml:2:1: no value for \"racks\"");
  CHECK(refusal("a: 1\n---\nb: 2\n") == "s.yaml:2:1: second document in the file");
  CHECK(refusal("? [1]\n: 2\n") == "s.yaml:1:3: a key must be a plain string");
  CHECK(refusal("~: 2\n") == "s.yaml:1:1: a key must be a plain string");
  CHECK(refusal("a: *x\n").starts_with("s.yaml:1:4: not valid YAML: the referenced anchor"));
  CHECK(refusal("a: &x [*x]\n") == "s.yaml:1:8: alias refers to a value that is not complete yet");
  CHECK(refusal("a: !!binary aGk=\n") ==
        "s.yaml:1:4: tag \"tag:yaml.org,2002:binary\" has no meaning here");
}

TEST_CASE("bytes that are not text are refused, for YAML would end or mend there in silence") {
  CHECK(refusal(std::string_view("a: 1\nb: \0", 9)) == "s.yaml:2:4: byte 0x00 is not text");
  CHECK(refusal("a: 1\n\x04racks: 3\n") == "s.yaml:2:1: byte 0x04 is not text");
  CHECK(refusal("a: \xFF\n") == "s.yaml:1:4: byte 0xff is not text");
  CHECK(refusal("a: \"\\0\"\n").starts_with("s.yaml:1:4: an escape sequence yields"));
  CHECK(refusal("a: \"\\N\"\n").starts_with("s.yaml:1:4: an escape sequence yields"));
  CHECK(at(parsed("\xEF\xBB\xBF"
                  "a: µ\r\n"),
           {"a"}) == "µ");
}

TEST_CASE("nesting, number and size are bounded") {
  const std::uint64_t many = std::max<std::uint64_t>(test_effort(10'000'000), 5'000'000);
  CHECK(refusal(repeat("[", 10'000)).ends_with("nested deeper than 100 levels"));
  CHECK(refusal(repeat("[", many)).ends_with("more than 1000000 values"));
  CHECK(refusal(repeat("{a: ", many)).ends_with("more than 1000000 values"));
  CHECK(refusal(repeat("- ", 1'000'000)).ends_with("nested deeper than 100 levels"));
  CHECK(refusal(repeat("? ", 1'000'000)).ends_with("nested deeper than 100 levels"));
  CHECK(refusal("[" + repeat("[1],", many) + "]").ends_with("more than 1000000 values"));
  CHECK(refusal("[" + repeat("[[[[]]]],", many) + "]").ends_with("more than 1000000 values"));
  CHECK(refusal(repeat("[\"]\",", many)).ends_with("more than 1000000 values"));
  CHECK(refusal(repeat("- - 1\n", many)).ends_with("more than 1000000 values"));
  CHECK(refusal(std::string((64 << 20) + 1, 'x')) == "s.yaml: larger than 64 MiB");
  std::string nested;
  for (int i = 0; i < 100; ++i) nested += "[";
  CHECK(parse_yaml(nested + std::string(100, ']'), "s.yaml").has_value());
  CHECK(
      parse_yaml("# " + nested + nested + "\na: '" + nested + nested + "'", "s.yaml").has_value());
}

TEST_CASE("aliases may not multiply a short text into a huge tree") {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'j'; ++c) {
    const char below = static_cast<char>(c - 1);
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) bomb += std::string(i > 0 ? ",*" : "*") + below;
    bomb += "]\n";
  }
  CHECK(refusal(bomb).ends_with("more than 1000000 values"));
  CHECK(refusal("a: &a " + std::string(1'000'000, 'x') + "\nb: [" + repeat("*a,", 1000) + "]")
            .ends_with("more than 1000000 values"));
  std::string nested;  // every anchor keeps a copy of all that is inside
  for (int i = 0; i < 90; ++i) nested += "&a" + std::to_string(i) + " [";
  CHECK(refusal(nested + repeat("1,", 200'000) + std::string(90, ']'))
            .ends_with("more than 1000000 values"));
}

TEST_CASE("what to_yaml writes reads back the same") {
  const auto same = [](auto&& self, const Config& a, const Config& b) -> bool {
    bool equal = a.kind == b.kind && a.text == b.text && a.items.size() == b.items.size() &&
                 a.fields.size() == b.fields.size();
    for (std::size_t i = 0; equal && i < a.items.size(); ++i)
      equal = self(self, a.items[i], b.items[i]);
    for (std::size_t i = 0; equal && i < a.fields.size(); ++i)
      equal =
          a.fields[i].key == b.fields[i].key && self(self, a.fields[i].value, b.fields[i].value);
    return equal;
  };
  // One text a line; four more hold what a line cannot.
  const std::string_view lines =
      "plain\n400 Gbps\n\n~\nnull\nNull\nNULL\n- x\na: b\n#c\n lead\ntrail \ntab\t\n\"q\"\n'\n"
      "[1]\n{\n*a\n&a\n!t\n%d\n@\n`\n?\n-\n---\n...\nµ\n\\\na #b\n|\n>\ntrue\n1e9\n,\n=\n<<";
  std::vector<std::string> texts{"two\nlines\n", "\r\n", "5\r", std::string(3000, 'k')};
  for (const std::string_view line : split(lines, '\n')) texts.emplace_back(line);
  for (const std::string& text : texts) {
    CAPTURE(text);
    Config inner = Config::list();
    inner.items = {Config::scalar(text), {}, Config::list(), Config::map()};
    Config config = Config::map();
    config.at_or_add(text) = Config::scalar(text);
    config.at_or_add("list of " + text) = inner;
    for (int i = 0; i < 30; ++i) config.at_or_add("k" + std::to_string(i)) = inner;  // block style
    CHECK(same(same, parsed(to_yaml(config)), config));
    CHECK(same(same, parsed(to_yaml(Config::scalar(text))), Config::scalar(text)));
    Config small = Config::map();  // between braces, if it can be
    small.at_or_add(text) = Config::list();
    small.fields[0].value.items = {small};
    CHECK(same(same, parsed(to_yaml(small)), small));
  }
}

TEST_CASE("overlay merges maps, replaces the rest and deletes by null") {
  Config base = parsed("a: {x: 1, y: 2}\nb: [1, 2]\nc: old\nd: gone\n");
  overlay(base, parsed("a: {y: 3, z: 4}\nb: [9]\nc: {k: new}\nd: ~\ne: added\nf: ~\n"));
  CHECK(at(base, {"a", "x"}) == "1");
  CHECK(at(base, {"a", "y"}) == "3");
  CHECK(at(base, {"a", "z"}) == "4");
  CHECK(base.find("b")->items.size() == 1);
  CHECK(at(base, {"c", "k"}) == "new");
  CHECK(at(base, {"d"}) == "(missing)");
  CHECK(at(base, {"e"}) == "added");
  CHECK(at(base, {"f"}) == "(missing)");
  CHECK(base.fields.front().key == "a");  // order is kept
}

TEST_CASE("what is laid over defaults changes what it names; nothing changes nothing") {
  constexpr std::string_view defaults = "a: {x: 1, y: 2}\nb: 3\n";
  CHECK(to_yaml(laid_over(defaults, parsed("a: {y: 4}\nb: ~\nc: 5"))) ==
        to_yaml(parsed("a: {x: 1, y: 4}\nc: 5")));
  const Config file = parsed("section:\n");
  for (const Config& nothing :
       {Config{}, parsed(""), parsed("# all as it is\n"), parsed("{}"), *file.find("section")})
    CHECK(to_yaml(laid_over(defaults, nothing)) == to_yaml(parsed(defaults)));
}

TEST_CASE("overlay of large maps takes no quadratic time") {
  Config base = Config::map();
  Config over = Config::map();
  for (int i = 0; i < 200'000; ++i) {
    base.fields.push_back({std::to_string(i), {}, Config::scalar("b")});
    over.fields.push_back({std::to_string(i + 100'000), {}, Config::scalar("o")});
  }
  overlay(base, over);
  CHECK(base.fields.size() == 300'000);
  CHECK(base.fields[99'999].value.text == "b");
  CHECK(base.fields[100'000].value.text == "o");
}

TEST_CASE("set_path makes maps on its way and steps into lists") {
  Config config = parsed("routing: {qps: 4}\njobs: [{bytes: 1 B}, {bytes: 2 B}]\nempty: ~\n");
  CHECK(set_path(config, "routing.qps", Config::scalar("16")).has_value());
  CHECK(set_path(config, "fabric.host.kind", Config::scalar("h100")).has_value());
  CHECK(set_path(config, "jobs.1.bytes", Config::scalar("3 B")).has_value());
  CHECK(set_path(config, "empty.now", Config::scalar("full")).has_value());
  CHECK(at(config, {"routing", "qps"}) == "16");
  CHECK(at(config, {"fabric", "host", "kind"}) == "h100");
  CHECK(config.find("jobs")->items[1].find("bytes")->text == "3 B");
  CHECK(at(config, {"empty", "now"}) == "full");
  for (const char* path : {"", ".", "routing.", "routing..qps", "routing.qps.deep", "jobs.2.bytes",
                           "jobs.-1.bytes", "jobs.x", "jobs.1x"}) {
    CAPTURE(path);
    const auto status = set_path(config, path, Config::scalar("1"));
    REQUIRE_FALSE(status.has_value());
    CHECK(status.error().code == Errc::unknown);
    CHECK_FALSE(status.error().hint.empty());
  }
}

TEST_CASE("set_path removes by null, and makes nothing for that") {
  Config config = parsed("routing: {qps: 4, scheme: spray}\njobs: [{bytes: 1 B, repeat: 2}, {}]\n");
  const Config null;
  for (const char* path :
       {"routing.qps", "jobs.0.repeat", "routing.none", "fabric.host.kind", "seed"})
    CHECK(set_path(config, path, null).has_value());
  CHECK(to_yaml(config) == "{routing: {scheme: spray}, jobs: [{bytes: 1 B}, {}]}\n");
  CHECK(set_path(config, "routing", null).has_value());
  CHECK(to_yaml(config) == "{jobs: [{bytes: 1 B}, {}]}\n");
  for (const char* path : {"jobs.0", "jobs.9", "jobs.0.bytes.deep", "jobs..bytes", ""}) {
    CAPTURE(path);
    CHECK_FALSE(set_path(config, path, null).has_value());
  }
}

TEST_CASE("a reader takes typed values, fallbacks where keys are missing") {
  const Config config = parsed(
      "racks: 16\nload: 50 %\nbytes: 64 MiB\nlink: 400 Gbps\nlatency: 1 us\npfc: true\n"
      "name: x\nscheme: spray\none: a\nmany: [a, b]\n");
  const std::vector<std::string> schemes{"ecmp", "spray"};
  Errors errors;
  Reader reader(config, "section", errors);
  CHECK(reader.count("racks", {}) == 16);
  CHECK(reader.number("load", {}, 0, 1) == 0.5);
  CHECK(reader.bytes("bytes", {}) == 64_MiB);
  CHECK(reader.rate("link", {}) == 400_Gbps);
  CHECK(reader.duration("latency", {}) == 1_us);
  CHECK(reader.flag("pfc", {}));
  CHECK(reader.text("name", {}) == "x");
  CHECK(reader.choice("scheme", schemes, {}) == 1);
  CHECK(reader.texts("one").size() == 1);
  CHECK(reader.texts("many")[1].text == "b");
  CHECK(reader.texts("none").empty());
  CHECK(reader.count("spines", 18) == 18);
  CHECK(reader.rate("uplink", 100_Gbps) == 100_Gbps);
  CHECK(reader.has("racks"));
  CHECK_FALSE(reader.has("pods"));
  CHECK(reader.child("many")->items.size() == 2);
  CHECK(reader.where("racks").text() == "s.yaml:1:8");
  reader.finish();
  CHECK(errors.empty());
}

TEST_CASE("a reader reports every fault of a section in one pass") {
  const Config config = parsed(
      "racks: 0\nload: 2\nbytes: 64\nlink: fast\nscheme: sprai\npfc: maybe\nname: [x]\n"
      "many: [[a]]\nlist: {a: 1}\nempty:\nrakcs: 1\n");
  const std::vector<std::string> schemes{"ecmp", "spray"};
  Errors errors;
  Reader reader(config, "fabric", errors);
  CHECK(reader.count("racks", 7, 1, 10) == 7);
  CHECK(reader.number("load", 0.5, 0, 1) == 0.5);
  reader.bytes("bytes", {});
  reader.rate("link", {});
  CHECK(reader.choice("scheme", schemes, 0) == 0);
  reader.flag("pfc", false);
  reader.text("name", "");
  reader.texts("many");
  reader.texts("list");
  reader.count("empty", 3);
  reader.count("missing", {});
  reader.finish();
  const std::vector<std::string> expected{
      "s.yaml:1:8: fabric.racks: 0 is not within 1 .. 10",
      "s.yaml:2:7: fabric.load: 2 is not within 0 .. 1",
      "s.yaml:3:8: fabric.bytes: size \"64\" has no unit",
      "s.yaml:4:7: fabric.link: \"fast\" is not a number",
      "s.yaml:5:9: fabric.scheme: unknown name \"sprai\" (did you mean \"spray\"?)",
      "s.yaml:6:6: fabric.pfc: \"maybe\" is neither true nor false",
      "s.yaml:7:7: fabric.name must be a single value",
      "s.yaml:8:8: fabric.many must be a list of plain values",
      "s.yaml:9:7: fabric.list must be a list",
      "s.yaml:10:1: fabric.empty is empty",
      "s.yaml:1:1: fabric: \"missing\" is missing",
      "s.yaml:11:1: unknown key \"rakcs\" in fabric (did you mean \"racks\"?)"};
  REQUIRE(errors.size() == expected.size());
  for (std::size_t i = 0; i < errors.size(); ++i) {
    CHECK(errors[i].where.text() + ": " + errors[i].what == expected[i]);
    CHECK_FALSE(errors[i].hint.empty());
  }
}

TEST_CASE("a reader of something that is no map says so; of nothing is an empty map") {
  Errors errors;
  const Config list = parsed("[1]");
  Reader(list, "fabric", errors).finish();
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].what == "fabric must be a map of keys");
  const Config nothing;
  Reader empty(nothing, "fabric", errors);
  CHECK(empty.count("racks", 2) == 2);
  empty.finish();
  CHECK(errors.size() == 1);
}

TEST_CASE("a flood of unknown keys is summed up") {
  Config config = Config::map();
  for (int i = 0; i < 100'000; ++i)
    config.fields.push_back({"key" + std::to_string(i), {}, Config::scalar("1")});
  Errors errors;
  Reader reader(config, "fabric", errors);
  reader.has("racks");
  reader.finish();
  REQUIRE(errors.size() == 21);
  CHECK(errors.back().what == "99980 more unknown keys in fabric");
}
