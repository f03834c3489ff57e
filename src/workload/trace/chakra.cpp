// Files of Chakra traces to one graph: unpacking, ranks, groups, notes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "os/tar.hpp"
#include "workload/trace/chakra_groups.hpp"
#include "workload/trace/chakra_program.hpp"
#include "workload/trace/chakra_pytorch.hpp"
#include "workload/trace/chakra_trace.hpp"
#include "workload/trace/load.hpp"
#include "workload/trace/trace.hpp"

namespace weft::workload {
namespace {

// What compressed files may unpack to, so that a small one cannot take all memory: so much in any
// case, beyond it so many times their size on disk. Traces are 20 to 30 times their compressed
// size; gzip goes up to 1,000.
constexpr std::uint64_t unpacked_always = 16 << 20;
constexpr std::uint64_t unpacked_factor = 100;
constexpr std::uint64_t chakra_operations_max = 100'000'000;
constexpr std::uint32_t ranks_unknown = 2;  // the fewest among which a collective moves anything

bool is_gzip(std::string_view content) { return content.starts_with("\x1f\x8b"); }

// A stream of one rank: a view into a file or into something unpacked.
struct Stream {
  std::string path;
  std::string_view content;
};

// All streams of a workload and what owns their bytes.
struct Streams {
  std::vector<std::unique_ptr<std::string>> unpacked;
  std::vector<Stream> list;
  std::vector<std::string> left_out;  // members of archives that are no traces
  std::uint64_t bytes = 0;            // unpacked so far
  std::uint64_t bytes_most = trace_bytes_max;
};

// Counts before it keeps anything.
Result<std::string> unpack_whole(const std::string& path, std::string_view content,
                                 const Streams& streams) {
  const std::uint64_t left = streams.bytes_most - streams.bytes;
  WEFT_TRY(const std::uint64_t size, gunzip_size(content, path, left));
  if (size <= left) return gunzip(content, path, size);
  return fail(Errc::value, {path},
              fmt::format("the input unpacks to more than {} bytes: a compressed file may expand "
                          "to {} times its size or {} MiB, and all files together to 2 GiB",
                          streams.bytes_most, unpacked_factor, unpacked_always >> 20),
              "unpack it first if you trust it");
}

bool is_trace_name(std::string_view path) {
  return path.ends_with(".et") || path.ends_with(".et.gz");
}

// Files that macOS puts beside others ("._NAME") hold no trace.
bool is_resource_fork(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return path.substr(slash == std::string_view::npos ? 0 : slash + 1).starts_with("._");
}

enum class Nested : std::uint8_t { no, yes };

Status unpack(const std::string& path, std::string_view content, Nested nested, Streams& streams) {
  if (is_gzip(content)) {
    WEFT_TRY(std::string whole, unpack_whole(path, content, streams));
    streams.bytes += whole.size();
    content = *streams.unpacked.emplace_back(std::make_unique<std::string>(std::move(whole)));
  }
  if (!is_tar(content)) {
    streams.list.push_back({path, content});
    return {};
  }
  if (nested == Nested::yes)
    return fail(Errc::unsupported, {path}, "nested archive", "unpack it first");
  WEFT_TRY(const std::vector<TarMember> members, read_tar(content, path));
  const std::size_t before = streams.list.size();
  for (const TarMember& member : members) {
    const bool trace = is_trace_name(member.path) || is_pytorch_trace(member.content);
    if (trace && !is_resource_fork(member.path))
      WEFT_TRY_STATUS(unpack(path + ":" + member.path, member.content, Nested::yes, streams));
    else
      streams.left_out.push_back(member.path);
  }
  if (streams.list.size() > before) return {};
  return fail(Errc::value, {path}, "the archive contains no trace",
              "members must be named NAME.RANK.et");
}

// RANK of NAME.RANK.et or NAME_RANK.json (whose NAME may end in a version number).
std::optional<std::uint32_t> rank_of(std::string_view path) {
  const char separator = path.ends_with(".json") ? '_' : '.';
  for (const std::string_view end : {".gz", ".et", ".json"})
    if (path.ends_with(end)) path.remove_suffix(end.size());
  const std::size_t before = path.rfind(separator);
  if (before == std::string_view::npos) return std::nullopt;
  const std::string_view digits = path.substr(before + 1);
  std::uint32_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (error != std::errc{} || end != digits.data() + digits.size() || rank >= trace_ranks_max)
    return std::nullopt;
  return rank;
}

struct Assembly {
  const TraceOptions& options;
  Streams streams;
  ChakraGroups side;
  RecordedWorkload out;
  LabelTable labels{out.graph};
  ChakraTally tally;
  std::uint64_t operations = 0;
  // Rows of groups already made, by name and ranks.
  std::map<std::pair<std::string, std::vector<std::uint32_t>>, std::uint32_t> group_index;

