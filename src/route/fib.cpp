#include "route/fib.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "route/next_hops.hpp"

namespace weft::route {
namespace {

using model::NodeKind;

constexpr std::size_t column_count_max = 65'535, column_size_max = 65'536;
constexpr std::size_t cell_count_max = 1u << 30, word_count_max = 1u << 31;
constexpr std::size_t list_count_max = (1u << 15) - 1;

std::unexpected<Error> too_large(std::string what) {
  return fail(Errc::unsupported, {},
              "the fabric is too irregular for the packet engine: " + std::move(what),
              "use the fluid engine, or fewer destinations");
}

}  // namespace

// Goes column by column, and row by row within. Lists are numbered per row first; place_lists()
// turns the numbers into places when all are known.
class FibBuilder {
 public:
  FibBuilder(const Fabric& fabric, const model::State& state)
      : fabric_(fabric), live_(fabric), next_hops_(start(state)) {
    fib_.rows_.resize(fabric.node_count());
    fib_.target_of_.resize(fabric.node_count(), Fib::no_target);
  }

  Result<Fib> build(std::span<const NodeId> ends) {
    rows_.emplace_back();  // of nodes that are no ends: nothing leads on
    fib_.lists_.emplace_back(0);
    for (const NodeId node : fabric_.nodes())
      if (fabric_.is_switch(node)) rows_.emplace_back().nodes.push_back(node);
    for (const NodeId end : ends) add_end(end);
    const std::size_t columns = members_.size();
    if (columns > column_count_max || rows_.size() * columns > cell_count_max)
      return too_large(fmt::format("{} rows of {} columns", rows_.size(), columns));
    fib_.cells_.assign(rows_.size() * columns, 0);
    fib_.columns_.resize(columns);
    for (std::size_t c = 0; c < columns; ++c) {
      WEFT_TRY_STATUS(fill_column(c));
      next_hops_.trim();
    }
    WEFT_TRY_STATUS(place_lists());
    return std::move(fib_);
  }

 private:
  // Links of a switch, or ports of a NIC by number, as NICs share rows.
  using Words = std::vector<LinkId>;
  struct List {
    std::size_t first = 0, count = 0;  // in words_
  };
  // The ports of an end: the switch behind each, and whether the link drains. Ends with equal ports
  // are reached, or leave, in the same way.
  struct Port {
    NodeId at;
    bool draining;
    friend auto operator<=>(const Port&, const Port&) = default;
  };
  using Ports = std::vector<Port>;
  struct RowDraft {
    std::vector<NodeId> nodes;  // one switch, or NICs with equal ports
    std::vector<List> lists{List{}};
    std::unordered_map<std::uint64_t, std::uint16_t> by_digest;  // never iterated
    std::uint16_t latest = 0;                                    // list found or added
  };

  NextHops start(const model::State& state) {
    live_.set_state(state);
    return {fabric_, live_, Weighting::equal};
  }
  bool is_nic(NodeId node) const { return fabric_.kind(node) == NodeKind::nic; }
  bool is_wired(NodeId node) const { return is_nic(node) || fabric_.is_switch(node); }
  std::uint16_t& cell(std::size_t row, std::size_t column) {
    return fib_.cells_[row * members_.size() + column];
  }

  void add_end(NodeId end);
  Ports ports_into(NodeId end) const;
  Words usable_links(NodeId nic) const;
  Status fill_column(std::size_t column);
  Status fill_last_hops(std::size_t column, std::span<const NodeId> arrivals);
  void find_words(NodeId at, std::span<const LinkId> links);
  Result<std::uint16_t> list_number(std::size_t row);
  std::span<const LinkId> words_of(const List& list) const {
    return std::span(words_).subspan(list.first, list.count);
  }
  std::size_t unit_count(const List& list) const { return (list.count >> fib_.unit_bits_) + 1; }
  std::size_t unit_count(const RowDraft& row) const;
  Status place_lists();
  void append_lists(const RowDraft& row, NodeId node);

