#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/csv.hpp"
#include "engine/fluid/flow_run.hpp"

namespace weft::engine::fluid {
namespace {

constexpr std::size_t errors_max = 100;
constexpr std::size_t flows_max = 50'000'000;

enum CsvColumn : std::size_t {
  id_column,
  src_column,
  dst_column,
  bytes_column,
  start_column,
  after_column,
  via_column
};
const std::vector<std::string> required{"id", "src", "dst", "bytes"};
const std::vector<std::string> optional{"start", "after", "via"};

class FlowReader {
 public:
  FlowReader(const Fabric& fabric, std::string_view text, const std::string& file)
      : fabric_(fabric), csv_(text, file) {}

  Result<FlowSet> read() {
    WEFT_TRY_STATUS(csv_.header(required, optional));
    while (errors_.size() < errors_max && csv_.next()) read_row();
    if (csv_.error() != nullptr) errors_.push_back(*csv_.error());
    if (errors_.empty()) resolve_after();
    if (errors_.empty()) find_circle();
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(set_);
  }

 private:
  struct After {
    std::string id;
    Where where;
  };

  template <class T>
  T take(Result<T> result) {
    if (result) return *std::move(result);
    errors_.push_back(std::move(result).error());
    return T{};
  }

  void read_row() {
    if (set_.flows.size() >= flows_max) {
      errors_.push_back({Errc::value,
                         csv_.where(),
                         fmt::format("more than {} flows", flows_max),
                         "split the file",
                         {}});
      return;
    }
    FlowSet::Flow flow;
    const Token id = csv_.cell(id_column);
    flow.id = std::string(id.text);
    const auto index = static_cast<std::uint32_t>(set_.flows.size());
    if (flow.id.empty()) {
      errors_.push_back({Errc::parse, id.where, "the id is empty", "give every flow an id", {}});
    } else if (!index_.emplace(flow.id, index).second) {
      errors_.push_back({Errc::value,
                         id.where,
                         fmt::format("id \"{}\" stands twice", flow.id),
                         "give every flow an id of its own",
                         {}});
    }
    flow.src = nic(csv_.cell(src_column));
    flow.dst = nic(csv_.cell(dst_column));
    if (flow.src.valid() && flow.src == flow.dst)
      errors_.push_back({Errc::value,
                         csv_.cell(dst_column).where,
                         "source and destination are one NIC",
                         "name two different ones",
                         {}});
    flow.size = take(parse_bytes(csv_.cell(bytes_column)));
    if (const Token start = csv_.cell(start_column); !start.text.empty())
      flow.start = Time{take(parse_duration(start)).ps};
    const Token after = csv_.cell(after_column);
    after_.push_back({std::string(after.text), after.where});
    read_via(flow);
    set_.flows.push_back(std::move(flow));
  }

  // A NIC, or the NIC of a GPU.
  NodeId nic(const Token& token) {
    const Result<NodeId> node = fabric_.find_node(token);
    if (!node) {
      errors_.push_back(node.error());
      return {};
    }
    switch (fabric_.kind(*node)) {
      case model::NodeKind::nic:
        return *node;
      case model::NodeKind::gpu:
        if (const NodeId found = fabric_.nic_of(*node); found.valid()) return found;
        [[fallthrough]];
      default:
        errors_.push_back({Errc::value,
                           token.where,
                           fmt::format("\"{}\" has no NIC to send through", token.text),
                           "name a GPU (a bare number) or a NIC (nic:5)",
                           {}});
        return {};
    }
  }

  void read_via(FlowSet::Flow& flow) {
    const Token cell = csv_.cell(via_column);
    if (cell.text.empty()) return;
    flow.via = static_cast<std::uint32_t>(set_.via.size());
    for (const std::string_view name : split(cell.text, '|')) {
      const NodeId node = take(fabric_.find_node({trim(name), cell.where}));
      if (!node.valid()) continue;
      if (!fabric_.is_switch(node))
        errors_.push_back({Errc::value,
                           cell.where,
                           fmt::format("\"{}\" is not a switch", name),
                           "name switches, joined by |",
                           {}});
      set_.via.push_back(node);
    }
    flow.via_count = static_cast<std::uint32_t>(set_.via.size()) - flow.via;
  }

  void resolve_after() {
    for (std::size_t i = 0; i < after_.size() && errors_.size() < errors_max; ++i) {
      if (after_[i].id.empty()) continue;
      const auto found = index_.find(after_[i].id);
      if (found == index_.end()) {
        errors_.push_back({Errc::unknown,
                           after_[i].where,
                           fmt::format("no flow has the id \"{}\"", after_[i].id),
                           "name the id of another flow of this file",
                           {}});
      } else {
        set_.flows[i].after = found->second;
      }
    }
  }

  // Every flow waits for at most one other, so following `after` finds each circle once.
  void find_circle() {
    std::vector<std::uint32_t> walk(set_.flows.size(), 0);  // 0: not seen
    for (std::uint32_t i = 0; i < set_.flows.size(); ++i) {
      std::uint32_t at = i;
      while (at != FlowSet::none && walk[at] == 0) {
        walk[at] = i + 1;
        at = set_.flows[at].after;
      }
      if (at == FlowSet::none || walk[at] != i + 1) continue;
      report_circle(at);
      return;
    }
  }

  void report_circle(std::uint32_t start) {
    constexpr std::size_t shown = 10;
    std::string names = set_.flows[start].id;
    std::size_t count = 1;
    for (std::uint32_t at = set_.flows[start].after; at != start; at = set_.flows[at].after)
      if (++count <= shown) names += " after " + set_.flows[at].id;
    names += count > shown ? " after ..." : " after " + set_.flows[start].id;
    errors_.push_back({Errc::infeasible,
                       after_[start].where,
                       fmt::format("{} flows wait for each other in a circle: {}", count, names),
                       "remove one `after`",
                       {}});
  }

  const Fabric& fabric_;
  CsvReader csv_;
  FlowSet set_;
  Errors errors_;
  std::vector<After> after_;
  std::map<std::string, std::uint32_t, std::less<>> index_;
};

}  // namespace

Result<FlowSet> read_flows(const Fabric& fabric, std::string_view text, const std::string& file) {
  return FlowReader(fabric, text, file).read();
}

}  // namespace weft::engine::fluid
