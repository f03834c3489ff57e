#include "model/events/episode.hpp"

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
                      "\"end\" is before \"start\"",
                      "omit \"end\" while the episode is ongoing",
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
                        fmt::format("duplicate id {}", quote(out.back().id)),
                        "give each episode a unique id",
                        {}});
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

std::string to_json(const Episode& episode) {
  JsonObject attrs;
  for (const auto& [key, value] : episode.attrs) attrs.add(key, value);
  JsonObject out;
  out.add("id", episode.id)
      .add("kind", episode.kind)
      .add("entities", episode.entities)
      .add("start", episode.start)
      .add("end", episode.end == still_open ? std::nullopt : std::optional(episode.end))
      .add("attrs", attrs);
  return std::move(out).text();
}

}  // namespace weft::model
