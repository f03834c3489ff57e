#include "adapt/live/command_template.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

#include "base/text.hpp"

namespace weft::adapt::live {
namespace {

constexpr std::size_t last_words_bytes_max = 200;

// Calls text(piece) and name(placeholder) in turn.
template <class Text, class Name>
void each_piece(std::string_view pattern, Text text, Name name) {
  const auto is_of_name = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  std::size_t from = 0;
  for (std::size_t open = pattern.find('{'); open != std::string_view::npos;
       open = pattern.find('{', open + 1)) {
    const std::size_t close = std::min(pattern.find('}', open), pattern.size());
    const std::string_view inside = pattern.substr(open + 1, close - open - 1);
    if (close == pattern.size() || inside.empty() || !std::ranges::all_of(inside, is_of_name))
      continue;
    text(pattern.substr(from, open - from));
    name(inside);
    from = close + 1;
  }
  text(pattern.substr(from));
}

Result<std::string> fill(std::string_view pattern, std::span<const Placeholder> values) {
  std::string out;
  each_piece(
      pattern, [&](std::string_view text) { out += text; },
      [&](std::string_view name) {
        const auto value = std::ranges::find(values, name, &Placeholder::first);
        if (value != values.end()) out += value->second;
      });
  if (out.starts_with('-') && !pattern.starts_with('-'))
    return fail(Errc::value, {}, fmt::format("{} would be read as an option", quote(out)));
  return out;
}

}  // namespace

std::vector<std::string> read_argv(Reader& reader, std::string_view key,
                                   std::span<const std::string_view> names, bool required) {
  std::vector<std::string> out;
  for (const Token& token : reader.texts(key)) {
    out.emplace_back(token.text);
    each_piece(
        token.text, [](std::string_view) {},
        [&](std::string_view name) {
          if (std::ranges::find(names, name) == names.end())
            reader.error(Errc::unknown, token.where,
                         fmt::format("unknown placeholder {{{}}}", name),
                         fmt::format("known: {}", fmt::join(names, ", ")));
        });
  }
  if (out.empty() ? required : out.front().find('/') == std::string::npos)
    reader.error(Errc::value, reader.where(key),
                 fmt::format("{} needs the path of a program and its arguments", key),
                 "neither a shell nor PATH is used");
  return out;
}

Result<std::vector<std::string>> fill_argv(const std::vector<std::string>& argv,
                                           std::span<const Placeholder> values) {
  std::vector<std::string> out;
  for (const std::string& pattern : argv) {
    WEFT_TRY(std::string argument, fill(pattern, values));
    out.push_back(std::move(argument));
  }
  return out;
}

std::string last_words(const ProgramOutcome& outcome) {
  const std::string& text = outcome.errors.empty() ? outcome.output : outcome.errors;
  const std::string_view said = trim(text);
  std::string out(said.substr(said.size() - std::min(said.size(), last_words_bytes_max)));
  std::ranges::replace_if(out, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return out;
}

std::string how_it_ended(const ProgramSpec& spec, const ProgramOutcome& outcome) {
  if (outcome.timed_out)
    return fmt::format("{} did not finish within {} ms and was killed", spec.argv.front(),
                       spec.patience.count());
  const std::string end = outcome.signal != 0 ? fmt::format("signal {}", outcome.signal)
                                              : fmt::format("exit code {}", outcome.exit_code);
  return fmt::format("{} ended with {}: {}", spec.argv.front(), end, last_words(outcome));
}

}  // namespace weft::adapt::live
