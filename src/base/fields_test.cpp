#include "base/fields.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "base/field_schema.hpp"

namespace weft::fields_test {

using nlohmann::ordered_json;

enum class Colour : std::uint8_t { red, green, deep_blue };
inline constexpr auto colour_names = std::to_array<std::string_view>({"red", "green", "deep_blue"});
constexpr std::span<const std::string_view> names_of(Colour) { return colour_names; }
constexpr std::string_view to_text(Colour colour) { return name_of(colour); }

struct Dot {
  std::int32_t x = 0;
  double share = 0;
  friend bool operator==(const Dot&, const Dot&) = default;
};
template <class Archive, Of<Dot> T>
void fields(Archive& ar, T& dot) {
  ar("x", dot.x);
  ar("share", dot.share, decimals(2));
}

struct Sheet {
  std::string name;
  Colour colour = Colour::red;
  bool is_new = false;
  std::uint64_t size = 0;
  Timestamp at;
  std::optional<Dot> centre;
  std::optional<Timestamp> end;
  std::vector<Dot> dots;
  std::vector<std::string> tags;
  std::uint8_t level = 3;
  std::string note;
  friend bool operator==(const Sheet&, const Sheet&) = default;
};
template <class Archive, Of<Sheet> T>
void fields(Archive& ar, T& sheet) {
  ar("name", sheet.name);
  ar("colour", sheet.colour);
  ar("is_new", sheet.is_new);
  ar("size", sheet.size);
  ar("at", sheet.at);
  ar("centre", sheet.centre);
  ar("end", sheet.end);
  ar("dots", sheet.dots);
  ar("tags", sheet.tags);
  ar.added("level", sheet.level);
  ar.if_set("note", sheet.note);
}

// A value that has a text in a context only.
struct Seat {
  std::size_t row = 0;
  friend bool operator==(const Seat&, const Seat&) = default;
};
struct Hall {
  std::array<std::string_view, 2> rows{"stalls", "circle"};
  std::string_view text(const Seat& seat) const { return rows[seat.row]; }
  Status read(const Token& token, Seat& seat) const {
    WEFT_TRY(seat.row, find_name(token, rows));
    return {};
  }
};
struct Booking {
  std::optional<Seat> seat;
  std::vector<Seat> others;
  friend bool operator==(const Booking&, const Booking&) = default;
};
template <class Archive, Of<Booking> T>
void fields(Archive& ar, T& booking) {
  ar("seat", booking.seat);
  ar("others", booking.others);
}

Sheet full() {
  return {.name = "a \"b\" \\ \x01\x1f\n\t \x7f \u00e9",
          .colour = Colour::deep_blue,
          .is_new = true,
          .size = 9'007'199'254'740'993,  // no double holds it
          .at = {1'500'000'000},
          .centre = Dot{-7, 0.25},
          .end = Timestamp{2'000'000'000},
          .dots = {{1, 0.5}, {2, 1}},
          .tags = {"", "x,y"},
          .level = 255,
          .note = "{}"};
}

std::vector<std::string> complaints(std::string_view text) {
  const auto read = read_fields<Sheet>(text, {"s.jsonl", 4, 0});
  if (read) return {};
  std::vector<std::string> out{read.error().what};
  for (const Error& more : read.error().more) out.push_back(more.what);
  return out;
}

TEST_CASE("a struct is written in the order of its list") {
  CHECK(write_fields(full()) ==
        "{\"name\":\"a \\\"b\\\" \\\\ \\u0001\\u001f\\n\\t \x7f \u00e9\",\"colour\":\"deep_blue\","
        R"("is_new":true,"size":9007199254740993,"at":"1970-01-01T00:00:01.500Z",)"
        R"("centre":{"x":-7,"share":0.25},"end":"1970-01-01T00:00:02Z",)"
        R"("dots":[{"x":1,"share":0.50},{"x":2,"share":1.00}],"tags":["","x,y"],"level":255,)"
        R"("note":"{}"})");
  CHECK(write_fields(Sheet{}) ==
        R"({"name":"","colour":"red","is_new":false,"size":0,"at":"1970-01-01T00:00:00Z",)"
        R"("centre":null,"end":null,"dots":[],"tags":[],"level":3})");
}

TEST_CASE("what is written reads back, and another parser agrees") {
  for (const Sheet& sheet : {full(), Sheet{}}) {
    const std::string text = write_fields(sheet);
    const auto read = read_fields<Sheet>(text, {});
    REQUIRE_MESSAGE(read.has_value(), text);
    CHECK(*read == sheet);
    CHECK(ordered_json::parse(text)["name"] == sheet.name);
    CHECK(ordered_json::parse(text)["size"] == sheet.size);
    CHECK(ordered_json::parse(text)["dots"].size() == sheet.dots.size());
  }
}

TEST_CASE("keys nobody knows are allowed, fields of later versions may be absent") {
  const auto read = read_fields<Sheet>(
      R"({"new":[1],"name":"n","colour":"green","is_new":false,"size":1,"at":5,"dots":[],)"
      R"("tags":[]})",
      {});
  REQUIRE(read.has_value());
  CHECK(read->colour == Colour::green);
  CHECK(read->at.ns == 5);
  CHECK(read->level == 3);
}

TEST_CASE("all that is wrong is said at once, with its place") {
  CHECK(complaints(R"({"name":1,"colour":"gren","is_new":"no","size":-1,"at":true,)"
                   R"("dots":[{"x":1,"share":2},{"x":4000000000,"share":"a"}],"tags":{},)"
                   R"("level":256,"centre":[]})") ==
        std::vector<std::string>{
            "\"name\" is 1", "\"colour\": \"gren\" is not known (did you mean \"green\"?)",
            "\"is_new\" is \"no\"", "\"size\" is -1, out of range", "\"at\" is true",
            "\"centre\" is []", "\"dots[1].x\" is 4000000000, out of range",
            "\"dots[1].share\" is \"a\"", "\"tags\" is {}", "\"level\" is 256, out of range"});
  CHECK(complaints("{}").size() == 7);
  const auto read = read_fields<Dot>(R"({"x":1.5})", {"s.jsonl", 4, 0});
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().text() ==
        "s.jsonl:4: \"x\" is 1.5; give a whole number from -2147483648 to 2147483647\n"
        "s.jsonl:4: \"share\" is missing; add \"share\"");
}

TEST_CASE("what is absent has no value of any type") {
  const auto line = JsonLine::parse(R"({"a":null,"l":[1]})", {});
  REQUIRE(line.has_value());
  for (const JsonNode& node :
       {line->node().member("a"), line->node().member("b"), line->node().member("l").member("x")}) {
    CHECK_FALSE(static_cast<bool>(node));
    CHECK_FALSE(node.is_object());
    CHECK_FALSE(node.is_list());
    CHECK_FALSE(node.text().has_value());
    CHECK_FALSE(node.flag().has_value());
    CHECK_FALSE(node.number().has_value());
    CHECK_FALSE(node.whole().has_value());
  }
}

TEST_CASE("values that have a text in a context") {
  const Hall hall;
  const Booking booking{Seat{1}, {{0}, {1}}};
  const std::string text = write_fields(booking, hall);
  CHECK(text == R"({"seat":"circle","others":["stalls","circle"]})");
  CHECK(read_fields<Booking>(text, {}, hall).value() == booking);
  const auto wrong = read_fields<Booking>(R"({"others":["circel"]})", {}, hall);
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().what == "\"others[0]\": \"circel\" is not known (did you mean \"circle\"?)");
}

// Every member that is written is declared with its type, and nothing else is.
TEST_CASE("a list of fields has a schema") {
  const auto schema = ordered_json::parse(schema_of_fields<Sheet>());
  const auto fits = [](const ordered_json& value, const ordered_json& of) {
    const ordered_json types = of["type"].is_array() ? of["type"] : ordered_json{of["type"]};
    const bool is_whole = value.is_number_integer() || value.is_number_unsigned();
    return std::ranges::any_of(types, [&](const std::string& type) {
      return type == value.type_name() || (type == "integer" && is_whole);
    });
  };
  const auto written = ordered_json::parse(write_fields(full()));
  for (const auto& [key, value] : written.items()) {
    REQUIRE_MESSAGE(schema["properties"].contains(key), key);
    CHECK_MESSAGE(fits(value, schema["properties"][key]), key);
  }
  CHECK(schema["properties"].size() == written.size());
  const auto least = ordered_json::parse(write_fields(Sheet{}));
  CHECK(schema["required"].size() == least.size());
  for (const auto& key : schema["required"]) CHECK(least.contains(key.get<std::string>()));
  CHECK(fits(least["centre"], schema["properties"]["centre"]));
  CHECK(schema["properties"]["dots"]["items"] ==
        ordered_json::parse(R"({"type":"object","properties":{"x":{"type":"integer"},)"
                            R"("share":{"type":["number","null"]}},"required":["x","share"]})"));
  CHECK(ordered_json::parse(schema_of_fields<Booking, Hall>())["properties"]["others"]["items"] ==
        ordered_json{{"type", "string"}});
}

TEST_CASE("objects without a struct") {
  CHECK(JsonObject().text() == "{}");
  CHECK(JsonObject().add("order", "7.1").add("try", 2u).add("ok", true).text() ==
        R"({"order":"7.1","try":2,"ok":true})");
  CHECK(JsonObject()
            .add_if("a", std::string())
            .add_if("b", 0)
            .add_if("c", std::optional<int>{})
            .empty());
  CHECK(JsonObject().add_if("c", std::optional(0)).add("d", nullptr).text() ==
        R"({"c":0,"d":null})");
  const auto inner = JsonObject().add("x", Colour::green);
  CHECK(JsonObject().add("in", inner).add_all(inner).add_all(JsonObject()).text() ==
        R"({"in":{"x":"green"},"x":"green"})");
  CHECK(JsonObject().add_all(inner).text() == R"({"x":"green"})");
  CHECK(JsonObject().add("doc", JsonText{"[1]"}).add("l", std::vector{1, 2}).text() ==
        R"({"doc":[1],"l":[1,2]})");
  CHECK(JsonList().text() == "[]");
  CHECK(JsonList().add(inner).add(Dot{1, 0}).text() == R"([{"x":"green"},{"x":1,"share":0.00}])");
}

TEST_CASE("numbers") {
  const auto number = [](auto value, NumberFormat format = {}) {
    return JsonList().add(value, format).text();
  };
  CHECK(number(0.1) == "[0.1]");
  CHECK(number(0.1F) == "[0.1]");
  CHECK(number(1.0) == "[1]");
  CHECK(number(1e300) == "[1e+300]");
  CHECK(number(2.0 / 3, decimals(3)) == "[0.667]");
  CHECK(number(2e9 / 3, digits(3)) == "[6.67e+08]");
  CHECK(number(std::numeric_limits<double>::quiet_NaN(), decimals(2)) == "[null]");
  CHECK(number(-std::numeric_limits<double>::infinity()) == "[null]");
  CHECK(number(std::numeric_limits<std::int64_t>::min()) == "[-9223372036854775808]");
  CHECK(number(std::numeric_limits<std::uint64_t>::max()) == "[18446744073709551615]");
  CHECK(number(std::uint8_t{65}) == "[65]");
}

// Every byte alone, between letters and twice: what is not UTF-8 among them.
TEST_CASE("texts are escaped as another writer does") {
  const auto wanted = [](const std::string& text) {
    return ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  };
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    for (const std::string& text : {one, "a" + one + "b", one + one, "\"" + one, "é" + one}) {
      CHECK(json_string(text) == wanted(text));
      CHECK(ordered_json::accept(JsonObject().add(text, text).text()));
    }
  }
  for (const char* text : {"", "\xc3\xa9", "\xed\xa0\x80", "\xf0\x9f\x9a", "\xc0\xaf", "\xff\xfe"})
    CHECK(json_string(text) == wanted(text));
}

}  // namespace weft::fields_test
