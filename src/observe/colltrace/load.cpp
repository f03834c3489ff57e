#include "observe/colltrace/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/file.hpp"
#include "base/file_stream.hpp"
#include "base/text.hpp"
#include "observe/colltrace/flight.hpp"

namespace weft::observe::colltrace {
namespace {

enum class Format : std::uint8_t { none, flight };

Format format_of(std::string_view content) {
  const std::string_view head = trim(content.substr(0, 4096));
  if (head.starts_with('\x80')) return Format::flight;
  const auto has = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
  if (head.starts_with('{') && (has("\"entries\"") || has("\"pg_config\""))) return Format::flight;
  return Format::none;
}

struct Input {
  std::string path;
  bool was_named = false;
};

Result<std::vector<Input>> inputs_in(const std::vector<std::string>& paths) {
  std::vector<Input> out;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      out.push_back({path, true});
      continue;
    }
    for (auto entry = std::filesystem::directory_iterator(path, error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
      if (entry->is_regular_file(error)) out.push_back({entry->path().string(), false});
    if (error)
      return fail(Errc::io, {path, 0, 0}, "cannot read the folder: " + error.message(),
                  "give a folder that you may read");
  }
  std::ranges::sort(out, {}, &Input::path);
  return out;
}

// With room behind it for the reader of JSON.
Status read_into(const std::string& path, std::string& content) {
  WEFT_TRY(const File file, open_file(path));
  content.clear();
  content.reserve(file_size_hint(path) + json_padding);
  return read_rest(file.get(), path, file_bytes_max, content);
}

}  // namespace

Result<Job> load_job(const std::vector<std::string>& paths) {
  WEFT_TRY(const std::vector<Input> inputs, inputs_in(paths));
  JobBuilder builder;
  Errors errors;
  std::string content;
  std::size_t files = 0;
  for (const Input& input : inputs) {
    Status status = read_into(input.path, content);
    if (status) {
      const Format format = format_of(content);
      if (format == Format::flight)
        status = read_flight(content, input.path, builder);
      else if (input.was_named)
        status = fail(Errc::parse, {input.path, 0, 0}, "no trace of collectives that weft knows",
                      "see docs/commands/colltrace.md for the formats");
      else
        builder.job().notes.push_back(fmt::format("{}: no trace, left out", input.path));
      // So that the list of entries moves once: what one file has, all have.
      if (format != Format::none && ++files == 1)
        builder.reserve(builder.job().entries.size() * inputs.size() * 11 / 10);
    }
    if (!status) errors.push_back(std::move(status).error());
    if (errors.size() == errors_max) break;
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  Job job = builder.finish();
  if (job.ranks.empty())
    return fail(Errc::value, {paths.empty() ? "" : paths.front(), 0, 0}, "no traces of collectives",
                "give a folder with dumps, see docs/commands/colltrace.md");
  return job;
}

}  // namespace weft::observe::colltrace
