#include "observe/probe/plan_file.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/json_line.hpp"

namespace weft::observe::probe {
namespace {

using model::LinkId;
using model::NodeId;

std::vector<std::string> names_of(const model::Fabric& fabric, std::span<const LinkId> links) {
  std::vector<std::string> out;
  for (const LinkId link : links) out.emplace_back(fabric.name(link));
  return out;
}

class PlanReader {
 public:
  explicit PlanReader(const model::Fabric& fabric) : fabric_(fabric) {}

  void add(const JsonLine& line) {
    PlanLine row;
    row.src = node(line, "src");
    row.dst = node(line, "dst");
    row.source_port = static_cast<std::uint16_t>(line.count("sport", {}, 1, UINT16_MAX, errors_));
    row.target_port =
        static_cast<std::uint16_t>(line.count("dport", default_port, 1, UINT16_MAX, errors_));
    row.probes = static_cast<std::uint64_t>(line.count("probes", 1, 1, UINT32_MAX, errors_));
    row.window_s = line.number("window_s", 0, 0, 86'400, errors_);
    row.forward = links(line, "forward");
    row.back = links(line, "back");
    row.seen = links(line, "seen");
    if (line.has("t")) row.learned = line.time("t", {}, errors_);
    rows_.push_back(std::move(row));
  }
  Errors& errors() { return errors_; }
  std::vector<PlanLine>& rows() { return rows_; }

 private:
  template <class Id, class Find>
  Id known(std::map<std::string, Id, std::less<>>& cache, const std::string& name, Find find) {
    if (const auto at = cache.find(name); at != cache.end()) return at->second;
    auto found = find();
    if (!found) {
      errors_.push_back(std::move(found).error());
      return {};
    }
    cache.emplace(name, *found);
    return *found;
  }
  NodeId node(const JsonLine& line, std::string_view key) {
    const std::string name = line.text(key, {}, errors_);
    if (name.empty()) return {};
    return known(nodes_, name, [&] { return fabric_.find_node({name, line.where()}); });
  }
  std::vector<LinkId> links(const JsonLine& line, std::string_view key) {
    std::vector<LinkId> out;
    for (const std::string& name : line.texts(key, errors_))
      out.push_back(known(links_, name, [&] { return fabric_.find_link({name, line.where()}); }));
    return out;
  }

  const model::Fabric& fabric_;
  Errors errors_;
  std::vector<PlanLine> rows_;
  std::map<std::string, NodeId, std::less<>> nodes_;
  std::map<std::string, LinkId, std::less<>> links_;
};

}  // namespace

std::string to_json_lines(const model::Fabric& fabric, const Plan& plan,
                          const PlanOptions& options) {
  std::string out;
  for (const PlannedFlow& flow : plan.flows) {
    JsonObject line;
    line.add("src", fabric.name(flow.src))
        .add("dst", fabric.name(flow.dst))
        .add("sport", flow.source_port)
        .add("dport", options.target_port)
        .add("probes", plan.probes)
        .add("window_s", static_cast<double>(options.window_ns) * 1e-9)
        .add("forward", names_of(fabric, plan.forward(flow)))
        .add("back", names_of(fabric, plan.back(flow)));
    line.add_if("t", flow.learned);
    out += std::move(line).text() + "\n";
  }
  return out;
}

Result<std::vector<PlanLine>> read_plan(const model::Fabric& fabric, LineReader& lines) {
  PlanReader reader(fabric);
  while (const auto line = next_json_line(lines, reader.errors())) {
    if (reader.rows().size() == plan_flows_max) {
      reader.errors().push_back({Errc::value,
                                 line->where(),
                                 fmt::format("a plan of more than {} flows", plan_flows_max),
                                 "use part of it",
                                 {}});
      break;
    }
    reader.add(*line);
  }
  if (!reader.errors().empty()) return std::unexpected(combine(std::move(reader.errors())));
  return std::move(reader.rows());
}

}  // namespace weft::observe::probe
