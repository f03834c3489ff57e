#include "model/formats/containerlab.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/config.hpp"

namespace weft::model {
namespace {

std::string containerlab_name(const std::string& name) {
  std::string out = name;
  for (char& c : out)
    if (!is_digit(c) && !(lower_case(c) >= 'a' && lower_case(c) <= 'z')) c = '-';
  return out;
}

class ContainerlabWriter {
 public:
  explicit ContainerlabWriter(const Fabric& fabric)
      : fabric_(fabric), ports_(fabric.node_count()), names_(fabric.node_count()) {}

  Result<std::string> write() {
    for (const CableId cable : ids<CableId>(fabric_.cable_count())) {
      if (!fabric_.on_wire(forward(cable))) continue;
      WEFT_TRY(std::string a, endpoint(fabric_.from(forward(cable))));
      WEFT_TRY(std::string b, endpoint(fabric_.to(forward(cable))));
      Config ends = Config::list(), link = Config::map();
      ends.items = {Config::scalar(std::move(a)), Config::scalar(std::move(b))};
      link.at_or_add("endpoints") = std::move(ends);
      links_.items.push_back(std::move(link));
    }
    if (links_.items.empty())
      return fail(Errc::unsupported, {}, "the fabric has no cable between NICs and switches",
                  "containerlab needs links");
    Config image = Config::map(), kinds = Config::map(), topology = Config::map(),
           root = Config::map();
    image.at_or_add("image") = Config::scalar("alpine:3");
    kinds.at_or_add("linux") = std::move(image);
    topology.at_or_add("kinds") = std::move(kinds);
    topology.at_or_add("nodes") = std::move(nodes_);
    topology.at_or_add("links") = std::move(links_);
    root.at_or_add("name") = Config::scalar("weft");
    root.at_or_add("topology") = std::move(topology);
    return "# Replace the image. Rates and latencies of the fabric are not in this format.\n" +
           to_yaml(root);
  }

 private:
  // "rtsw-3:eth1", the next free interface of the device that `node` belongs to.
  Result<std::string> endpoint(NodeId node) {
    const NodeId host = fabric_.host_of(node);
    const NodeId device = host.valid() ? host : node;
    std::string& name = names_[device];
    if (name.empty()) {
      name = containerlab_name(fabric_.name(device));
      const auto [at, is_new] = taken_.emplace(name, device);
      if (!is_new)
        return fail(Errc::unsupported, {},
                    fmt::format("\"{}\" and \"{}\" are both \"{}\" for containerlab",
                                fabric_.name(at->second), fabric_.name(device), name),
                    "rename one of them");
      Config kind = Config::map();
      kind.at_or_add("kind") = Config::scalar("linux");
      nodes_.fields.push_back({name, {}, std::move(kind)});
    }
    return fmt::format("{}:eth{}", name, ++ports_[device]);
  }

  const Fabric& fabric_;
  Column<NodeId, std::uint32_t> ports_;
  Column<NodeId, std::string> names_;
  std::map<std::string, NodeId> taken_;
  Config nodes_ = Config::map(), links_ = Config::list();
};

}  // namespace

Result<std::string> to_containerlab(const Fabric& fabric) {
  return ContainerlabWriter(fabric).write();
}

}  // namespace weft::model
