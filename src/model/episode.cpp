#include "model/episode.hpp"

#include <fmt/format.h>

#include <set>

#include "base/json_line.hpp"

namespace weft::model {
namespace {

Episode read_episode(const JsonLine& line, Errors& errors) {
  Episode out;
  out.id = line.text("id", {}, errors);
  out.kind = line.text("kind", {}, errors);
  out.entities = line.texts("entities", errors);
  out.start = line.time("start", {}, errors);
  out.end = line.time("end", still_open, errors);
  if (const auto attrs = line.object("attrs", errors)) out.attrs = attrs->members();
  if (out.end < out.start)
    errors.push_back({Errc::value,
                      line.where(),
                      "\"end\" lies before \"start\"",
                      "leave \"end\" out while it lasts",
                      {}});
  return out;
}

}  // namespace

Result<std::vector<Episode>> read_episodes(LineReader& lines) {
  std::vector<Episode> out;
  std::set<std::string> ids;
  Errors errors;
  while (const auto line = next_json_line(lines, errors)) {
    out.push_back(read_episode(*line, errors));
    if (!ids.insert(out.back().id).second)
      errors.push_back({Errc::value,
                        line->where(),
                        fmt::format("id {} stands twice", base::quoted(out.back().id)),
                        "give each episode an id of its own",
                        {}});
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

std::string to_json(const Episode& episode) {
  std::string out = fmt::format(R"({{"id":{},"kind":{},"entities":[)", json_string(episode.id),
                                json_string(episode.kind));
  const char* comma = "";
  for (const std::string& entity : episode.entities) {
    out += comma + json_string(entity);
    comma = ",";
  }
  out += fmt::format(R"(],"start":"{}","end":)", to_text(episode.start));
  out += episode.end == still_open ? "null" : fmt::format("\"{}\"", to_text(episode.end));
  out += R"(,"attrs":{)";
  comma = "";
  for (const auto& [key, value] : episode.attrs) {
    out += comma + json_string(key) + ":" + json_string(value);
    comma = ",";
  }
  return out + "}}";
}

}  // namespace weft::model
