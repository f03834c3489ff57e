#include "workload/trace/chakra_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.hpp"
#include "workload/trace/json_text.hpp"

namespace weft::workload {
namespace {

using Json = nlohmann::json;
using Ranks = std::vector<std::uint32_t>;

constexpr const char* rank_hint =
    "ranks are integers from 0 to 1048575, each at most once per group";

// The ranks of one group, or what is wrong with them.
Result<Ranks> ranks_of(const Json& list, std::string_view group, const std::string& file) {
  const auto wrong = [&](const std::string& what) {
    return fail(Errc::value, {file}, fmt::format("group {}: {}", quote(group), what), rank_hint);
  };
  if (!list.is_array()) return wrong("not a list of ranks");
  Ranks ranks;
  for (const Json& rank : list) {
    if (!rank.is_number_integer() || rank < 0 || rank >= trace_ranks_max)
      return wrong(fmt::format("element {} is not a rank", ranks.size() + 1));
    ranks.push_back(rank.get<std::uint32_t>());
  }
  Ranks sorted = ranks;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) return wrong(fmt::format("duplicate rank {}", *twice));
  return ranks;
}

void add_group(ChakraGroups& groups, const std::string& name, Ranks&& ranks) {
  for (const std::uint32_t rank : ranks)
    groups.ranks_named = std::max(groups.ranks_named, rank + 1);
  groups.ranks.try_emplace(name, std::move(ranks));
}

// A text, or a number as some versions write it.
std::optional<std::string> group_name(const Json& name) {
  if (name.is_string()) return name.get<std::string>();
  if (name.is_number_integer()) return name.dump();
  return std::nullopt;
}

Status add_listed(const Json& list, const std::string& file, ChakraGroups& groups) {
  for (const Json& group : list) {
    if (!group.is_object() || !group.contains("pg_name") || !group.contains("ranks"))
      return fail(Errc::value, {file}, "a process group without pg_name and ranks",
                  "provide the groups in a file {\"name\": [ranks...]}");
    const std::optional<std::string> name = group_name(group["pg_name"]);
    if (!name)
      return fail(Errc::value, {file}, "pg_name is neither a string nor a number",
                  "provide the groups in a file {\"name\": [ranks...]}");
    WEFT_TRY(Ranks ranks, ranks_of(group["ranks"], *name, file));
    const auto size = group.find("group_size");
    if (ranks.empty() && size != group.end() && size->is_number_integer() && *size > 0 &&
        *size <= trace_ranks_max)
      groups.ranks_named = std::max(groups.ranks_named, size->get<std::uint32_t>());
    add_group(groups, *name, std::move(ranks));
  }
  return {};
}

// The JSON list inside a Python-like list of texts: ['[{"pg_name": ...}]'].
std::string_view embedded_json(std::string_view values) {
  const std::size_t first = values.find("[{");
  const std::size_t last = values.rfind("}]");
  if (first == std::string_view::npos || last == std::string_view::npos || last < first) return {};
  return values.substr(first, last + 2 - first);
}

// Whether `b` is `a` with a constant added to every rank.
bool same_shape(const Ranks& a, const Ranks& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (b[i] - b[0] != a[i] - a[0]) return false;  // wraps alike on both sides
  return true;
}

}  // namespace

const Ranks* ChakraGroups::find(std::string_view name) const {
  const auto found = ranks.find(name);
  return found == ranks.end() ? nullptr : &found->second;
}

Result<ChakraGroups> read_group_file(const TraceFile& file) {
  ChakraGroups groups;
  constexpr const char* hint = "write {\"name\": [ranks...], ...}";
  if (is_nested_too_deep(file.content)) return fail(Errc::parse, {file.path}, json_too_deep, hint);
  try {
    const Json json = Json::parse(file.content);
    if (!json.is_object())
      return fail(Errc::parse, {file.path}, "not a JSON object",
                  "write {\"name\": [ranks...], ...}");
    for (const auto& [name, list] : json.items()) {
      WEFT_TRY(Ranks ranks, ranks_of(list, name, file.path));
      add_group(groups, name, std::move(ranks));
    }
  } catch (const Json::exception& error) {
    return fail(Errc::parse, {file.path}, error.what(), hint);
  }
  return groups;
}

Status add_embedded_groups(const ChakraTrace& trace, const std::string& file,
                           ChakraGroups& groups) {
  for (const ChakraNode& node : trace.nodes) {
    if (!node.inputs.contains("pg_name")) continue;
    const std::string_view text = embedded_json(node.inputs);
    if (text.empty()) continue;
    const auto broken = [&](std::string_view what) {
      return fail(Errc::parse, {file},
                  fmt::format("byte {} of the stream: the process groups in node {}: {}", node.at,
                              node.id, what),
                  "provide the groups in a file {\"name\": [ranks...]}");
    };
    if (is_nested_too_deep(text)) return broken(json_too_deep);
    try {
      WEFT_TRY_STATUS(add_listed(Json::parse(text), file, groups));
    } catch (const Json::exception& error) {
      return broken(error.what());
    }
  }
  return {};
}

Result<std::vector<Ranks>> sibling_groups(const ChakraGroups& groups, std::string_view name,
                                          std::uint32_t count) {
  const Ranks* own = groups.find(name);
  std::vector<Ranks> family;
  std::vector<std::uint8_t> taken(count, 0);
  const auto take = [&](const Ranks& ranks) {
    for (const std::uint32_t rank : ranks)
      if (rank >= count || taken[rank] != 0) return;
    for (const std::uint32_t rank : ranks) taken[rank] = 1;
    family.push_back(ranks);
  };
  if (own != nullptr) take(*own);
  if (own != nullptr)
    for (const auto& [other, ranks] : groups.ranks)
      if (same_shape(*own, ranks)) take(ranks);
  const auto missing = std::ranges::find(taken, 0);
  if (missing == taken.end()) return family;
  return fail(Errc::unsupported, {},
              fmt::format("rank {} of {} is in no group like {}, so the single recorded program "
                          "does not determine what it does",
                          missing - taken.begin(), count, quote(name)),
              "provide the traces of all ranks, or a group for every rank");
}

std::uint64_t tensor_bytes(std::string_view values) {
  constexpr std::uint64_t elements_max = std::uint64_t{1} << 56;
  std::uint64_t total = 0;
  std::vector<std::uint64_t> numbers;  // of the innermost list that is open
  for (std::size_t i = 0; i < values.size() && total < elements_max;) {
    const char c = values[i];
    if (c >= '0' && c <= '9') {
      std::uint64_t value = 0;
      for (; i < values.size() && values[i] >= '0' && values[i] <= '9'; ++i)
        value = std::min(elements_max, value * 10 + static_cast<std::uint64_t>(values[i] - '0'));
      if (numbers.size() < 6) numbers.push_back(value);
      continue;
    }
    if (c == '\'' || c == '"') {  // a text: a tensor ends with its device
      const std::size_t end = values.find(c, i + 1);
      if (numbers.size() == 5 && numbers[4] <= 64) total += numbers[3] * numbers[4];
      i = end == std::string_view::npos ? values.size() : end;
    }
    if (c == '[' || c == ']' || c == '\'' || c == '"') numbers.clear();
    ++i;
  }
  return total;
}

}  // namespace weft::workload
