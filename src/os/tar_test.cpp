#include "os/tar.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <filesystem>

#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "os/digest.hpp"

using namespace weft;

namespace {

// With another type of entry and the checksum put right: both are single digits apart from '0'.
std::string of_type(std::string tar, char type) {
  tar[156] = type;
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[i]);
  for (std::size_t i = 0; i < 6; ++i, sum /= 8) tar[153 - i] = static_cast<char>('0' + sum % 8);
  return tar;
}

}  // namespace

TEST_CASE("an archive is read as it was written") {
  const std::vector<ArchiveFile> files{{"a/b.txt", std::string(513, 'x')}, {"empty", ""}};
  const auto tar = write_tar(files, {1'700'000'000 * ns_per_s});
  REQUIRE(tar.has_value());
  CHECK(tar->size() == 512 + 1'024 + 512 + 1'024);  // header, body, header, end
  CHECK(is_tar(*tar));
  CHECK(*tar == *write_tar(files, {1'700'000'000 * ns_per_s}));
  const auto again = read_plain_tar(*tar, "f");
  REQUIRE(again.has_value());
  REQUIRE(again->size() == 2);
  CHECK((*again)[0].name == "a/b.txt");
  CHECK((*again)[0].content == files[0].content);
  CHECK((*again)[1].name == "empty");
  const auto members = read_tar(*tar, "f");
  REQUIRE(members.has_value());
  CHECK(members->at(0).content == files[0].content);
}

TEST_CASE("names that would leave the folder, and duplicates, are neither written nor read") {
  for (const char* name : {"", "../x", "/x", "x/", "a b", "x\n"})
    CHECK_FALSE(write_tar({{name, ""}}, {0}).has_value());
  CHECK_FALSE(write_tar({{std::string(100, 'x'), ""}}, {0}).has_value());
  CHECK_FALSE(write_tar({{"x", ""}, {"x", ""}}, {0}).has_value());

  const std::string one = *write_tar({{"x", ""}}, {0});
  const auto twice = read_plain_tar(one.substr(0, 512) + one, "f");
  REQUIRE_FALSE(twice.has_value());
  CHECK(twice.error().what == "byte 512 of the archive: duplicate file x in the archive");
  std::string rooted = one;
  rooted[0] = '/';
  CHECK_FALSE(read_plain_tar(of_type(rooted, '0'), "f").has_value());
  CHECK(read_tar(of_type(rooted, '0'), "f").has_value());
}

TEST_CASE("links, directories and devices are left out, or refused where only files are expected") {
  const std::string plain = *write_tar({{"x", ""}}, {0});
  CHECK(of_type(plain, '0') == plain);
  for (const char type : {'1', '2', '3', '4', '5', '6'}) {
    const std::string other = of_type(plain, type);
    const auto members = read_tar(other, "f");
    REQUIRE(members.has_value());
    CHECK(members->empty());
    CHECK_FALSE(read_plain_tar(other, "f").has_value());
  }
}

TEST_CASE("every single byte of a header matters, and every block of the archive") {
  const std::string tar = *write_tar({{"a", "b"}}, {0});
  for (std::size_t at = 0; at < 512; ++at) {
    if (at == 155) continue;  // behind the end of the header's own sum
    std::string other = tar;
    other[at] = static_cast<char>(other[at] ^ 1);
    CHECK_FALSE(read_plain_tar(other, "f").has_value());
  }
  for (std::size_t size = 0; size < 1'536; ++size)  // up to the first block of the end
    CHECK_FALSE(read_plain_tar(std::string_view(tar).substr(0, size), "f").has_value());
}

namespace {

// Everything in it, or the first error.
Result<std::vector<ArchiveFile>> read_all(const std::string& path) {
  WEFT_TRY(TarReader reader, TarReader::open(path));
  std::vector<ArchiveFile> out;
  for (;;) {
    WEFT_TRY(const auto member, reader.next());
    if (!member) return out;
    out.push_back({member->name, ""});
    WEFT_TRY_STATUS(reader.content([&](std::string_view piece) -> Status {
      out.back().content += piece;
      return {};
    }));
    REQUIRE(out.back().content.size() == member->bytes);
  }
}

}  // namespace

TEST_CASE(
    "an archive written file by file is the one written at once, and read as it was written") {
  const TestFolder folder;
  const std::vector<ArchiveFile> files{
      {"a/b.txt", std::string(513, 'x')}, {"empty", ""}, {"large", std::string(3 << 20, 'y')}};
  const Timestamp t{1'700'000'000 * ns_per_s};
  auto writer = TarWriter::create(folder.file("f.tar"), t);
  REQUIRE(writer.has_value());
  REQUIRE(writer->add("a/b.txt", files[0].content).has_value());
  REQUIRE(writer->add("empty", "").has_value());
  const std::string path = folder.write("content", files[2].content);
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto added = writer->add_file("large", file, path);
  REQUIRE(added.has_value());
  CHECK(added->bytes == files[2].content.size());
  CHECK(added->sha256 == sha256_hex(files[2].content));
  CHECK_FALSE(writer->add("empty", "").has_value());
  CHECK_FALSE(std::filesystem::exists(folder.file("f.tar")));
  REQUIRE(writer->finish().has_value());
  CHECK(*read_file(folder.file("f.tar")) == *write_tar(files, t));
  const auto again = read_all(folder.file("f.tar"));
  REQUIRE(again.has_value());
  REQUIRE(again->size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK((*again)[i].name == files[i].name);
    CHECK((*again)[i].content == files[i].content);
  }
}

TEST_CASE(
    "an archive read file by file: cut anywhere or one bit changed, it is refused or differs") {
  const TestFolder folder;
  const std::vector<ArchiveFile> files{{"x", "content"}, {"y", ""}};
  const std::string whole = *write_tar(files, {1'700'000'000 * ns_per_s});
  const auto is_same = [&](const std::string& bytes) {
    const auto found = read_all(folder.write("f.tar", bytes));
    return found && found->size() == 2 && (*found)[0].name == "x" && (*found)[1].name == "y" &&
           (*found)[0].content == "content" && (*found)[1].content.empty();
  };
  CHECK(is_same(whole));
  CHECK_FALSE(is_same(whole + '\0'));
  for (std::size_t size = 0; size < whole.size(); size += 7)
    CHECK_FALSE_MESSAGE(is_same(whole.substr(0, size)), size);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    CHECK_FALSE_MESSAGE(is_same(changed), at);
  }
}
