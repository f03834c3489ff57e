#include "plan/life/measured.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <set>

namespace weft::plan::life {
namespace {

// A key with one text; nothing where it is missing or no text, which is an error.
std::optional<Token> name_of(Reader& reader, const Config& section, std::string_view key) {
  reader.text(key, std::nullopt);
  const Config* value = section.find(key);
  if (value == nullptr || value->kind != Config::Kind::scalar) return std::nullopt;
  return token_of(*value);
}

}  // namespace

const JsonLine* Measured::file(const Token& name) {
  const std::filesystem::path given(name.text);
  const std::string path =
      (given.is_absolute() ? given : std::filesystem::path(name.where.file).parent_path() / given)
          .string();
  const auto [at, is_new] = files_.try_emplace(path);
  if (!is_new) return at->second ? &*at->second : nullptr;
  const auto refuse = [&](const Error& error, std::string hint) {
    errors_.push_back(
        {error.code, name.where, fmt::format("{}: {}", path, error.what), std::move(hint)});
    return nullptr;
  };
  const auto text = load_(path);
  if (!text) return refuse(text.error(), text.error().hint);
  auto json = JsonLine::parse(*text, {.file = path});
  if (!json) return refuse(json.error(), "give what the command printed with --json");
  at->second = *std::move(json);
  return &*at->second;
}

std::optional<double> Measured::figure(const JsonLine& run, const Token& variant, const Token& job,
                                       const Token& key) {
  const JsonNode jobs =
      run.node().member("variants").member(std::string(variant.text)).member("jobs");
  if (!jobs) {
    errors_.push_back({Errc::unknown, variant.where,
                       fmt::format("that run has no variant {}", quote(variant.text)),
                       "its variants are those that the table of weft run lists"});
    return std::nullopt;
  }
  const auto found = jobs.member(std::string(job.text)).member(std::string(key.text)).number();
  if (found && *found >= 0 && key.text.ends_with("_s")) return found;
  errors_.push_back({Errc::unknown, key.where,
                     fmt::format("job {} of variant {} has no figure {} in seconds",
                                 quote(job.text), quote(variant.text), quote(key.text)),
                     "name a training job and e.g. checkpoint_stall_s of that JSON"});
  return std::nullopt;
}

std::optional<double> Measured::run_seconds(const Config& section) {
  Reader reader(section, "a time", errors_);
  const auto run = name_of(reader, section, "run"), job = name_of(reader, section, "job");
  const auto variant = name_of(reader, section, "variant");
  const auto key = name_of(reader, section, "figure");
  reader.finish();
  if (!run || !job || !variant || !key) return std::nullopt;
  const JsonLine* json = file(*run);
  return json == nullptr ? std::nullopt : figure(*json, *variant, *job, *key);
}

std::optional<double> Measured::step_factor(const Config& section) {
  Reader reader(section, "factor", errors_);
  const auto run = name_of(reader, section, "run"), job = name_of(reader, section, "job");
  const auto healthy = name_of(reader, section, "healthy");
  const auto faulty = name_of(reader, section, "faulty");
  reader.finish();
  if (!run || !job || !healthy || !faulty) return std::nullopt;
  const JsonLine* json = file(*run);
  if (json == nullptr) return std::nullopt;
  const Token key{"step_time_s", job->where};
  const auto before = figure(*json, *healthy, *job, key), after = figure(*json, *faulty, *job, key);
  if (!before || !after) return std::nullopt;
  if (*before > 0 && *after >= *before && *after <= 1000 * *before) return *after / *before;
  errors_.push_back(
      {Errc::value, faulty->where,
       fmt::format("a step takes {:g} s with the fault and {:g} s without", *after, *before),
       "a factor is within 1 .. 1000"});
  return std::nullopt;
}

std::optional<double> Measured::seconds(const Config& section) {
  if (section.find("run") != nullptr) return run_seconds(section);
  Reader reader(section, "a time", errors_);
  const auto rehearse = name_of(reader, section, "rehearse");
  const auto problem = name_of(reader, section, "problem");
  const std::vector<Token> parts = reader.texts("parts");
  reader.finish();
  if (!rehearse || !problem) return std::nullopt;
  const JsonLine* json = file(*rehearse);
  if (json == nullptr) return std::nullopt;
  const JsonNode problems = json->node().member("ledger").member("problems");
  std::vector<std::string> kinds;
  JsonNode found;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    kinds.push_back(problems.item(i).member("kind").text().value_or(""));
    if (kinds.back() == problem->text) found = problems.item(i);
  }
  const auto refuse = [&](const Where& where, std::string what, std::string hint) {
    errors_.push_back({Errc::unknown, where, std::move(what), std::move(hint)});
    return std::nullopt;
  };
  if (!found)
    return refuse(
        problem->where,
        fmt::format("the ledger of that rehearsal has no problem {}", quote(problem->text)),
        fmt::format("it has: {}; of several --seeds there is none", fmt::join(kinds, ", ")));
  double sum = 0;
  const auto add = [&](const JsonNode& times) {
    const auto mean = times.member("mean_s").number();
    const bool is_known = mean && *mean >= 0 && times.member("count").number().value_or(0) > 0;
    if (is_known) sum += *mean;
    return is_known;
  };
  const auto none = fmt::format("that rehearsal has no finished repair of {}", problem->text);
  if (parts.empty() && !add(found.member("time_to_repair")))
    return refuse(problem->where, none, "rehearse more days");
  std::set<std::string> seen;
  for (const Token& part : parts)
    if (!seen.emplace(part.text).second)
      return refuse(part.where, fmt::format("the part {} is there twice", quote(part.text)),
                    "the parts are added; name each once");
    else if (!add(found.member("parts").member(std::string(part.text))))
      return refuse(part.where, fmt::format("{} with the part {}", none, quote(part.text)),
                    "parts are detect, triage, drain, repair, verify; or rehearse more days");
  return sum;
}

}  // namespace weft::plan::life
