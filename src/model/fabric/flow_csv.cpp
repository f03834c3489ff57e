// The CSV form of flow sets.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/csv.hpp"
#include "base/whole_number.hpp"
#include "model/fabric/flow_set.hpp"

namespace weft::model {
namespace {

// "a,0,1,1 B\n": by which memory is reserved for no more flows than the text can hold.
constexpr std::size_t row_bytes_least = 9;

enum CsvColumn : std::size_t {
  id_column,
  src_column,
  dst_column,
  bytes_column,
  start_column,
  after_column,
  via_column,
  class_column
};
const std::vector<std::string> required{"id", "src", "dst", "bytes"};
const std::vector<std::string> optional{"start", "after", "via", "class"};

class FlowReader {
 public:
  FlowReader(const Fabric& fabric, std::string_view text, const std::string& file)
      : fabric_(fabric), text_(text), file_(file) {}

  Result<FlowSet> read() {
    reserve();
    CsvReader csv(text_, file_);
    WEFT_TRY_STATUS(csv.header(required, optional));
    while (errors_.size() < errors_max && csv.next()) read_row(csv);
    if (csv.error() != nullptr) errors_.push_back(*csv.error());
    if (errors_.empty() && waits_for_later_) resolve_after();
    if (errors_.empty()) refuse_circle();
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(set_);
  }

 private:
  template <class T>
  T take(Result<T> result) {
    if (result) return *std::move(result);
    errors_.push_back(std::move(result).error());
    return T{};
  }

  // Growing would hold the flows twice.
  void reserve() {
    const auto lines = static_cast<std::size_t>(std::ranges::count(text_, '\n')) + 1;
    set_.flows.reserve(std::min({lines, text_.size() / row_bytes_least + 1, flow_count_max}));
  }

  void read_row(CsvReader& csv) {
    if (set_.flows.size() >= flow_count_max) {
      errors_.push_back({Errc::value,
                         csv.where(),
                         fmt::format("more than {} flows", flow_count_max),
                         "split the file",
                         {}});
      return;
    }
    add_id(csv.cell(id_column));
    FlowSet::Flow flow;
    flow.src = nic(csv.cell(src_column));
    flow.dst = nic(csv.cell(dst_column));
    if (flow.src.valid() && flow.src == flow.dst)
      errors_.push_back({Errc::value,
                         csv.cell(dst_column).where,
                         "source and destination are the same NIC",
                         "specify two different ones",
                         {}});
    flow.size = take(parse_bytes(csv.cell(bytes_column)));
    if (const Token start = csv.cell(start_column); !start.text.empty())
      flow.start = Time{take(parse_duration(start)).ps};
    if (const Token after = csv.cell(after_column); !after.text.empty()) {
      flow.after = index_.find(after.text).value_or(FlowSet::none);
      waits_for_later_ |= flow.after == FlowSet::none;
    }
    flow.via = read_via(csv.cell(via_column));
    read_class(csv.cell(class_column));
    set_.flows.push_back(flow);
  }

  // Before the flow is added. Sets without classes keep no column of them.
  void read_class(const Token& cell) {
    std::optional<unsigned> number = 0;
    if (!cell.text.empty()) number = whole_number<unsigned>(cell.text);
    if (!number || *number > flow_class_max || (*number == 0 && !cell.text.empty()))
      errors_.push_back(
          {Errc::value,
           cell.where,
           fmt::format("{} is not a class", quote(cell.text)),
           fmt::format("write 1 to {}, or nothing for the transport's data class", flow_class_max),
           {}});
    else if (*number > 0)
      set_.classes.resize(set_.flows.size());
    if (!set_.classes.empty() || number.value_or(0) > 0)
      set_.classes.push_back(static_cast<std::uint8_t>(number.value_or(0)));
  }

  void add_id(const Token& id) {
    const bool is_new = index_.add(id.text);
    if (id.text.empty()) {
      errors_.push_back({Errc::parse, id.where, "the id is empty", "give every flow an id", {}});
    } else if (!is_new) {
      errors_.push_back({Errc::value,
                         id.where,
                         fmt::format("duplicate id {}", quote(id.text)),
                         "give every flow a unique id",
                         {}});
    }
  }

  // A NIC, or the NIC of a GPU.
  NodeId nic(const Token& token) {
    const Result<NodeId> node = fabric_.find_node(token);
    if (!node) {
      errors_.push_back(node.error());
      return {};
    }
    switch (fabric_.kind(*node)) {
      case NodeKind::nic:
        return *node;
      case NodeKind::gpu:
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

  std::uint32_t read_via(const Token& cell) {
    if (cell.text.empty()) return FlowSet::none;
    via_.clear();
    for (const std::string_view name : split(cell.text, '|')) {
      const NodeId node = take(fabric_.find_node({trim(name), cell.where}));
      if (!node.valid()) continue;
      if (!fabric_.is_switch(node))
        errors_.push_back({Errc::value,
                           cell.where,
                           fmt::format("\"{}\" is not a switch", name),
                           "list switches separated by |",
                           {}});
      via_.push_back(node);
    }
    return set_.add_via(via_);
  }

  // Reads once more, now that all ids are known.
  void resolve_after() {
    CsvReader csv(text_, file_);
    if (!csv.header(required, optional)) return;
    for (std::size_t i = 0; i < set_.flows.size() && errors_.size() < errors_max; ++i) {
      if (!csv.next()) return;
      const Token after = csv.cell(after_column);
      if (after.text.empty() || set_.flows[i].after != FlowSet::none) continue;
      if (const auto found = index_.find(after.text)) {
        set_.flows[i].after = *found;
      } else {
        errors_.push_back({Errc::unknown,
                           after.where,
                           fmt::format("no flow has the id {}", quote(after.text)),
                           "use the id of another flow in this file",
                           {}});
      }
    }
  }

  void refuse_circle() {
    const std::uint32_t start = find_circle(set_);
    if (start == FlowSet::none) return;
    errors_.push_back({Errc::infeasible,
                       where_of_after(start),
                       circle_text(set_, start),
                       "remove one `after`",
                       {}});
  }

  // Places are not kept: two million of them would be the largest part of the set.
  Where where_of_after(std::uint32_t flow) const {
    CsvReader csv(text_, file_);
    bool found = csv.header(required, optional).has_value();
    for (std::uint32_t i = 0; found && i <= flow; ++i) found = csv.next();
    return found ? csv.cell(after_column).where : csv.where();
  }

  const Fabric& fabric_;
  std::string_view text_;
  const std::string& file_;
  FlowSet set_;
  FlowIdIndex index_{set_.ids};
  Errors errors_;
  std::vector<NodeId> via_;  // of one row
  bool waits_for_later_ = false;
};

}  // namespace

Result<FlowSet> read_flows(const Fabric& fabric, std::string_view text, const std::string& file) {
  return FlowReader(fabric, text, file).read();
}

}  // namespace weft::model
