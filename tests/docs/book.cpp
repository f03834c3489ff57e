#include "book.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/check.hpp"
#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "base/text.hpp"

namespace weft::docs {
namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;
// Of one block: generous, for busy machines.
constexpr std::chrono::seconds patience{600}, patience_long{3000};

struct Ran {
  int status = -1;  // the exit status; -1 when a signal or the end of patience ended it
  std::string out;  // standard output and error
};

// Files are called by their names, wherever the folder is.
std::string without(std::string text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
    text.erase(at, part.size());
  return text;
}

// The end of what a command that failed has printed.
std::string tail(const std::string& text) {
  constexpr std::size_t shown = 20;
  const Lines lines = lines_of(text);
  const std::size_t from = lines.size() > shown ? lines.size() - shown : 0;
  std::string out = from > 0 ? "...\n" : "";
  for (std::size_t i = from; i < lines.size(); ++i) out += lines[i] + "\n";
  return out;
}

// The exit status of a process and its children, which end when patience does; else -1.
int wait_for(pid_t child, Clock::time_point end) {
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > end) ::kill(-child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Bash in that folder; the first command that fails ends it.
Ran run_shell(const std::string& folder, const std::string& text, const std::string& programs,
              std::chrono::seconds limit = patience) {
  const std::string out = folder + ".out";
  std::vector<std::string> words{"bash", "-euo", "pipefail", "-c", text};
  std::vector<std::string> settings{"PATH=" + programs + ":/usr/bin:/bin:/usr/sbin:/sbin",
                                    "HOME=" + folder, "LC_ALL=C.UTF-8", "TERM=dumb"};
  std::vector<char*> argv, environment;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& setting : settings) environment.push_back(setting.data());
  argv.push_back(nullptr);
  environment.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  WEFT_CHECK(posix_spawn_file_actions_init(&actions) == 0);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawnattr_t own_group;
  WEFT_CHECK(posix_spawnattr_init(&own_group) == 0);
  posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  WEFT_CHECK(
      posix_spawn(&child, "/bin/bash", &actions, &own_group, argv.data(), environment.data()) == 0);
  posix_spawnattr_destroy(&own_group);
  posix_spawn_file_actions_destroy(&actions);
  const int status = wait_for(child, Clock::now() + limit);
  Ran ran{status, without(read_file(out).value_or(""), folder + "/")};
  fs::remove(out);
  return ran;
}

std::string joined(const Lines& lines, std::string_view separator) {
  return fmt::format("{}", fmt::join(lines, separator));
}

std::string where(const Page& page, std::size_t line) {
  return fmt::format("{}:{}", page.path, line);
}

// Names in `source` between `before` and a quote or bracket.
void collect(std::string_view source, std::string_view before, std::string_view ends, Lines& out) {
  for (std::size_t at = source.find(before); at != std::string_view::npos;
       at = source.find(before, at)) {
    at += before.size();
    out.emplace_back(source.substr(at, source.find_first_of(ends, at) - at));
  }
}

// The names in a help text's lists of commands: under any heading but those of options.
bool lists_command(std::string_view help, std::string_view name) {
  bool is_list = false;
  for (const std::string_view line : split(help, '\n')) {
    if (!line.starts_with(' ') && !line.empty())
      is_list = line.ends_with(':') && line != "Options:" && line != "Common options:" &&
                line != "Positionals:" && line != "Examples:";
    else if (is_list && trim(line).starts_with(name) &&
             (trim(line).size() == name.size() || trim(line)[name.size()] == ' '))
      return true;
  }
  return false;
}

// Whether a help text names the option: "--seed", "-n".
bool lists_option(std::string_view help, std::string_view option) {
  const auto is_part = [](char c) {
    return c == '-' || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
  };
  for (std::size_t at = help.find(option); at != std::string_view::npos;
       at = help.find(option, at + 1)) {
    const std::size_t end = at + option.size();
    if ((at == 0 || !is_part(help[at - 1])) && (end == help.size() || !is_part(help[end])))
      return true;
  }
  return false;
}

bool is_option(std::string_view word) {
  if (word.starts_with("--")) return word.size() > 2;
  return word.size() == 2 && word[0] == '-' && word[1] >= 'a' && word[1] <= 'z';
}

// "--seed" of "--seed=7".
std::string_view option_name(std::string_view word) { return word.substr(0, word.find('=')); }

std::string base_name(std::string_view word) {
  return std::string(word.substr(word.rfind('/') + 1));
}

}  // namespace

