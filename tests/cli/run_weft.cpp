#include "run_weft.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/check.hpp"
#include "base/file.hpp"

namespace weft::cli_test {
namespace fs = std::filesystem;

void Scratch::write(const std::string& name, const std::string& text) const {
  WEFT_CHECK(write_file(folder_.file(name), text).has_value());
}

bool Scratch::has(const std::string& name) const { return fs::exists(folder_.file(name)); }

std::string Scratch::read(const std::string& name) const {
  return read_file(folder_.file(name)).value_or("");
}

std::vector<std::string> Scratch::files() const {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(path()))
    if (entry.is_regular_file()) out.push_back(fs::relative(entry.path(), path()).string());
  std::ranges::sort(out);
  return out;
}

namespace {

// Output goes to files, so that no pipe can fill up. `before`: a program and its arguments, to run
// weft, or nothing.
pid_t spawn(const std::string& folder, std::vector<std::string> before,
            const std::vector<std::string>& arguments, const std::string& out,
            const std::string& err) {
  std::vector<std::string> words = std::move(before);
  words.push_back(WEFT_BINARY);
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::string binary = words.front();
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  constexpr int create = O_WRONLY | O_CREAT | O_TRUNC;
  WEFT_CHECK(posix_spawn_file_actions_init(&actions) == 0);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), create, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), create, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t child = 0;
  WEFT_CHECK(posix_spawn(&child, binary.c_str(), &actions, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

}  // namespace

Outcome Scratch::run(const std::vector<std::string>& arguments) const {
  const std::string out = path() + ".out", err = path() + ".err", memory = path() + ".memory";
  std::vector<std::string> measure;
#ifdef WEFT_PEAK_MEMORY
  measure = {WEFT_PEAK_MEMORY, memory};
#endif
  const int status = wait_for(spawn(path(), measure, arguments, out, err));
  Outcome outcome{status, read_file(out).value_or(""), read_file(err).value_or("")};
  const std::string kib = read_file(memory).value_or("");
  std::from_chars(kib.data(), kib.data() + kib.size(), outcome.memory_kib);
  for (const std::string& file : {out, err, memory}) fs::remove(file);
  return outcome;
}

int Scratch::start(const std::vector<std::string>& arguments, const std::string& out) const {
  return spawn(path(), {}, arguments, folder_.file(out), folder_.file(out + ".err"));
}

int wait_for(int process) {
  int status = 0;
  WEFT_CHECK(::waitpid(process, &status, 0) == process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string tree() { return WEFT_TREE; }

}  // namespace weft::cli_test
