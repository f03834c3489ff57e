#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "workload/trace/goal.hpp"

namespace weft::workload {
namespace {

// Sizes of the packed records. Offsets in the file count from behind the magic number.
constexpr std::size_t magic_bytes = 8;
constexpr std::size_t header_bytes = 6;       // u32 ranks, u8 max_cpu, u8 max_nic
constexpr std::size_t range_bytes = 16;       // u64 begin, u64 end
constexpr std::size_t rank_header_bytes = 8;  // u32 nodes, u32 roots
constexpr std::size_t node_bytes = 39;

// Reads little-endian numbers; the caller has checked that they are there.
class NumberReader {
 public:
  NumberReader(std::string_view data, std::size_t at) : data_(data), at_(at) {}
  template <class T>
  T take() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value |= std::uint64_t{static_cast<std::uint8_t>(data_[at_ + i])} << (8 * i);
    at_ += sizeof(T);
    return static_cast<T>(value);
  }
  std::size_t at() const { return at_; }

 private:
  std::string_view data_;
  std::size_t at_;
};

struct Range {
  std::uint64_t begin, end;  // bytes of the file
  std::uint32_t rank;
};

// A list of nodes in a rank's appendix.
struct List {
  std::uint32_t count, first;
};

class BinaryParser {
 public:
  BinaryParser(std::string_view data, const std::string& file) : data_(data), file_(file) {}

  Result<GoalSchedule> parse() {
    if (!is_goal_binary(data_)) return broken(0, "wrong magic number for a GOAL schedule");
    if (data_.size() < magic_bytes + header_bytes)
      return broken(data_.size(), "the header is truncated");
    NumberReader header(data_, magic_bytes);
    schedule_.rank_count = header.take<std::uint32_t>();
    max_cpu_ = header.take<std::uint8_t>();
    max_nic_ = header.take<std::uint8_t>();
    if (schedule_.rank_count == 0 || schedule_.rank_count > goal_ranks_max)
      return broken(magic_bytes,
                    fmt::format("{} ranks; must be 1 to {}", schedule_.rank_count, goal_ranks_max));
    WEFT_TRY(const std::vector<Range> ranges, read_ranges());
    for (const Range& range : ranges) WEFT_TRY_STATUS(read_rank(range));
    return std::move(schedule_);
  }

 private:
  std::unexpected<Error> broken(std::uint64_t at, std::string what) const {
    return fail(Errc::parse, {file_}, fmt::format("byte {}: {}", at, what),
                "check that the file was copied completely and is a binary GOAL schedule");
  }

