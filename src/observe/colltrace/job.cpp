#include "observe/colltrace/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace weft::observe::colltrace {

std::uint32_t JobBuilder::group(std::string_view name, std::string_view description,
                                const std::vector<std::uint32_t>& members) {
  std::string key(name);
  for (const std::uint32_t rank : members) {
    key += fmt::format(",{}", rank);
    job_.world = std::max(job_.world, rank + 1);
  }
  const auto [at, is_new] =
      groups_.try_emplace(key, static_cast<std::uint32_t>(job_.groups.size()));
  if (is_new) job_.groups.push_back({std::string(name), std::string(description), members, false});
  return at->second;
}

std::uint32_t JobBuilder::pair(std::uint32_t group, std::uint32_t from, std::uint32_t to) {
  const std::string key = fmt::format("{}>{},{}", group, from, to);
  const auto [at, is_new] =
      groups_.try_emplace(key, static_cast<std::uint32_t>(job_.groups.size()));
  if (is_new) {
    const Group& whole = job_.groups[group];
    Group out{whole.name, whole.description, {from, to}, true};
    job_.groups.push_back(std::move(out));
  }
  return at->second;
}

std::uint32_t JobBuilder::signature(std::string_view text) {
  const auto [at, is_new] =
      signatures_.try_emplace(std::string(text), static_cast<std::uint32_t>(signatures_.size()));
  if (is_new) {
    const std::vector<std::string_view> parts = split(text, '\t');
    Signature out{std::string(parts[0]), {}, {}};
    if (parts.size() > 1) out.type = parts[1];
    if (parts.size() > 2) out.size = parts[2];
    job_.signatures.push_back(std::move(out));
  }
  return at->second;
}

namespace {

// Nobody numbers the sends of a pair. Both ends have completed the same ones, unless one has just
// ended on one side: they are counted from the last completed one, -1, on.
void number_sends(const std::vector<Group>& groups, std::span<Entry> entries) {
  std::unordered_map<std::uint32_t, std::uint32_t> completed;
  for (const Entry& e : entries)
    if (groups[e.group].is_pair && e.state == EntryState::completed) ++completed[e.group];
  constexpr std::uint32_t middle = 1u << 31;
  std::unordered_map<std::uint32_t, std::uint32_t> next;
  for (Entry& e : entries) {
    if (!groups[e.group].is_pair) continue;
    const auto [at, is_new] = next.try_emplace(e.group, middle - completed[e.group]);
    e.seq = at->second++;
  }
}

}  // namespace

Status JobBuilder::add(RankTrace rank, std::span<Entry> entries) {
  const auto [at, is_new] = files_.try_emplace(rank.rank, rank.file);
  if (!is_new)
    return fail(Errc::value, {rank.file, 0, 0},
                fmt::format("rank {} is in {} already", rank.rank, at->second),
                "give the dumps of one job and one moment");
  job_.world = std::max(job_.world, rank.rank + 1);
  number_sends(job_.groups, entries);
  rank.begin = job_.entries.size();
  job_.entries.insert(job_.entries.end(), entries.begin(), entries.end());
  rank.end = job_.entries.size();
  job_.ranks.push_back(std::move(rank));
  return {};
}

Job JobBuilder::finish() {
  std::ranges::sort(job_.ranks, {}, &RankTrace::rank);
  return std::move(job_);
}

Result<std::vector<std::uint32_t>> parse_ranks(std::string_view text, const std::string& file) {
  const auto refuse = [&] {
    return fail(Errc::parse, {file, 0, 0}, fmt::format("{} is not a list of ranks", quote(text)),
                "write e.g. \"[0, 1, 2]\"");
  };
  text = trim(text);
  if (!text.starts_with('[') || !text.ends_with(']') || text.size() < 2) return refuse();
  text = trim(text.substr(1, text.size() - 2));
  std::vector<std::uint32_t> out;
  while (!text.empty()) {
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error != std::errc{} || rank >= JobBuilder::rank_max) return refuse();
    out.push_back(rank);
    text = trim(text.substr(static_cast<std::size_t>(end - text.data())));
    if (text.empty()) break;
    if (text.front() != ',') return refuse();
    text = trim(text.substr(1));
    if (text.empty()) return refuse();
  }
  return out;
}

}  // namespace weft::observe::colltrace
