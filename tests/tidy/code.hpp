// Just enough of C++'s grammar to look at sources line by line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::tidy {

// The text with comments and the insides of literals blanked out; same length, same line ends.
// #include lines keep their names.
std::string code_of(std::string_view text);

// A string literal, raw or not, as it is spelt: escapes stay.
struct Literal {
  std::string_view text;  // without its quotes
  std::size_t line = 0;   // of its beginning, from 1
};
std::vector<Literal> literals_in(std::string_view text);

// A function body (or a test case) that stands at namespace or class level.
struct Function {
  std::size_t line = 0;  // of its opening brace, from 1
  std::size_t line_count = 0;
};
// Matches braces in code_of(text). A heuristic: braces behind ")" that open no control statement,
// and whatever stands inside belongs to the outermost one.
std::vector<Function> functions_in(std::string_view code);

bool is_word(char c);  // a letter, digit or _
// Where `word` stands on its own, not as a part of a longer identifier: offsets, or line numbers
// from 1.
std::vector<std::size_t> places_of_word(std::string_view code, std::string_view word);
std::vector<std::size_t> lines_with_word(std::string_view code, std::string_view word);

// The quoted names of #include "..." lines with their line numbers.
struct Include {
  std::string name;
  std::size_t line = 0;
};
std::vector<Include> includes_in(std::string_view code);

std::size_t line_at(std::string_view text, std::size_t offset);

}  // namespace weft::tidy
