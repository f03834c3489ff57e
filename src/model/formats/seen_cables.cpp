#include "model/formats/seen_cables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "base/csv.hpp"

namespace weft::model {

namespace {

std::string text_of(const SeenCable::End& end) {
  return fmt::format("{}/{}", end.device, end.port);
}

class Comparison {
 public:
  explicit Comparison(const Fabric& fabric)
      : fabric_(fabric), seen_(fabric.cable_count()), is_heard_(fabric.node_count()) {}

  void hear(const std::string& device) {
    if (const NodeId node = node_of(device); node.valid()) is_heard_[node.index()] = 1;
  }

  void take(const SeenCable& cable) {
    const Place a = place_of(cable.a), b = place_of(cable.b);
    for (const Place& place : {a, b})
      if (place.node.valid()) is_heard_[place.node.index()] = 1;
    if (a.link.valid() && b.link.valid() && cable_of(a.link) == cable_of(b.link))
      return confirm(a.link);
    // One end alone names a port that the fabric knows: the device at the other has to be right.
    if (a.link.valid() != b.link.valid()) {
      const Place& known = a.link.valid() ? a : b;
      const Place& other = a.link.valid() ? b : a;
      if (device_of(fabric_.to(known.link)) == other.node) {
        if (seen_[cable_of(known.link).index()] == 0) ++diff_.by_device;
        return confirm(known.link);
      }
    }
    if (!a.node.valid() && !b.node.valid()) {
      ++diff_.outside;
      return;
    }
    bool is_told = false;
    for (const auto& [end, far, place] :
         {std::tuple(&cable.a, &cable.b, &a), std::tuple(&cable.b, &cable.a, &b)})
      if (place->link.valid()) {
        seen_[cable_of(place->link).index()] = 1;
        diff_.rows.push_back(
            {CableDiff::Kind::elsewhere, text_of(*end), text_of(*far), far_end(place->link)});
        is_told = true;
      }
    if (is_told) return;
    if (a.node.valid() && b.node.valid())
      diff_.rows.push_back({CableDiff::Kind::extra, text_of(cable.a), text_of(cable.b), ""});
    else
      ++diff_.outside;
  }

  CableDiff finish() {
    for (const CableId cable : ids<CableId>(fabric_.cable_count())) {
      const LinkId link = forward(cable);
      if (!fabric_.on_wire(link) || seen_[cable.index()] != 0) continue;
      if (is_heard(fabric_.from(link)) && is_heard(fabric_.to(link)))
        diff_.rows.push_back({CableDiff::Kind::missing, near_end(link), "", far_end(link)});
      else
        ++diff_.unverified;
    }
    std::ranges::sort(diff_.rows, {}, [](const CableDiff::Row& row) {
      return std::tie(row.kind, row.port, row.seen);
    });
    return std::move(diff_);
  }

 private:
  struct Place {
    NodeId node;  // host or switch
    LinkId link;  // that leaves it by the port
  };

  NodeId node_of(const std::string& device) const {
    if (const auto node = fabric_.find_node({device, {}})) return device_of(*node);
    const auto node = fabric_.find_node({device.substr(0, device.find('.')), {}});
    return node ? device_of(*node) : NodeId();
  }
  // A NIC's host, as LLDP sees it.
  NodeId device_of(NodeId node) const {
    const NodeId host = fabric_.is_switch(node) ? NodeId() : fabric_.host_of(node);
    return host.valid() ? host : node;
  }
  bool is_heard(NodeId node) const { return is_heard_[device_of(node).index()] != 0; }

  Place place_of(const SeenCable::End& end) {
    Place out{.node = node_of(end.device), .link = {}};
    if (!out.node.valid()) return out;
    auto known = ports_.find(out.node);
    if (known == ports_.end()) known = ports_.emplace(out.node, ports_of(out.node)).first;
    if (const auto at = known->second.find(end.port); at != known->second.end())
      out.link = at->second;
    return out;
  }
  std::map<std::string, LinkId> ports_of(NodeId device) const {
    std::map<std::string, LinkId> out;
    const auto add = [&](NodeId node) {
      for (const LinkId link : fabric_.out(node))
        if (fabric_.on_wire(link))
          // NICs of a generated host name their ports alike: such a name says nothing.
          if (const auto [at, is_new] = out.emplace(fabric_.interface_name(link), link); !is_new)
            at->second = {};
    };
    add(device);
    if (fabric_.kind(device) == NodeKind::host)
      for (const NodeId nic : fabric_.nics_of(device)) add(nic);
    return out;
  }

  void confirm(LinkId link) {
    auto& seen = seen_[cable_of(link).index()];
    if (seen == 0) ++diff_.confirmed;
    seen = 1;
  }
  std::string near_end(LinkId link) const {
    return fmt::format("{}/{}", fabric_.name(device_of(fabric_.from(link))),
                       fabric_.interface_name(link));
  }
  std::string far_end(LinkId link) const { return near_end(reverse(link)); }

  const Fabric& fabric_;
  std::vector<std::uint8_t> seen_;      // by cable
  std::vector<std::uint8_t> is_heard_;  // by node
  std::map<NodeId, std::map<std::string, LinkId>> ports_;
  CableDiff diff_;
};

}  // namespace

std::string_view to_text(CableDiff::Kind kind) {
  constexpr std::array<std::string_view, 3> names{"elsewhere", "missing", "extra"};
  return names[static_cast<std::size_t>(kind)];
}

std::vector<SeenCable> each_once(std::vector<SeenCable> cables) {
  for (SeenCable& cable : cables)
    if (cable.b < cable.a) std::swap(cable.a, cable.b);
  std::ranges::sort(cables);
  cables.erase(std::ranges::unique(cables).begin(), cables.end());
  return cables;
}

std::string to_cable_list(std::span<const SeenCable> cables) {
  std::string out = "a_device,a_port,b_device,b_port\n";
  for (const SeenCable& cable : cables)
    out += fmt::format("{},{},{},{}\n", csv_cell(cable.a.device), csv_cell(cable.a.port),
                       csv_cell(cable.b.device), csv_cell(cable.b.port));
  return out;
}

CableDiff compare_cables(const Fabric& fabric, std::span<const SeenCable> seen,
                         std::span<const std::string> heard) {
  Comparison out(fabric);
  for (const std::string& device : heard) out.hear(device);
  for (const SeenCable& cable : seen) out.take(cable);
  return out.finish();
}

}  // namespace weft::model
