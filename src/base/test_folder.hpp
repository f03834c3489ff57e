// For tests: a folder of their own.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "base/check.hpp"
#include "base/file.hpp"

namespace weft {
inline namespace base {

// Below `parent`, under a name that nothing else has; gone at the end, with all that is in it.
class TestFolder {
 public:
  explicit TestFolder(const std::filesystem::path& parent = std::filesystem::temp_directory_path())
      : path_((parent / "weft-test-XXXXXX").string()) {
    WEFT_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  // The path of what has that name in it.
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Makes a file that only we may read, as secrets must be; its path.
  std::string write(std::string_view name, std::string_view content) const {
    const std::string path = file(name);
    WEFT_CHECK(write_file(path, content).has_value());
    using std::filesystem::perms;
    std::filesystem::permissions(path, perms::owner_read | perms::owner_write);
    return path;
  }

 private:
  std::string path_;
};

}  // namespace base
}  // namespace weft
