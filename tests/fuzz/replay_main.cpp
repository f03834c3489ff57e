// Runs one fuzz target over every file of the directories and files named on the command line.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "fuzz.hpp"

namespace {

std::vector<std::string> inputs_of(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.is_regular_file()) out.push_back(entry.path().string());
  std::ranges::sort(out);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const std::string& path : inputs_of(argv[i])) {
      const auto input = weft::read_file(path);
      if (!input) {
        std::fprintf(stderr, "%s\n", input.error().text().c_str());
        return 1;
      }
      std::printf("%s\n", path.c_str());  // the last line printed names the input that crashed
      std::fflush(stdout);
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input->data()), input->size());
      ++count;
    }
  }
  std::printf("%zu inputs\n", count);
  return count > 0 ? 0 : 1;
}