  // Ranges by rank. They may not overlap, lest a small file makes a large schedule.
  Result<std::vector<Range>> read_ranges() const {
    const std::size_t table = magic_bytes + header_bytes;
    const std::uint64_t table_end = table + std::uint64_t{schedule_.rank_count} * range_bytes;
    if (data_.size() < table_end) return broken(data_.size(), "the rank table is truncated");
    std::vector<Range> ranges;
    NumberReader in(data_, table);
    for (std::uint32_t rank = 0; rank < schedule_.rank_count; ++rank) {
      const std::size_t at = in.at();
      const auto begin = in.take<std::uint64_t>(), end = in.take<std::uint64_t>();
      const std::uint64_t room = data_.size() - magic_bytes;
      if (begin > end || end > room || begin + magic_bytes < table_end)
        return broken(at,
                      fmt::format("rank {} from {} to {} is outside the file", rank, begin, end));
      ranges.push_back({begin + magic_bytes, end + magic_bytes, rank});
    }
    std::vector<Range> sorted = ranges;
    std::ranges::stable_sort(sorted, {}, &Range::begin);
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i].begin < sorted[i - 1].end)
        return broken(sorted[i].begin,
                      fmt::format("rank {} overlaps rank {}", sorted[i].rank, sorted[i - 1].rank));
    return ranges;
  }

  Status read_rank(const Range& range) {
    const std::uint64_t bytes = range.end - range.begin;
    if (bytes < rank_header_bytes)
      return broken(range.begin, fmt::format("rank {} is shorter than its header", range.rank));
    NumberReader in(data_, range.begin);
    const auto nodes = in.take<std::uint32_t>(), roots = in.take<std::uint32_t>();
    const std::uint64_t fixed =
        rank_header_bytes + std::uint64_t{roots} * 4 + std::uint64_t{nodes} * node_bytes;
    if (fixed > bytes || (bytes - fixed) % 4 != 0)
      return broken(range.begin, fmt::format("rank {} has {} nodes and {} roots in {} bytes",
                                             range.rank, nodes, roots, bytes));
    operations_ += nodes;
    if (operations_ > goal_operations_max)
      return broken(range.begin, "more than 100 million operations");
    schedule_.ranks.push_back({.rank = range.rank});
    dependencies_.clear();
    incoming_.assign(nodes, 0);
    NumberReader node_in(data_, in.at() + std::size_t{roots} * 4);
    for (std::uint32_t node = 0; node < nodes; ++node)
      WEFT_TRY_STATUS(read_node(node_in, node, nodes));
    WEFT_TRY_STATUS(read_edges(node_in.at(), (bytes - fixed) / 4, nodes));
    return check_roots(in, roots, nodes);
  }

  Status read_node(NumberReader& in, std::uint32_t index, std::uint32_t nodes) {
    GoalOp op{.at = in.at()};
    Dependencies dependencies;
    dependencies.count = in.take<std::uint32_t>();
    const auto type = in.take<std::uint8_t>();
    op.peer = in.take<std::uint32_t>();
    op.size = in.take<std::uint64_t>();
    op.tag = in.take<std::uint32_t>();
    op.cpu = in.take<std::uint8_t>();
    op.nic = in.take<std::uint8_t>();
    dependencies.ends.count = in.take<std::uint32_t>();
    dependencies.ends.first = in.take<std::uint32_t>();
    dependencies.starts.count = in.take<std::uint32_t>();
    dependencies.starts.first = in.take<std::uint32_t>();
    dependencies_.push_back(dependencies);
    if (type < 1 || type > 3)
      return broken(op.at, fmt::format("node {} of {} has type {}", index, nodes, type));
    op.kind = static_cast<GoalOp::Kind>(type);
    if (op.cpu > goal_cpu_max || op.cpu > max_cpu_ || op.nic > max_nic_)
      return broken(
          op.at,
          fmt::format("node {} is on cpu {} and nic {}, but the file declares only {} and {}",
                      index, op.cpu, op.nic, max_cpu_, max_nic_));
    if (op.kind == GoalOp::Kind::calc) op.peer = op.tag = 0;
    const bool any = op.kind == GoalOp::Kind::recv && op.peer == goal_any;
    if (!any && op.peer >= schedule_.rank_count)
      return broken(op.at,
                    fmt::format("node {} has peer {} of {}", index, op.peer, schedule_.rank_count));
    if (op.kind == GoalOp::Kind::send && op.tag == goal_any)
      return broken(op.at, fmt::format("node {} sends with a wildcard tag", index));
    schedule_.ranks.back().ops.push_back(op);
    return {};
  }

  // `length` indexes from byte `appendix` on.
  Status read_edges(std::size_t appendix, std::uint64_t length, std::uint32_t nodes) {
    std::uint64_t total = 0;
    for (std::uint32_t node = 0; node < nodes; ++node) {
      for (const auto when : {GoalEdge::When::end, GoalEdge::When::start}) {
        const List& list =
            when == GoalEdge::When::end ? dependencies_[node].ends : dependencies_[node].starts;
        total += list.count;
        if (list.count > 0 && std::uint64_t{list.first} + list.count > length)
          return broken(at(node),
                        fmt::format("node {} has dependents beyond the end of the list", node));
        if (total > length) return broken(at(node), "the lists of dependents overlap");
        WEFT_TRY_STATUS(read_list(appendix, list, node, when, nodes));
      }
    }
    for (std::uint32_t node = 0; node < nodes; ++node)
      if (incoming_[node] != dependencies_[node].count)
        return broken(at(node),
                      fmt::format("node {} declares {} dependencies, but is referenced {} times",
                                  node, dependencies_[node].count, incoming_[node]));
    return {};
  }

  Status read_list(std::size_t appendix, const List& list, std::uint32_t node, GoalEdge::When when,
                   std::uint32_t nodes) {
    if (list.count == 0) return {};
    NumberReader in(data_, appendix + std::size_t{list.first} * 4);
    for (std::uint32_t i = 0; i < list.count; ++i) {
      const std::size_t place = in.at();
      const auto after = in.take<std::uint32_t>();
      if (after >= nodes)
        return broken(place, fmt::format("dependent {} of {} nodes", after, nodes));
      ++incoming_[after];
      schedule_.ranks.back().edges.push_back({node, after, when});
    }
    return {};
  }

  // Roots are the nodes that wait for nothing, each once.
  Status check_roots(NumberReader in, std::uint32_t roots, std::uint32_t nodes) const {
    std::vector<std::uint8_t> named(nodes, 0);
    for (std::uint32_t i = 0; i < roots; ++i) {
      const std::size_t place = in.at();
      const auto root = in.take<std::uint32_t>();
      if (root >= nodes || incoming_[root] != 0 || named[root]++ != 0)
        return broken(
            place,
            fmt::format("root {} is not a node without dependencies, or is listed twice", root));
    }
    if (std::ranges::count(incoming_, 0u) != std::ranges::count(named, 1))
      return broken(in.at(), "nodes without dependencies are missing from the roots");
    return {};
  }

  std::uint64_t at(std::uint32_t node) const { return schedule_.ranks.back().ops[node].at; }

  struct Dependencies {
    std::uint32_t count = 0;  // how many nodes this one waits for
    List ends{}, starts{};    // who waits for its end, who for its start
  };

  std::string_view data_;
  const std::string& file_;
  GoalSchedule schedule_;
  std::uint8_t max_cpu_ = 0, max_nic_ = 0;
  std::uint64_t operations_ = 0;
  std::vector<Dependencies> dependencies_;  // of the rank at hand, by node
  std::vector<std::uint32_t> incoming_;
};

}  // namespace

bool is_goal_binary(std::string_view content) {
  return content.size() >= magic_bytes &&
         NumberReader(content, 0).take<std::uint64_t>() == goal_magic;
}

Result<GoalSchedule> parse_goal_binary(std::string_view content, const std::string& file) {
  return BinaryParser(content, file).parse();
}

}  // namespace weft::workload