  void note(std::string text) { out.notes.push_back(std::move(text)); }

  Result<ChakraTrace> parse(const Stream& stream) {
    if (is_pytorch_trace(stream.content)) {
      note(
          fmt::format("{} is PyTorch's host-side trace, without kernels and times: only "
                      "collectives take time, and threads run their operators in order",
                      stream.path));
      return parse_pytorch_trace(stream.content, stream.path);
    }
    return parse_chakra(stream.content, stream.path);
  }

  Result<ChakraProgram> program(const ChakraTrace& trace, const ChakraGroups& groups,
                                const std::string& file, std::uint32_t rank, std::uint32_t count) {
    operations += trace.nodes.size();
    if (operations > chakra_operations_max)
      return fail(Errc::unsupported, {file}, "more than 100 million nodes in total",
                  "use fewer ranks");
    return chakra_program(trace, {file, groups, options, rank, count, labels, tally});
  }

  std::uint32_t group(const std::string& name, std::vector<std::uint32_t> ranks) {
    auto& graph = out.graph;
    const auto [found, fresh] =
        group_index.try_emplace({name, ranks}, static_cast<std::uint32_t>(graph.groups.size()));
    if (fresh) graph.groups.push_back({.ranks = std::move(ranks)});
    return found->second;
  }

  static std::vector<std::uint32_t> all_ranks(std::uint32_t count) {
    std::vector<std::uint32_t> ranks(count);
    for (std::uint32_t r = 0; r < count; ++r) ranks[r] = r;
    return ranks;
  }

  std::uint32_t add_actor(std::uint32_t program, std::uint32_t rank) {
    auto& graph = out.graph;
    graph.actors.push_back({program, static_cast<std::uint32_t>(graph.peers.size()),
                            static_cast<std::uint32_t>(graph.memberships.size())});
    graph.actor_ranks.push_back(rank);
    return static_cast<std::uint32_t>(graph.actors.size() - 1);
  }

  void join(std::uint32_t group) {
    out.graph.memberships.push_back(group);
    ++out.graph.groups[group].actors;
  }

  // One file: all ranks run its program.
  Status mirror() {
    const Stream& stream = streams.list.front();
    WEFT_TRY(const ChakraTrace trace, parse(stream));
    ChakraGroups groups = side;
    WEFT_TRY_STATUS(add_embedded_groups(trace, stream.path, groups));
    const std::optional<std::uint32_t> named = rank_of(stream.path);
    const std::uint32_t rank = named.value_or(0);
    const std::uint32_t least = std::max({groups.ranks_named, rank + 1, 1u});
    const std::uint32_t count = options.ranks.value_or(std::max(least, ranks_unknown));
    if (count < least || count > trace_ranks_max)
      return fail(Errc::value, {stream.path},
                  fmt::format("{} ranks, but the trace needs {}", count, least), "use more ranks");
    WEFT_TRY(ChakraProgram made, program(trace, groups, stream.path, rank, count));
    if (!made.peers.empty() && count > 1)
      return fail(Errc::unsupported, {stream.path},
                  "the sends and receives of one rank do not determine what the other ranks do",
                  "provide the traces of all ranks");
    WEFT_TRY_STATUS(place(made, groups, stream.path, count));
    note_mirror(groups, rank, count);
    return {};
  }

  void note_mirror(const ChakraGroups& groups, std::uint32_t rank, std::uint32_t count) {
    if (count == 1) return;
    const char* why = options.ranks            ? "as requested"
                      : groups.ranks_named > 0 ? "from its groups"
                                               : "the trace does not give the number";
    note(fmt::format("one trace (rank {}): all {} ranks run its program ({})", rank, count, why));
  }