void Tally::add(const Tally& other) {
  compared += other.compared;
  run += other.run;
  parsed += other.parsed;
  excluded.insert(excluded.end(), other.excluded.begin(), other.excluded.end());
  findings.insert(findings.end(), other.findings.begin(), other.findings.end());
}

Book::Book(std::string tree, std::string weft) : tree_(std::move(tree)), weft_(std::move(weft)) {
  for (const std::string_view folder : {"/src", "/tests", "/bench"})
    for (const auto& entry : fs::recursive_directory_iterator(tree_ + std::string(folder))) {
      if (entry.path().extension() != ".cpp") continue;
      const std::string text = read_file(entry.path().string()).value_or("");
      collect(text, "TEST_CASE(\"", "\"", test_cases_);
      collect(text, "TEST_CASE(\n    \"", "\"", test_cases_);
      collect(text, "BENCHMARK(", ")", benchmarks_);
      collect(text, "BENCHMARK_CAPTURE(", ",", benchmarks_);
    }
}

Lines Book::pages() const {
  Lines out{"README.md"};
  for (const std::string_view folder : {"docs", "docs/commands"}) {
    const std::size_t from = out.size();
    for (const auto& entry : fs::directory_iterator(fmt::format("{}/{}", tree_, folder)))
      if (entry.path().extension() == ".md")
        out.push_back(fmt::format("{}/{}", folder, entry.path().filename().string()));
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(from), out.end());
  }
  return out;
}

bool Book::has_long_blocks(const std::string& path) const {
  const Page page = parse_page(path, read_file(tree_ + "/" + path).value_or(""));
  return std::ranges::any_of(page.blocks, [](const Block& b) { return b.is_long.has_value(); });
}

Tally Book::check(const std::string& path, Include include) {
  Tally tally;
  const auto text = read_file(tree_ + "/" + path);
  WEFT_CHECK(text.has_value());
  tally.refreshed = *text;
  const Page page = parse_page(path, *text);
  tally.findings = page.errors;
  if (!page.errors.empty()) return tally;

  const TestFolder folder;
  const auto copy = [&](const std::string& from, const std::string& to) {
    fs::copy(tree_ + from, folder.path() + to, fs::copy_options::recursive);
  };
  copy("/tests/docs/inputs", "");
  for (const std::string_view part : {"/scenarios", "/bench"})
    copy(std::string(part), std::string(part));
  for (std::size_t i = 0; i < page.blocks.size(); ++i)
    check_block(page, i, folder.path(), include, tally);
  for (const Span& span : page.spans) check_commands(where(page, span.line), span.text, tally);
  return tally;
}

void Book::check_block(const Page& page, std::size_t i, const std::string& folder, Include include,
                       Tally& tally) {
  const Block& block = page.blocks[i];
  const std::string place = where(page, block.line);
  const std::string text = joined(block.lines, "\n") + "\n";
  if (block.file) WEFT_CHECK(write_file(folder + "/" + *block.file, text).has_value());
  if (block.same_as) check_same(page, block, tally);
  if (!block.is_commands()) return;

  check_commands(place, text, tally);
  if (block.not_run) {
    tally.excluded.push_back(fmt::format("{}: not run: {}", place, *block.not_run));
    return;
  }
  if (block.is_long && include == Include::short_blocks) {
    tally.excluded.push_back(fmt::format("{}: with long tests: {}", place, *block.is_long));
    return;
  }
  const std::string programs = fs::path(weft_).parent_path().string();
  for (const std::string& command : block.setup)
    if (const Ran ran = run_shell(folder, command, programs); ran.status != 0)
      tally.findings.push_back(
          fmt::format("{}: setup {}: status {}\n{}", place, command, ran.status, ran.out));
  const Ran ran = run_shell(folder, text, programs, block.is_long ? patience_long : patience);
  if (ran.status != block.status) {
    tally.findings.push_back(fmt::format("{}: exit status {}, expected {}\n{}{}", place, ran.status,
                                         block.status, text, tail(ran.out)));
    return;
  }
  if (block.has_output) {
    ++tally.compared;
    compare(page, page.blocks[i + 1], lines_of(ran.out), tally);
  }
  if (block.not_compared) {
    ++tally.run;
    tally.excluded.push_back(fmt::format("{}: not compared: {}", place, *block.not_compared));
  }
}

