// Shows that each rule can fail, and passes what is right.
#include "rules.hpp"

#include <doctest/doctest.h>

#include "code.hpp"

using namespace weft::tidy;

namespace {

Findings sizes(std::string text) { return check_sizes({"src/a/a.cpp", std::move(text)}); }
Findings banned(std::string text) { return check_banned({"src/a/a.cpp", std::move(text)}); }
std::string lines(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += "x;\n";
  return out;
}

const Files small_house{
    {"src/base/CMakeLists.txt", "weft_room(base LEVEL 0 USES fmt::fmt TEST_LINKS model)"},
    {"src/model/CMakeLists.txt", "weft_room(model LEVEL 1 LINKS base)"},
    {"src/engine/fluid/CMakeLists.txt",
     "# the engine\nweft_room(engine/fluid LEVEL 3 COLD HOT a.cpp\n  LINKS base "
     "model\n  USES fmt NEEDS ipv6)"}};

}  // namespace

TEST_CASE("comments and literals are no code") {
  CHECK(code_of("a // b\nc") == "a     \nc");
  CHECK(code_of("a /* b\n */ c") == "a     \n    c");
  CHECK(code_of("f(\"x\\\"{\", '{', '\\'');") == "f(\"    \", ' ', '  ');");
  CHECK(code_of("1'000'000 {") == "1'000'000 {");
  CHECK(code_of("R\"(x\")y)\" z").ends_with("    z"));
  CHECK(code_of("R\"-({\")-\" z").ends_with(" z"));
  CHECK(code_of("#include \"a/b.hpp\"\n") == "#include \"a/b.hpp\"\n");
}

TEST_CASE("function bodies are found with their lengths") {
  const auto count = [](std::string_view code) {
    const auto functions = functions_in(code);
    return functions.size() == 1 ? functions[0].line_count : 1000 + functions.size();
  };
  CHECK(count("int f() {\n}\n") == 2);
  CHECK(count("namespace a {\nstruct B {\n  int f() const {\n    if (x) {\n    }\n  }\n};\n}") ==
        4);
  CHECK(count("A::A(int b) : b_{b}, c_(1) {\n\n\n}\n") == 4);
  CHECK(count("A::A(int b)\n    : b_(b) {\n\n}\n") == 3);
  CHECK(count("TEST_CASE(\"  \") {\n}\n") == 2);
  CHECK(count("const auto f = [](int x) {\n  return x;\n};\n") == 3);
  CHECK(count("#define M(x) y\nnamespace {\nvoid f() {\n}\n}\n") == 2);
  CHECK(count("template <class T>\nvoid f(T t) {\n}\n") == 2);
  CHECK(count("constexpr int a[] = {1, 2};\nstruct S { int x = 3; };\n") == 1000);
}

TEST_CASE("sizes") {
  CHECK(sizes(std::string(100, 'x') + "\n").empty());
  CHECK(sizes(std::string(101, 'x') + "\n") == Findings{"src/a/a.cpp:1: 101 columns"});
  CHECK(sizes("//" + std::string(96, ' ') + "µµ\n").empty());
  CHECK(sizes(lines(1000)).empty());
  CHECK(sizes(lines(1001)) == Findings{"src/a/a.cpp:1002: 1001 lines"});
  CHECK(sizes("void f() {\n" + lines(68) + "}\n").empty());
  CHECK(sizes("\nvoid f() {\n" + lines(69) + "}\n") ==
        Findings{"src/a/a.cpp:2: a function of 71 lines"});
}

TEST_CASE("banned calls") {
  for (const std::string bad :
       {"int x = rand();", "std::srand(1);", "std::shuffle(a, b, c);", "std::mt19937 r;",
        "std::uniform_int_distribution<int> d;", "std::regex r;", "std::format(\"\");",
        "::system(c);", "popen(c, m);", "strcpy(a, b);", "sprintf(a, b);", "auto p = new int;",
        "delete p;", "std::getenv(\"HOME\");", "goto end;", "atoi(x);", "return new T(x);",
        "CHECK(x == doctest::Approx(1e-6));"}) {
    CAPTURE(bad);
    CHECK(banned(bad).size() == 1);
  }
  CHECK(banned("\n\nsrand(1);")[0] == "src/a/a.cpp:3: srand( is banned; use weft::Rng");
  for (const std::string fine :
       {"rng.shuffle(a);", "operand(1);", "// rand() and new\n", "f(\"system(x)\");",
        "A(const A&) = delete;", "void* operator new(size_t);", "fmt::format(\"\");", "renew(x);",
        "new_link(x);", "snprintf(a, b);", "file_system(x);", "a.deleted = 1;", "std::format_to",
        "x == approx(1e-6)"}) {
    CAPTURE(fine);
    CHECK(banned(fine).empty());
  }
  CHECK(check_banned({"src/cli/main.cpp", "getenv(x);"}).empty());
}

