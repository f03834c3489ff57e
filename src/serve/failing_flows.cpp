#include "serve/failing_flows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "model/events/entity.hpp"

namespace weft::serve {
namespace {

using port::Flow;

// Takes what stands before `mark`, and the mark.
std::string_view take_until(std::string_view& text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  const std::string_view out = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + mark.size());
  return out;
}

bool read_port(std::string_view text, std::uint16_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string to_text(const std::vector<Flow>& flows) {
  std::string out;
  for (const Flow& f : flows)
    out += fmt::format("{}{}>{} {}>{} {} {}", out.empty() ? "" : ";", f.src, f.dst, f.sport,
                       f.dport, f.traffic_class, f.link);
  return out;
}

std::vector<Flow> read_flows(std::string_view text) {
  std::vector<Flow> out;
  while (!text.empty()) {
    std::string_view one = take_until(text, ";");
    Flow flow;
    flow.src = take_until(one, ">");
    flow.dst = take_until(one, " ");
    const bool has_ports =
        read_port(take_until(one, ">"), flow.sport) && read_port(take_until(one, " "), flow.dport);
    flow.traffic_class = take_until(one, " ");
    flow.link = one;
    if (has_ports && !flow.src.empty() && !flow.dst.empty() && !flow.link.empty())
      out.push_back(std::move(flow));
  }
  return out;
}

// A cable for its ends and directions, a switch for its cards; "" for what is not drained.
std::string FailingFlows::key_of(const model::Entity& entity) const {
  switch (entity.kind) {
    case model::EntityKind::port:
    case model::EntityKind::link:
      return name(fabric_, model::entity(cable_of(model::LinkId(entity.id))));
    case model::EntityKind::cable:
      return name(fabric_, entity);
    case model::EntityKind::node:
    case model::EntityKind::card:
      return std::string(fabric_.name(model::NodeId(entity.id)));
    case model::EntityKind::scope:
    case model::EntityKind::none:
      break;
  }
  return "";
}

void FailingFlows::add(const model::RecordSet& records) {
  for (const model::Record& row : records.rows) {
    const std::string_view text = records.attribute(row, "flows");
    if (text.empty()) continue;
    const std::string key = key_of(row.entity);
    if (key.empty()) continue;
    Known& known = parts_[key];
    known.named = ++count_;
    for (Flow& flow : read_flows(text)) {
      std::erase(known.flows, flow);
      known.flows.push_back(std::move(flow));
      if (known.flows.size() > flows_max) known.flows.pop_front();
    }
    if (parts_.size() > parts_max)
      parts_.erase(
          std::ranges::min_element(parts_, {}, [](const auto& part) { return part.second.named; }));
  }
}

std::vector<Flow> FailingFlows::of(std::string_view part) const {
  std::vector<Flow> out;
  if (const auto found = parts_.find(part); found != parts_.end())
    out.assign(found->second.flows.begin(), found->second.flows.end());
  const auto node = fabric_.find_node({part, {}});
  if (!node) return out;
  for (const model::LinkId link : fabric_.out(*node)) {
    if (!fabric_.on_wire(link)) continue;
    const auto found = parts_.find(name(fabric_, model::entity(cable_of(link))));
    if (found == parts_.end() || out.size() >= flows_max) continue;
    for (const Flow& flow : found->second.flows)
      if (std::ranges::find(out, flow) == out.end()) out.push_back(flow);
  }
  return out;
}

}  // namespace weft::serve
