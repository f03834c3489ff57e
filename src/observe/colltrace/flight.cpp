#include "observe/colltrace/flight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "base/text.hpp"
#include "observe/colltrace/flight_sink.hpp"

namespace weft::observe::colltrace {
namespace {

// "nccl:send 3->5" and "nccl:recv 5<-3": from 3 to 5, as members of their group.
std::optional<std::pair<std::uint32_t, std::uint32_t>> ends_of(std::string_view name) {
  const bool is_send = name.starts_with("nccl:send ");
  if (!is_send && !name.starts_with("nccl:recv ")) return {};
  name.remove_prefix(10);
  const std::size_t arrow = name.find(is_send ? "->" : "<-");
  if (arrow == std::string_view::npos) return {};
  const auto number = [](std::string_view text) -> std::optional<std::uint32_t> {
    std::uint32_t out = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc{} || end != text.data() + text.size()) return {};
    return out;
  };
  const auto a = number(name.substr(0, arrow)), b = number(name.substr(arrow + 2));
  if (!a || !b) return {};
  return is_send ? std::pair(*a, *b) : std::pair(*b, *a);
}

bool contains(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

}  // namespace

std::unexpected<Error> FlightSink::refuse(std::string what) const {
  return fail(Errc::value, {file_, 0, 0}, std::move(what), "give a dump of the flight recorder");
}

Status FlightSink::version(std::string_view text) {
  const std::size_t dot = text.find('.');
  const auto major = parse_count({text.substr(0, dot), {file_, 0, 0}});
  const auto minor =
      dot == std::string_view::npos ? major : parse_count({text.substr(dot + 1), {file_, 0, 0}});
  if (!major || !minor) return refuse(fmt::format("{} is not a version", quote(text)));
  if (*major != 2 || *minor < 4)
    return fail(Errc::unsupported, {file_, 0, 0},
                fmt::format("version {} of the flight recorder's dumps", text),
                "weft reads 2.4 to 2.10");
  constexpr std::int64_t newest = 10;
  if (*minor > newest)
    job_.job().notes.push_back(
        fmt::format("{}: version {} is newer than the latest supported one (2.10)", file_, text));
  has_version_ = true;
  return {};
}

std::uint32_t FlightSink::index_of(std::string_view name, std::string_view description) {
  const auto at = std::ranges::find(groups_, name, &Known::name);
  if (at != groups_.end()) return static_cast<std::uint32_t>(at - groups_.begin());
  groups_.push_back({std::string(name), std::string(description), {}});
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

Status FlightSink::group(std::string_view name, std::string_view description,
                         std::string_view ranks) {
  Known& known = groups_[index_of(name, description)];
  if (!description.empty()) known.description = description;
  ((((raw_ = name) += '\t') += description) += '\t') += ranks;
  known.group = job_.known_group(raw_);
  if (known.group) return {};
  WEFT_TRY(const std::vector<std::uint32_t> members, parse_ranks(ranks, file_));
  known.group = job_.group(name, description, members);
  job_.remember_group(raw_, *known.group);
  return {};
}

// Sizes differ rightly where each member sends what it likes, or one member alone has the other
// side. Most entries repeat: what they say is looked up as it stands.
std::uint32_t FlightSink::signature_of(const FlightFields& f, bool is_send) {
  raw_.assign(f.name);
  for (const std::string_view part : {f.in_sizes, f.out_sizes, f.in_types, f.out_types})
    (raw_ += '\t') += part;
  if (const auto known = job_.known_signature(raw_)) return *known;
  const bool is_free = is_send || contains(f.name, "all_to_all") || contains(f.name, "alltoall");
  const bool is_gather = contains(f.name, "nccl:gather"), is_scatter = contains(f.name, ":scatter");
  const auto add = [&](std::string_view text) {
    for (const char c : text)
      if (c != ' ' && c != '\n' && c != '\t') signature_ += c;
    signature_ += ' ';
  };
  signature_ = is_send ? std::string_view("nccl:send") : f.name;
  signature_ += '\t';
  if (!is_scatter && !is_send) add(f.in_types);
  if (!is_gather && !is_send) add(f.out_types);
  signature_ += '\t';
  if (!is_free && !is_scatter) add(f.in_sizes);
  if (!is_free && !is_gather) add(f.out_sizes);
  const std::uint32_t out = job_.signature(signature_);
  job_.remember_signature(raw_, out);
  return out;
}

// The parts of a batch of sends stay scheduled for ever; its end has the state and times.
void FlightSink::end_of_batch(const Entry& whole) {
  for (std::size_t i = sends_.size(); i-- > 0;) {
    Entry& part = entries_[sends_[i].entry];
    if (part.group != whole.group) continue;
    if (part.state != EntryState::scheduled) break;
    part.state = whole.state;
    part.started_ns = whole.started_ns;
    part.ended_ns = whole.ended_ns;
  }
}

Status FlightSink::entry(const FlightFields& f) {
  if (f.name.empty() || f.group.empty() || f.state.empty() || !f.has_seq)
    return refuse(
        fmt::format("entry {} lacks one of profiling_name, process_group, state, "
                    "collective_seq_id",
                    entries_.size()));
  Entry e{.created_ns = f.created_ns, .started_ns = f.started_ns, .ended_ns = f.ended_ns};
  if (f.state == "completed")
    e.state = EntryState::completed;
  else if (f.state == "started")
    e.state = EntryState::started;
  else if (f.state != "scheduled")
    return refuse(fmt::format("entry {}: {} is not a state", entries_.size(), quote(f.state)));
  e.group = index_of(f.group, f.description);
  e.seq = static_cast<std::uint32_t>(f.seq);
  e.duration_us = static_cast<float>(f.duration_ms * 1000);
  const auto ends = ends_of(f.name);
  if (ends) sends_.push_back({entries_.size(), ends->first, ends->second});
  e.signature = signature_of(f, ends.has_value()) & ((1u << 29) - 1);
  if (contains(f.name, "nccl:coalesced") && f.is_p2p) {
    e.is_aside = 1;
    end_of_batch(e);
  }
  records_.push_back(f.has_record ? f.record : entries_.size());
  entries_.push_back(e);
  return {};
}

Status FlightSink::finish() {
  if (!has_version_) return refuse("no version");
  std::vector<std::uint32_t> index;
  for (const Known& known : groups_) {
    if (!known.group)
      job_.job().notes.push_back(fmt::format("{}: process group {} has no members in pg_config",
                                             file_, quote(known.name)));
    index.push_back(known.group ? *known.group : job_.group(known.name, known.description, {}));
  }
  for (Entry& e : entries_) e.group = index[e.group];
  for (const Send& send : sends_) {
    Entry& e = entries_[send.entry];
    const std::vector<std::uint32_t>& members = job_.job().groups[e.group].members;
    if (send.from >= members.size() || send.to >= members.size())
      return refuse("a send names a member that its process group does not have");
    const std::uint32_t from = members[send.from], to = members[send.to];
    e.group = job_.pair(e.group, from, to);
  }
  RankTrace rank{.rank = rank_, .file = file_};
  if (!std::ranges::is_sorted(records_)) {  // a ring is dumped from its oldest entry on
    std::vector<std::size_t> order(records_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return records_[i]; });
    std::vector<Entry> sorted;
    for (const std::size_t i : order) sorted.push_back(entries_[i]);
    entries_ = std::move(sorted);
    std::ranges::sort(records_);
  }
  rank.first_record = records_.empty() ? 0 : records_.front();
  return job_.add(std::move(rank), entries_);
}

Result<std::uint32_t> rank_of_file(const std::string& file) {
  std::string_view name(file);
  name = name.substr(name.rfind('/') + 1);
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos && dot > 0)
    name = name.substr(0, dot);
  std::size_t begin = name.size();
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  std::uint32_t rank = 0;
  const auto [end, error] = std::from_chars(name.data() + begin, name.data() + name.size(), rank);
  if (begin == name.size() || error != std::errc{} || rank >= JobBuilder::rank_max)
    return fail(Errc::value, {file, 0, 0}, "the name ends with no rank",
                "name dumps as PyTorch does, e.g. nccl_trace_rank_12");
  return rank;
}

Status read_flight(std::string& content, const std::string& file, JobBuilder& job) {
  WEFT_TRY(const std::uint32_t rank, rank_of_file(file));
  FlightSink sink(file, rank, job);
  WEFT_TRY_STATUS(content.starts_with('\x80') ? read_flight_pickle(content, file, sink)
                                              : read_flight_json(content, file, sink));
  return sink.finish();
}

}  // namespace weft::observe::colltrace