  const Fabric& fabric_;
  LiveLinks live_;
  NextHops next_hops_;
  Fib fib_;
  std::vector<std::vector<NodeId>> members_;  // by column
  std::vector<RowDraft> rows_;
  std::map<Ports, std::size_t> column_of_, row_of_;
  std::vector<LinkId> words_;
  Words scratch_;
};

// An end with a cable to another NIC has a column and a row of its own, as that cable may be part
// of a path that other ends with the same switches do not have.
void FibBuilder::add_end(NodeId end) {
  WEFT_CHECK(is_wired(end));
  if (fib_.target_of_[end] != Fib::no_target) return;
  const bool alone = is_nic(end) && std::ranges::any_of(fabric_.out(end), [&](LinkId link) {
                       return is_nic(fabric_.to(link));
                     });
  std::size_t column = members_.size();
  if (!alone) {
    std::size_t& known = column_of_.try_emplace(ports_into(end), column).first->second;
    if (known < column && members_[known].size() == column_size_max) known = column;
    column = known;
  }
  if (column == members_.size()) members_.emplace_back();
  fib_.target_of_[end] =
      static_cast<std::uint32_t>(column << Fib::ordinal_bits | members_[column].size());
  members_[column].push_back(end);
  if (!is_nic(end)) return;
  std::size_t row = rows_.size();
  if (!alone) {
    Ports ports;
    for (const LinkId link : usable_links(end))
      ports.push_back({fabric_.to(link), live_.draining(link)});
    row = row_of_.try_emplace(std::move(ports), row).first->second;
  }
  if (row == rows_.size()) rows_.emplace_back();
  rows_[row].nodes.push_back(end);
}

FibBuilder::Ports FibBuilder::ports_into(NodeId end) const {
  if (!is_nic(end)) return {{end, false}};
  Ports ports;
  for (const LinkId out : fabric_.out(end)) {
    const LinkId in = reverse(out);
    if (fabric_.is_switch(fabric_.to(out)) && live_.usable(in))
      ports.push_back({fabric_.to(out), live_.draining(in)});
  }
  std::ranges::sort(ports);
  const auto repeats = std::ranges::unique(ports, {}, &Port::at);
  ports.erase(repeats.begin(), repeats.end());
  return ports;
}

FibBuilder::Words FibBuilder::usable_links(NodeId nic) const {
  Words links;
  for (const LinkId link : fabric_.out(nic))
    if (is_wired(fabric_.to(link)) && live_.usable(link)) links.push_back(link);
  return links;
}

Status FibBuilder::fill_column(std::size_t column) {
  WEFT_CHECK(!members_[column].empty());
  const NodeId end = members_[column].front();
  const Goal goal = next_hops_.goal(end);
  std::vector<NodeId> arrivals;
  for (std::size_t row = 1; row < rows_.size(); ++row) {
    const NodeId at = rows_[row].nodes.front();
    const std::span<const LinkId> links = next_hops_.next(at, goal).links;
    const bool arrives =
        is_nic(end) ? !links.empty() && !is_nic(at) && fabric_.to(links[0]) == end : at == end;
    if (arrives) {
      cell(row, column) = static_cast<std::uint16_t>(Fib::arrival | arrivals.size());
      arrivals.push_back(at);
    } else {
      find_words(at, links);
      WEFT_TRY(cell(row, column), list_number(row));
    }
  }
  return fill_last_hops(column, arrivals);
}

Status FibBuilder::fill_last_hops(std::size_t column, std::span<const NodeId> arrivals) {
  const std::vector<NodeId>& ends = members_[column];
  std::size_t longest = 0;
  const auto for_each_list = [&](auto visit) {
    for (const NodeId end : ends)
      for (const NodeId at : arrivals) visit(next_hops_.next(at, next_hops_.goal(end)).links);
  };
  for_each_list([&](std::span<const LinkId> links) { longest = std::max(longest, links.size()); });
  const std::size_t stride = longest + 1, base = fib_.lists_.size();
  const std::size_t size = base + ends.size() * arrivals.size() * stride;
  if (arrivals.size() > list_count_max || stride > list_count_max || size > word_count_max)
    return too_large(
        fmt::format("{} is attached to {} switches", fabric_.name(ends[0]), arrivals.size()));
  fib_.columns_[column] = {static_cast<std::uint32_t>(base),
                           static_cast<std::uint16_t>(arrivals.size()),
                           static_cast<std::uint16_t>(stride)};
  fib_.lists_.resize(size, LinkId(0));
  auto place = fib_.lists_.begin() + static_cast<std::ptrdiff_t>(base);
  for_each_list([&](std::span<const LinkId> links) {
    *place = LinkId(links.size());
    std::ranges::copy(links, place + 1);
    place += static_cast<std::ptrdiff_t>(stride);
  });
  return {};
}

// Into scratch_.
void FibBuilder::find_words(NodeId at, std::span<const LinkId> links) {
  scratch_.assign(links.begin(), links.end());
  if (!is_nic(at)) return;
  const Words ports = usable_links(at);
  for (LinkId& word : scratch_)
    word = LinkId(static_cast<std::size_t>(std::ranges::find(ports, word) - ports.begin()));
}

// Of the list in scratch_, which is added where it is new.
Result<std::uint16_t> FibBuilder::list_number(std::size_t row) {
  if (scratch_.empty()) return 0;
  RowDraft& draft = rows_[row];
  if (std::ranges::equal(words_of(draft.lists[draft.latest]), scratch_)) return draft.latest;
  Digest digest;
  for (const LinkId word : scratch_) digest.add(std::uint64_t{word.value});
  const auto [known, added] = draft.by_digest.try_emplace(digest.value(), 0);
  // Where two digests meet, the second list is kept once more each time.
  if (!added && std::ranges::equal(words_of(draft.lists[known->second]), scratch_))
    return draft.latest = known->second;
  if (draft.lists.size() > list_count_max)
    return too_large(fmt::format("{} has more than {} next-hop sets", fabric_.name(draft.nodes[0]),
                                 list_count_max));
  draft.latest = known->second = static_cast<std::uint16_t>(draft.lists.size());
  draft.lists.push_back({words_.size(), scratch_.size()});
  words_.insert(words_.end(), scratch_.begin(), scratch_.end());
  return draft.latest;
}

std::size_t FibBuilder::unit_count(const RowDraft& row) const {
  std::size_t count = 0;
  for (const List& list : row.lists) count += unit_count(list);
  return count;
}

// In units as small as 15 bits can count in the longest row.
Status FibBuilder::place_lists() {
  std::size_t longest = 0;
  for (const RowDraft& row : rows_) longest = std::max(longest, unit_count(row));
  while (longest > Fib::arrival) {
    ++fib_.unit_bits_;
    longest = 0;
    for (const RowDraft& row : rows_) longest = std::max(longest, unit_count(row));
  }
  for (std::size_t r = 1; r < rows_.size(); ++r) {
    std::vector<std::uint16_t> places;
    std::size_t place = 0;
    for (const List& list : rows_[r].lists) {
      places.push_back(static_cast<std::uint16_t>(place));
      place += unit_count(list);
    }
    for (std::size_t c = 0; c < members_.size(); ++c)
      if (std::uint16_t& at = cell(r, c); (at & Fib::arrival) == 0) at = places[at];
    if (fib_.lists_.size() + rows_[r].nodes.size() * (place << fib_.unit_bits_) > word_count_max)
      return too_large("more than 2^31 next hops");
    for (const NodeId node : rows_[r].nodes) {
      fib_.rows_[node] = {static_cast<std::uint32_t>(r * members_.size()),
                          static_cast<std::uint32_t>(fib_.lists_.size())};
      append_lists(rows_[r], node);
    }
  }
  return {};
}

void FibBuilder::append_lists(const RowDraft& row, NodeId node) {
  const Words ports = is_nic(node) ? usable_links(node) : Words{};
  for (const List& list : row.lists) {
    const std::size_t end = fib_.lists_.size() + (unit_count(list) << fib_.unit_bits_);
    fib_.lists_.emplace_back(list.count);
    for (const LinkId word : words_of(list))
      fib_.lists_.push_back(is_nic(node) ? ports[word.index()] : word);
    WEFT_CHECK(fib_.lists_.size() <= end);
    fib_.lists_.resize(end, LinkId(0));
  }
}

Result<Fib> Fib::build(const Fabric& fabric, const model::State& state,
                       std::span<const NodeId> ends) {
  return FibBuilder(fabric, state).build(ends);
}

std::size_t Fib::bytes() const {
  return rows_.size() * sizeof(Row) + columns_.size() * sizeof(Columns) +
         cells_.size() * sizeof(cells_[0]) + lists_.size() * sizeof(LinkId) +
         target_of_.size() * sizeof(std::uint32_t);
}

}  // namespace weft::route