  // Actors 0..count-1, all of one program, in the groups that correspond to those it names.
  Status place(ChakraProgram& made, const ChakraGroups& groups, const std::string& file,
               std::uint32_t count) {
    std::vector<std::vector<std::uint32_t>> of_slot;  // by slot and rank: the group
    for (const std::string& name : made.groups) {
      auto& of_rank = of_slot.emplace_back(count, 0);
      if (name.empty()) {
        std::ranges::fill(of_rank, group(name, all_ranks(count)));
        continue;
      }
      auto family = sibling_groups(groups, name, count);
      if (!family) {
        family.error().where.file = file;
        return std::unexpected(std::move(family).error());
      }
      for (const auto& ranks : *family) {
        const std::uint32_t index = group(name, ranks);
        for (const std::uint32_t rank : ranks) of_rank[rank] = index;
      }
    }
    if (std::uint64_t{count} * std::max<std::size_t>(of_slot.size(), 1) > chakra_operations_max)
      return fail(Errc::unsupported, {file}, "too many ranks and groups", "use fewer ranks");
    out.graph.programs.push_back(std::move(made.program));
    out.graph.programs.back().role = "every rank";
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      add_actor(0, rank);
      for (const auto& of_rank : of_slot) join(of_rank[rank]);
    }
    out.graph.rank_count = count;
    return {};
  }

  // Streams by rank; every rank from 0 on must have one.
  Status sort_streams() {
    const auto count = static_cast<std::uint32_t>(streams.list.size());
    std::vector<const Stream*> by_rank(count, nullptr);
    for (const Stream& stream : streams.list) {
      const auto rank = rank_of(stream.path);
      if (!rank)
        return fail(Errc::value, {stream.path}, "the file name does not contain the rank",
                    "name the files NAME.RANK.et");
      if (*rank >= count)
        return fail(Errc::value, {stream.path},
                    fmt::format("rank {}, but there are {} traces", *rank, count),
                    "provide the traces of all ranks starting at 0, or just one");
      if (by_rank[*rank] != nullptr)
        return fail(Errc::value, {stream.path},
                    fmt::format("rank {} also in {}", *rank, by_rank[*rank]->path),
                    "provide one trace per rank");
      by_rank[*rank] = &stream;
    }
    std::vector<Stream> sorted;
    for (const Stream* stream : by_rank) sorted.push_back(*stream);
    streams.list = std::move(sorted);
    return {};
  }

  Status recorded_ranks() {
    WEFT_TRY_STATUS(sort_streams());
    const auto count = static_cast<std::uint32_t>(streams.list.size());
    if (count > trace_ranks_max || options.ranks.value_or(count) != count)
      return fail(Errc::unsupported, {streams.list.front().path},
                  fmt::format("{} ranks were recorded, each with its own program; {} would need "
                              "programs that were not recorded",
                              count, options.ranks.value_or(trace_ranks_max)),
                  "omit the number of ranks");
    for (std::uint32_t rank = 0; rank < count; ++rank) WEFT_TRY_STATUS(add_rank(rank, count));
    out.graph.rank_count = count;
    return check_members();
  }

  Status add_rank(std::uint32_t rank, std::uint32_t count) {
    const Stream& stream = streams.list[rank];
    WEFT_TRY(const ChakraTrace trace, parse(stream));
    ChakraGroups groups = side;
    WEFT_TRY_STATUS(add_embedded_groups(trace, stream.path, groups));
    if (groups.ranks_named > count)
      return fail(Errc::value, {stream.path},
                  fmt::format("its groups have {} ranks, but there are {} traces",
                              groups.ranks_named, count),
                  "provide the traces of all ranks, or just one");
    WEFT_TRY(ChakraProgram made, program(trace, groups, stream.path, rank, count));
    add_actor(static_cast<std::uint32_t>(out.graph.programs.size()), rank);
    out.graph.programs.push_back(std::move(made.program));
    // Actors are ranks, so a peer's rank is its actor.
    out.graph.peers.insert(out.graph.peers.end(), made.peers.begin(), made.peers.end());
    for (const std::string& name : made.groups) {
      const auto* ranks = groups.find(name);
      join(group(name, name.empty() || ranks == nullptr ? all_ranks(count) : *ranks));
    }
    return {};
  }