TEST_CASE("elements of what a call returns are no ranges") {
  const auto found = [](const std::string& range) {
    return check_ranges({"src/a/a.cpp", "for (const auto& x : " + range + ") use(x);"}).size();
  };
  for (const char* bad : {"run(text)[0]", "run(text).variants[0].notes", "run(a, {b[0]}).front()",
                          "a.run().value().rows", "*run(text)", "f(x).g().at(1).rows"}) {
    INFO(bad);
    CHECK(found(bad) == 1);
  }
  for (const char* fine :
       {"run(text)", "run(text).variants", "a[0].rows", "a.front().rows", "run(list[0], a.front())",
        "*list", "a.at(b)[0]", "f.nodes(g(x)).rows", "{f(x), g(y)[0]}", "std::views::keys(a)",
        "(*points)[1].rows", "a.value(b, c())", "f(x).value(b, c())"}) {
    INFO(fine);
    CHECK(found(fine) == 0);
  }
  CHECK(check_ranges({"a.cpp", "for (int i = a() ? 1 : 2; i < f()[0]; ++i) {}"}).empty());
  CHECK(check_ranges({"a.cpp", "\nfor (auto r = f(); int x : r()[0]) {}"})
            .front()
            .starts_with("a.cpp:2: "));
}

TEST_CASE("literals are found where they stand") {
  const auto literals = literals_in("a(\"b\\\"c\"); // \"d\"\nR\"x(e\"f)x\" '\"'; \"\"");
  REQUIRE(literals.size() == 3);
  CHECK(literals[0].text == "b\\\"c");
  CHECK(literals[0].line == 1);
  CHECK(literals[1].text == "e\"f");
  CHECK(literals[1].line == 2);
  CHECK(literals[2].text.empty());
}

TEST_CASE("JSON is not made by hand") {
  const auto json = [](std::string text, std::string path = "src/a/a.cpp",
                       const Paths& allowed = {}) {
    return check_json({{std::move(path), std::move(text)}}, allowed);
  };
  for (const std::string bad :
       {R"-(f(R"({{"id":{}}})"))-", R"-(f("{{\"id\":{}}}"))-", R"-(f("\"id\":{}"))-",
        R"-(f(R"("id":"{}")"))-", R"-(f(",\"id\":true"))-", R"-(f(R"(,"id":true)"))-",
        R"-(f("{{\"id\": {}}}"))-", R"-(f("{:.3f},\"a_1\":2"))-"}) {
    CAPTURE(bad);
    CHECK(json(bad) == Findings{"src/a/a.cpp:1: JSON by hand; use weft::JsonObject"});
    CHECK(json(bad, "src/base/a.cpp").empty());
    CHECK(json(bad, "src/a/a_test.cpp").empty());
    CHECK(json(bad, "src/a/a.cpp", {"src/a/a.cpp"}).empty());
  }
  for (const std::string fine :
       {R"-(Table t{{"id"}, {"kind"}};)-", R"-(f("write {\"name\": [ranks...]}"))-",
        R"-(f("\"{}\" is not known"))-", R"-(// {{"id":{}}})-", R"-(f("{}: \"{}\": {}"))-",
        R"-(f("{{scope=\"{}\"}}"))-", R"-(f("{} of them use \"auto\": {}"))-"}) {
    CAPTURE(fine);
    CHECK(json(fine).empty());
  }
  CHECK(json("f();", "src/a/a.cpp", {"src/a/a.cpp"}) ==
        Findings{"src/a/a.cpp: no JSON by hand any more; strike it off the list"});
}

TEST_CASE("headers need their guard and no heavy headers") {
  CHECK(check_banned({"src/a/a.hpp", "#pragma once\nint f();\n"}).empty());
  CHECK(check_banned({"src/a/a.hpp", "int f();\n"}).size() == 1);
  CHECK(check_banned({"src/a/a.hpp", "#pragma once\n#include <nlohmann/json.hpp>\n"}) ==
        Findings{"src/a/a.hpp:2: a heavy header in a header"});
  CHECK(check_banned({"src/a/a.cpp", "#include <nlohmann/json.hpp>\n"}).empty());
}