void Book::compare(const Page& page, const Block& block, const Lines& printed, Tally& tally) const {
  if (matches(block.lines, printed)) return;
  const auto lines = refreshed(block.lines, printed);
  tally.findings.push_back(fmt::format(
      "{}: this is not what the commands print\n{}{}", where(page, block.line),
      difference(block.lines, printed),
      lines ? "" : "The new lines cannot be placed between its \"...\": edit it by hand.\n"));
  if (!lines) return;
  // Blocks above may have got more or fewer lines by now.
  const std::size_t old_lines = lines_of(read_file(tree_ + "/" + page.path).value_or("")).size();
  Block moved = block;
  moved.line += lines_of(tally.refreshed).size() - old_lines;
  tally.refreshed = with_block(tally.refreshed, moved, *lines);
}

void Book::check_same(const Page& page, const Block& block, Tally& tally) const {
  ++tally.compared;
  const Page other =
      parse_page(*block.same_as, read_file(tree_ + "/" + *block.same_as).value_or(""));
  for (const Block& there : other.blocks) {
    if (!there.is_output() || there.same_as || block.lines.empty()) continue;
    const auto first = std::ranges::find(there.lines, block.lines[0]);
    const auto size = static_cast<std::ptrdiff_t>(block.lines.size());
    if (first == there.lines.end() || there.lines.end() - first < size) continue;
    return compare(page, block, Lines(first, first + size), tally);
  }
  tally.findings.push_back(fmt::format("{}: {} has no output with the first of these lines",
                                       where(page, block.line), *block.same_as));
}

const std::string& Book::help_of(const Lines& command) {
  const std::string key = joined(command, " ");
  if (const auto found = help_.find(key); found != help_.end()) return found->second;
  const TestFolder folder;
  const Ran ran = run_shell(folder.path(), key + " --help", fs::path(weft_).parent_path().string());
  return help_[key] = ran.status == 0 ? ran.out : "";
}

void Book::check_commands(const std::string& where, std::string_view text, Tally& tally) {
  for (const Lines& words : commands_in(text)) {
    if (base_name(words[0]) == "weft" && words.size() > 1)
      check_weft(where, words, tally);
    else
      check_other(where, words, tally);
  }
}

void Book::check_weft(const std::string& where, const Lines& words, Tally& tally) {
  ++tally.parsed;
  Lines command{"weft"};
  std::size_t i = 1;
  while (i < words.size() && lists_command(help_of(command), words[i]))
    command.push_back(words[i++]);
  if (command.size() == 1 && !is_option(words[1])) {
    tally.findings.push_back(fmt::format("{}: weft has no command \"{}\"", where, words[1]));
    return;
  }
  // Options of a command are also those of the commands that it belongs to.
  std::string help;
  for (Lines outer = command; !outer.empty(); outer.pop_back()) help += help_of(outer) + "\n";
  for (; i < words.size() && words[i] != "--"; ++i)
    if (const std::string_view option = option_name(words[i]);
        is_option(option) && !lists_option(help, option))
      tally.findings.push_back(
          fmt::format("{}: {} has no option {}", where, joined(command, " "), option));
}

// Programs of the tree: filters match something, files are there.
void Book::check_other(const std::string& where, const Lines& words, Tally& tally) {
  constexpr std::string_view cases = "--test-case=", benchmarks = "--benchmark_filter=";
  for (const std::string_view word : words) {
    if (word.starts_with(cases) && std::ranges::none_of(test_cases_, [&](const std::string& name) {
          return fits(word.substr(cases.size()), name, "*");
        }))
      tally.findings.push_back(fmt::format("{}: no test case matches {}", where, word));
    if (word.starts_with(benchmarks) &&
        std::ranges::none_of(benchmarks_, [&](const std::string& name) {
          return name.find(word.substr(benchmarks.size())) != std::string::npos;
        }))
      tally.findings.push_back(fmt::format("{}: no benchmark matches {}", where, word));
  }
  for (const std::string_view folder : {"bench/", "scenarios/", "scripts/"})
    if (words[0].starts_with(folder) && !fs::exists(tree_ + "/" + words[0]))
      tally.findings.push_back(fmt::format("{}: there is no {}", where, words[0]));
}

}  // namespace weft::docs