  Status check_members() const {
    for (const auto& [key, index] : group_index) {
      const model::RankGroup& group = out.graph.groups[index];
      if (group.actors != group.ranks.size())
        return fail(Errc::value, {},
                    fmt::format("{} of {} ranks of group {} call a collective in it", group.actors,
                                group.ranks.size(), quote(key.first)),
                    "the other traces lack it, or list the group differently");
    }
    return {};
  }

  void count(const char* name, std::uint64_t number) { out.counts.emplace_back(name, number); }

  void write_counts() {
    count("ranks", out.graph.rank_count);
    count("traces", streams.list.size());
    count("compute nodes", tally.compute);
    count("collective nodes", tally.collective);
    count("collectives with size", tally.with_size);
    count("sends", tally.send);
    count("receives", tally.recv);
    count("memory nodes", tally.memory);
    count("metadata nodes", tally.metadata);
    count("dangling dependencies", tally.dangling_ctrl + tally.dangling_data);
  }

  void note_if(std::uint64_t number, const char* text) {
    if (number > 0) note(fmt::format("{} {}", number, text));
  }

  void write_notes() {
    if (tally.dangling_ctrl + tally.dangling_data > 0)
      note(fmt::format(
          "{} control and {} data dependencies refer to missing nodes and count as satisfied: {}",
          tally.dangling_ctrl, tally.dangling_data, fmt::join(tally.dangling_examples, "; ")));
    note_if(tally.ctrl_unused,
            "control dependencies give the call that created a node (trace converted from "
            "PyTorch), not an order; the order follows the data dependencies");
    note_if(tally.host_calls,
            "communication nodes are CPU calls of kernels that are nodes themselves: they take "
            "their recorded CPU time and move no data");
    note_if(tally.chained, "collectives wait for the previous one in their group, as in NCCL");
    note_if(tally.from_tensors, "collectives without a size: taken from their tensors");
    note_if(tally.without_size, "collectives with neither size nor tensors: 0 bytes");
    note_if(tally.by_name, "collectives without comm_type: taken from their names");
    note_if(tally.timeless, "compute nodes without a time (under 1 us, or not recorded): 0 s");
    note_if(tally.of_one_rank, "collectives of one rank: they take no time");
    note_if(tally.mapped_reduce,
            "reduces run as broadcasts, which cost the same in the opposite direction");
    note_if(tally.mapped_gather, "gathers run as all-gathers: the root receives as much");
    note_if(tally.mapped_scatter, "scatters run as all-gathers: the root sends as much");
    note_if(tally.barrier, "barriers run as all-reduces of 0 bytes");
    if (!streams.left_out.empty())
      note(fmt::format("archive members that are not traces: {}",
                       fmt::join(streams.left_out, ", ")));
  }
};

}  // namespace

bool is_chakra(const TraceFile& file) {
  if (is_trace_name(file.path) || is_tar(file.content) || is_pytorch_trace(file.content))
    return true;
  if (!is_gzip(file.content)) return looks_like_chakra(file.content);
  // Of the formats here only this one comes packed; broken gzip is reported by its reader.
  const auto head = gunzip_head(file.content, file.path, trace_head_bytes);
  return !head || is_tar(*head) || is_pytorch_trace(*head) || looks_like_chakra(*head);
}

Result<RecordedWorkload> read_chakra(std::span<const TraceFile> files,
                                     const TraceOptions& options) {
  Assembly assembly{.options = options};
  if (files.empty()) return fail(Errc::value, {}, "no trace given", "specify a file");
  std::uint64_t on_disk = 0;
  for (const TraceFile& file : files) on_disk += file.content.size();
  assembly.streams.bytes_most =
      std::clamp(on_disk * unpacked_factor, unpacked_always, trace_bytes_max);
  for (const TraceFile& file : files)
    WEFT_TRY_STATUS(unpack(file.path, file.content, Nested::no, assembly.streams));
  if (options.groups) {
    WEFT_TRY(assembly.side, read_group_file(*options.groups));
  }
  const bool one = assembly.streams.list.size() == 1;
  WEFT_TRY_STATUS(one ? assembly.mirror() : assembly.recorded_ranks());
  assembly.out.format = "chakra";
  assembly.write_counts();
  assembly.write_notes();
  if (auto done = assembly.out.graph.finish(); !done) {
    done.error().where.file = files.front().path;
    return std::unexpected(std::move(done).error());
  }
  return std::move(assembly.out);
}

}  // namespace weft::workload