TEST_CASE("rooms are read from their CMake lists") {
  const Rooms rooms = rooms_of(small_house);
  CHECK(rooms.size() == 3);
  CHECK(rooms.at("engine/fluid").level == 3);
  CHECK(rooms.at("engine/fluid").links == std::vector<std::string>{"base", "model"});
  CHECK(rooms.at("base").links.empty());
  CHECK(rooms.at("base").test_links == std::vector<std::string>{"model"});
}

TEST_CASE("levels") {
  Rooms rooms = rooms_of(small_house);
  CHECK(check_levels(rooms).empty());
  rooms["model"].links.push_back("engine/fluid");
  CHECK(check_levels(rooms) ==
        Findings{"src/model/CMakeLists.txt: links engine/fluid, which is not below it"});
  rooms = rooms_of(small_house);
  rooms["engine/packet"] = {3, {"engine/fluid"}};
  CHECK(check_levels(rooms).empty());  // rooms of one folder may link each other
  rooms["observe/probe"] = {3, {"engine/fluid"}};
  CHECK(check_levels(rooms).size() == 1);  // the same level is not below
  rooms.erase("observe/probe");
  rooms["engine/packet"] = {4, {}};
  CHECK(check_levels(rooms).size() == 1);
  rooms["engine/packet"] = {3, {"gone"}};
  CHECK(check_levels(rooms).size() == 1);
  rooms.erase("engine/packet");
  rooms["cellar"] = {0, {}};
  CHECK(check_levels(rooms).size() == 1);
  rooms.erase("cellar");
  rooms["adapt/sim"] = {6, {}};
  rooms["cli"] = {8, {"adapt/sim"}};
  rooms["app/agent"] = {7, {"adapt/sim"}};
  rooms["adapt/lab"] = {6, {"adapt/sim"}};
  CHECK(check_levels(rooms).empty());
}

TEST_CASE("includes follow the links") {
  const Rooms rooms = rooms_of(small_house);
  const auto check = [&](const char* path, const char* text) {
    return check_includes({{path, text}}, rooms);
  };
  CHECK(check("src/model/a.cpp", "#include \"model/a.hpp\"\n#include \"base/id.hpp\"\n").empty());
  CHECK(check("src/engine/fluid/a.cpp", "#include \"engine/fluid/b.hpp\"\n").empty());
  CHECK(check("src/base/a.cpp", "\n#include \"model/fabric.hpp\"\n") ==
        Findings{"src/base/a.cpp:2: base includes \"model/fabric.hpp\" without linking model"});
  CHECK(check("src/model/a.cpp", "#include \"engine/fluid/solver.hpp\"\n").size() == 1);
  CHECK(check("src/model/a.cpp", "// #include \"engine/fluid/solver.hpp\"\n").empty());
  CHECK(check("src/model/deep/a.cpp", "") == Findings{"src/model/deep/a.cpp: stands in no room"});
  CHECK(check("src/a.cpp", "").size() == 1);
  Rooms with_tests = rooms;
  with_tests["base"].test_links = {"model"};
  const char* const upwards = "#include \"model/fabric.hpp\"\n";
  CHECK(check_includes({{"src/base/a_test.cpp", upwards}}, with_tests).empty());
  CHECK(check_includes({{"src/base/test_kit.hpp", upwards}}, with_tests).empty());
  CHECK(check_includes({{"src/base/a.cpp", upwards}}, with_tests).size() == 1);
}

TEST_CASE("rooms have a README, headers have users") {
  Files files = small_house;
  CHECK(check_readmes(files, rooms_of(files)).size() == 3);
  files.push_back({"src/model/README.md", ""});
  CHECK(check_readmes(files, rooms_of(files)).size() == 2);
  files = {{"src/a/b.hpp", ""},
           {"src/a/b.cpp", "#include \"a/b.hpp\"\n"},
           {"src/a/b_test.cpp", "#include \"a/b.hpp\"\n"}};
  CHECK(check_used(files) == Findings{"src/a/b.hpp: nobody includes it"});
  files.push_back({"tests/c.cpp", "#include \"a/b.hpp\"\n"});
  CHECK(check_used(files).empty());
}

TEST_CASE("marks of unfinished work, and places that users do not have") {
  CHECK(check_finished({"a",
                        "x\n// TO"
                        "DO: more\n"})
            .size() == 1);
  CHECK(check_finished({"a",
                        "FIX"
                        "ME"})
            .size() == 1);
  CHECK(check_finished({"a",
                        "todo list, stubborn, autoTO"
                        "DOs"})
            .empty());
  CHECK(check_places({"README.md",
                      "see ../sha"
                      "red/x"})
            .size() == 1);
  CHECK(check_places({"README.md", "see ../shar/x"}).empty());
}
