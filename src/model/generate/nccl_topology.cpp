#include "model/generate/nccl_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "base/line_index.hpp"
#include "base/text.hpp"
#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

constexpr int depth_max = 32;
constexpr Duration pcie_latency{};
constexpr std::uint32_t at_host = HostSpec::host_part;
constexpr std::int64_t dev_unknown = INT64_MAX;

// Nominal rate of one NVLink in one direction, by compute capability (NVIDIA P100, V100, A100,
// H100, B200 whitepapers; sm86: the RTX A6000's bridge, 14 GB/s a link).
struct NvlinkRate {
  std::int64_t sm;  // from this one on
  Rate rate;
};
constexpr std::array<NvlinkRate, 6> nvlink_rates{{{60, 160_Gbps},
                                                  {70, 200_Gbps},
                                                  {80, 200_Gbps},
                                                  {86, 112_Gbps},
                                                  {90, 200_Gbps},
                                                  {100, 400_Gbps}}};

// Transfers per second of a lane and the share that line coding leaves (PCI Express base
// specifications: 8b/10b, 128b/130b, 242 of 256 bytes of a flit).
struct PcieSpeed {
  double gigatransfers;
  std::int64_t mega;
  std::int64_t payload, line;
};
constexpr std::array<PcieSpeed, 6> pcie_speeds{{{2.5, 2'500, 8, 10},
                                                {5, 5'000, 8, 10},
                                                {8, 8'000, 128, 130},
                                                {16, 16'000, 128, 130},
                                                {32, 32'000, 128, 130},
                                                {64, 64'000, 242, 256}}};

// A device on its way to becoming a part; `above` is another device or the host.
struct Device {
  NodeKind kind = NodeKind::pcie_switch;
  std::string bus;
  std::uint32_t above = at_host;
  Rate rate;  // to `above`
  std::int64_t dev = dev_unknown;
  Rate speed;  // of a NIC's network side
  bool infiniband = false;
  bool front_end = false;
  std::int16_t rail = no_lane, plane = no_lane;
  std::uint32_t part = at_host;
};
struct NvLink {
  std::uint32_t gpu;
  std::string target;  // bus id
  bool to_switch;
  Rate rate;
  Where where;
};
struct ExtraWire {  // c2c, pcilink
  std::uint32_t from;
  std::string target;  // bus id; "" for the host
  Rate rate;
  Where where;
};

class TopologyReader {
 public:
  TopologyReader(std::string_view text, const std::string& file)
      : text_(text), file_(file), lines_(text, file) {}

  Result<HostSpec> read() {
    pugi::xml_document document;
    const auto parsed = document.load_buffer(text_.data(), text_.size());
    if (!parsed)
      return fail(Errc::parse, at(parsed.offset),
                  fmt::format("not valid XML: {}", parsed.description()),
                  "check tags and quotes there");
    const pugi::xml_node system = document.child("system");
    if (!system)
      return fail(Errc::parse, {file_, 1, 1}, "there is no <system> element",
                  "use a file written by NCCL (NCCL_TOPO_DUMP_FILE)");
    for (const pugi::xml_node node : document.children())
      if (node.type() == pugi::node_element && node != system)
        error(Errc::parse, node, fmt::format("<{}> next to <system>", node.name()),
              "use one file per host");
    read_children(system, "system", at_host, 0);
    if (errors_.empty()) check();
    if (errors_.empty()) assign_parts();
    if (errors_.empty()) add_wires();
    if (nvlinks_.empty() && host_.gpu_count() > 1)
      host_.notes.push_back(fmt::format(
          "{}: no <nvlink>, so the {} GPUs of a host reach each other over PCIe alone; if the "
          "hosts "
          "have NVLink (clouds ship files without), use one that NCCL_TOPO_DUMP_FILE wrote on them",
          file_, host_.gpu_count()));
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(host_);
  }

 private:
  Where at(std::ptrdiff_t offset) const { return lines_.at(offset); }
  void report(Errc code, const Where& where, std::string what, std::string hint) {
    if (errors_.size() < errors_max)
      errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }
  void error(Errc code, const pugi::xml_node& node, std::string what, std::string hint) {
    report(code, at(node.offset_debug()), std::move(what), std::move(hint));
  }

  // Elements and where they may stand.
  static bool belongs(std::string_view name, std::string_view parent) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 13> places{
        {{"cpu", "system"},
         {"pci", "cpu"},
         {"nic", "cpu"},
         {"pci", "pci"},
         {"gpu", "pci"},
         {"nic", "pci"},
         {"pcilink", "pci"},
         {"net", "nic"},
         {"nvlink", "gpu"},
         {"c2c", "gpu"},
         {"nvlink", "cpu"},
         {"c2c", "cpu"},
         {"nic", "system"}}};
    return std::ranges::find(places, std::pair(name, parent)) != places.end();
  }

  void read_children(const pugi::xml_node& node, std::string_view parent, std::uint32_t above,
                     int depth) {
    if (depth > depth_max)
      return error(Errc::parse, node, fmt::format("nested deeper than {} levels", depth_max),
                   "flatten the bridge tree");
    for (const pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string_view name = child.name();
      if (!belongs(name, parent)) {
        const std::vector<std::string> known{"system", "cpu", "pci",    "gpu",    "nic",
                                             "net",    "c2c", "nvlink", "pcilink"};
        error(Errc::unknown, child,
              fmt::format("unknown <{}> inside <{}>{}", name.substr(0, 40), parent,
                          did_you_mean(name, known)),
              "remove it");
      } else if (name == "cpu") {
        read_children(child, "cpu", at_host, depth + 1);
      } else if (name == "pci") {
        read_pci(child, above, depth);
      } else if (name == "nic") {
        read_nets(child, {}, above);  // without a PCI device: a NIC at the processors
      }
      if (errors_.size() >= errors_max || devices_.size() > devices_max) return;
    }
  }

  std::string_view text_of(const pugi::xml_node& node, const char* key) const {
    return trim(node.attribute(key).value());
  }
  // A whole number; reports one that is missing or odd.
  std::optional<std::int64_t> number(const pugi::xml_node& node, const char* key,
                                     std::int64_t least, std::int64_t most) {
    const std::string_view text = text_of(node, key);
    std::int64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (!text.empty() && failed == std::errc{} && end == text.data() + text.size() &&
        value >= least && value <= most)
      return value;
    error(Errc::parse, node,
          text.empty() ? fmt::format("<{}> has no \"{}\"", node.name(), key)
                       : fmt::format("{}=\"{}\" of <{}> is not a number from {} to {}", key,
                                     text.substr(0, 40), node.name(), least, most),
          fmt::format("write e.g. {}=\"{}\"", key, std::max<std::int64_t>(least, 1)));
    return {};
  }
  bool has(const pugi::xml_node& node, const char* key) const {
    return !text_of(node, key).empty();
  }
  std::int16_t lane(const pugi::xml_node& node, const char* key) {
    if (!has(node, key)) return no_lane;
    // NCCL writes -1 where it does not know.
    return static_cast<std::int16_t>(number(node, key, no_lane, INT16_MAX).value_or(no_lane));
  }

  // "32.0 GT/s PCIe" x 16 lanes.
  Rate pcie_rate(const pugi::xml_node& node) {
    const std::string_view text = text_of(node, "link_speed");
    double speed = 0;
    const auto [rest, failed] = std::from_chars(text.data(), text.data() + text.size(), speed);
    const std::string_view unit = trim(text.substr(static_cast<std::size_t>(rest - text.data())));
    const auto known = std::ranges::find(pcie_speeds, speed, &PcieSpeed::gigatransfers);
    if (failed != std::errc{} || !unit.starts_with("GT/s") || known == pcie_speeds.end()) {
      error(Errc::parse, node,
            fmt::format("link_speed=\"{}\" is not a PCI Express speed", text.substr(0, 40)),
            "write e.g. link_speed=\"32.0 GT/s PCIe\" (2.5, 5, 8, 16, 32 or 64)");
      return {};
    }
    const auto width = number(node, "link_width", 1, 32);
    return {known->mega * 1'000'000 * width.value_or(1) * known->payload / known->line};
  }

  void read_pci(const pugi::xml_node& node, std::uint32_t above, int depth) {
    Device device;
    device.bus = text_of(node, "busid");
    device.above = above;
    const std::string_view type = text_of(node, "class");
    if (type.starts_with("0x0680")) return;  // an NVSwitch; NVLinks say who is joined to it
    device.rate = pcie_rate(node);
    if (device.bus.empty())
      error(Errc::parse, node, "<pci> has no \"busid\"", "write e.g. busid=\"0000:0f:00.0\"");
    if (const auto gpu = node.child("gpu")) return read_gpu(gpu, std::move(device));
    if (const auto nic = node.child("nic")) {
      device.infiniband = type.starts_with("0x0207");
      return read_nets(nic, std::move(device), above);
    }
    if (type.starts_with("0x0302") || type.starts_with("0x0300")) {
      device.kind = NodeKind::gpu;
      add(std::move(device));
    } else if (type.starts_with("0x0207") || type.starts_with("0x0200")) {
      device.kind = NodeKind::nic;
      device.infiniband = type.starts_with("0x0207");
      add(std::move(device));
    } else if (type.starts_with("0x0604")) {
      const std::uint32_t bridge = add(std::move(device));
      for (const pugi::xml_node link : node.children("pcilink"))
        wires_.push_back({bridge, std::string(text_of(link, "target")), devices_[bridge].rate,
                          at(link.offset_debug())});
      read_children(node, "pci", bridge, depth + 1);
    } else {
      error(Errc::unsupported, node,
            fmt::format("device class \"{}\" is neither a bridge, a GPU nor a NIC",
                        type.substr(0, 40)),
            "remove the device (bridge 0x060400, GPU 0x030200, NIC 0x020000 or 0x020700)");
    }
  }

  std::uint32_t add(Device device) {
    if (!device.bus.empty() && device.kind != NodeKind::nic)
      by_bus_.emplace(device.bus, static_cast<std::uint32_t>(devices_.size()));
    devices_.push_back(std::move(device));
    return static_cast<std::uint32_t>(devices_.size() - 1);
  }

  void read_gpu(const pugi::xml_node& node, Device device) {
    device.kind = NodeKind::gpu;
    if (has(node, "dev")) device.dev = number(node, "dev", 0, INT32_MAX).value_or(0);
    const std::uint32_t gpu = add(std::move(device));
    for (const pugi::xml_node child : node.children()) {
      const std::string_view name = child.name();
      if (child.type() != pugi::node_element) continue;
      if (name == "nvlink") {
        read_nvlink(child, node, gpu);
      } else if (name == "c2c") {
        const auto count = number(child, "count", 1, 100);
        const auto megabytes = number(child, "bw", 1, 100'000'000);
        wires_.push_back({gpu, "", Rate{count.value_or(1) * megabytes.value_or(1) * 8'000'000},
                          at(child.offset_debug())});
      } else {
        error(Errc::unknown, child, fmt::format("unknown <{}> inside <gpu>", name.substr(0, 40)),
              "remove it");
      }
    }
  }
  void read_nvlink(const pugi::xml_node& node, const pugi::xml_node& gpu_node, std::uint32_t gpu) {
    const auto sm = number(gpu_node, "sm", 60, 10'000);
    const auto count = number(node, "count", 1, 100);
    if (!sm || !count) return;
    const auto newer = std::ranges::upper_bound(nvlink_rates, *sm, {}, &NvlinkRate::sm);
    nvlinks_.push_back({gpu, std::string(text_of(node, "target")),
                        text_of(node, "tclass").starts_with("0x0680"),
                        std::prev(newer)->rate * *count, at(node.offset_debug())});
  }

  // The ports of one device. Several share its PCIe link, so they hang from a part of their own.
  void read_nets(const pugi::xml_node& node, Device device, std::uint32_t above) {
    std::vector<pugi::xml_node> nets;
    for (const pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      if (std::string_view(child.name()) == "net") {
        nets.push_back(child);
      } else {
        error(Errc::unknown, child, fmt::format("unknown <{:.40}> inside <nic>", child.name()),
              "write <net>");
      }
    }
    device.kind = NodeKind::nic;
    if (nets.empty()) {
      if (device.rate <= Rate{})
        return error(Errc::value, node, "<nic> has neither a PCI device around it nor a <net>",
                     "remove it, or add <net name dev speed>");
      add(std::move(device));
      return;
    }
    if (nets.size() > 1 && device.rate > Rate{}) {
      Device shared = device;
      shared.kind = NodeKind::pcie_switch;
      above = add(std::move(shared));
      device.rate = {};
    }
    device.above = above;
    for (const pugi::xml_node& net : nets) read_net(net, device);
  }
  void read_net(const pugi::xml_node& net, Device device) {
    constexpr std::int64_t megabits_max = 100'000'000;
    device.speed = Rate{number(net, "speed", 1, megabits_max).value_or(1) * 1'000'000};
    if (device.rate <= Rate{}) device.rate = device.speed;
    if (has(net, "dev")) device.dev = number(net, "dev", 0, INT32_MAX).value_or(0);
    device.rail = lane(net, "rail");
    device.plane = lane(net, "plane");
    add(std::move(device));
  }

  void check() {
    const auto count = [&](NodeKind kind) {
      return std::ranges::count(devices_, kind, &Device::kind);
    };
    const auto gpus = count(NodeKind::gpu), nics = count(NodeKind::nic);
    const Where where{file_, 1, 1};
    if (gpus + nics == 0)
      report(Errc::value, where, "the file describes neither GPUs nor NICs",
             "use a file written by NCCL (NCCL_TOPO_DUMP_FILE)");
    if (gpus > per_host_max || nics > per_host_max || devices_.size() > devices_max)
      report(Errc::value, where,
             fmt::format("more than {} GPUs or NICs, or {} devices", per_host_max, devices_max),
             "use one file per host");
    check_unique(NodeKind::gpu, where);
    check_unique(NodeKind::nic, where);
    separate_front_end();
  }
  void check_unique(NodeKind kind, const Where& where) {
    std::vector<std::pair<std::int64_t, std::string>> seen;
    for (const Device& d : devices_)
      if (d.kind == kind && d.dev != dev_unknown) seen.emplace_back(d.dev, d.bus);
    std::ranges::sort(seen);
    const auto twice = std::ranges::adjacent_find(seen, {}, [](const auto& s) { return s.first; });
    if (twice != seen.end())
      report(Errc::value, where,
             fmt::format("dev=\"{}\" is used at {} and at {}", twice->first, twice->second,
                         std::next(twice)->second),
             "give each device of a kind its own number");
  }
  void separate_front_end() {
    Rate fastest;
    bool infiniband = false;
    for (const Device& d : devices_) {
      fastest = std::max(fastest, d.speed);
      infiniband = infiniband || d.infiniband;
    }
    host_.nic_rate = fastest;
    for (Device& d : devices_)
      d.front_end = d.kind == NodeKind::nic &&
                    (fastest > Rate{} ? d.speed < fastest : infiniband && !d.infiniband);
  }

  // GPUs, NICs and front-end NICs in index order, then switches in file order.
  void assign_parts() {
    const auto rank = [](const Device& d) {
      if (d.kind == NodeKind::gpu) return 0;
      if (d.kind == NodeKind::nic) return d.front_end ? 2 : 1;
      return 3;
    };
    std::vector<std::uint32_t> order(devices_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::uint32_t i) {
      const Device& d = devices_[i];
      const bool numbered = rank(d) < 3;
      return std::tuple(rank(d), numbered ? d.dev : 0, numbered ? d.bus : std::string{}, i);
    });
    constexpr std::array<std::string_view, 4> roles{"gpu", "nic", "fe_nic", "pcie"};
    for (const std::uint32_t i : order) {
      Device& d = devices_[i];
      d.part = static_cast<std::uint32_t>(host_.parts.size());
      host_.parts.push_back(
          {d.kind, std::string(roles[static_cast<std::size_t>(rank(d))]), d.rail, d.plane});
    }
    host_.name = "nccl";
  }

  void add_wires() {
    add_nvlinks();
    for (const Device& d : devices_)
      host_.wires.push_back(
          {d.part, d.above == at_host ? at_host : devices_[d.above].part, d.rate, pcie_latency});
    std::map<std::pair<std::uint32_t, std::uint32_t>, Rate> joined;
    for (const ExtraWire& wire : wires_) {
      const auto target = find(wire.target, wire.where);
      if (!target) continue;
      const std::uint32_t from = devices_[wire.from].part;
      const std::uint32_t to = wire.target.empty() ? at_host : devices_[*target].part;
      if (from == to) continue;
      Rate& rate = joined[std::minmax(from, to)];  // both ends name a link; it is there once
      rate = std::max(rate, wire.rate);
    }
    for (const auto& [ends, rate] : joined)
      host_.wires.push_back({ends.first, ends.second, rate, pcie_latency});
  }
  // The device with that bus id; 0 for "", which nobody looks at.
  std::optional<std::uint32_t> find(const std::string& bus, const Where& where) {
    if (bus.empty()) return 0;
    if (const auto it = by_bus_.find(bus); it != by_bus_.end()) return it->second;
    constexpr std::size_t candidates_max = 2'000;  // bounds the search
    std::vector<std::string> known;
    for (const auto& [name, device] : by_bus_)
      if (known.size() < candidates_max) known.push_back(name);
    report(Errc::unknown, where,
           fmt::format("no device has the bus id \"{}\"{}", bus.substr(0, 40),
                       did_you_mean(bus, known)),
           "add the device, or remove the link");
    return {};
  }
  void add_nvlinks() {
    std::map<std::uint32_t, Rate> to_switch;  // by part of a GPU
    std::map<std::pair<std::uint32_t, std::uint32_t>, Rate> direct;
    for (const NvLink& link : nvlinks_) {
      const std::uint32_t gpu = devices_[link.gpu].part;
      if (link.to_switch) {
        to_switch[gpu] = to_switch[gpu] + link.rate;
        continue;
      }
      const auto target = find(link.target, link.where);
      if (!target || link.target.empty() || devices_[*target].part == gpu) continue;
      Rate& rate = direct[std::minmax(gpu, devices_[*target].part)];
      rate = std::max(rate, link.rate);
    }
    for (const auto& [ends, rate] : direct)
      host_.wires.push_back({ends.first, ends.second, rate, nvlink_latency});
    if (to_switch.empty()) return;
    const auto nvswitch = static_cast<std::uint32_t>(host_.parts.size());
    host_.parts.push_back({NodeKind::nvswitch, "nvswitch"});
    for (const auto& [gpu, rate] : to_switch)
      host_.wires.push_back({gpu, nvswitch, rate, nvlink_latency});
  }

  static constexpr std::size_t devices_max = 8 * per_host_max;

  std::string_view text_;
  const std::string& file_;
  LineIndex lines_;
  Errors errors_;
  std::vector<Device> devices_;
  std::map<std::string, std::uint32_t> by_bus_;
  std::vector<NvLink> nvlinks_;
  std::vector<ExtraWire> wires_;
  HostSpec host_;
};

}  // namespace

Result<HostSpec> read_nccl_topology(std::string_view text, const std::string& file) {
  WEFT_TRY_STATUS(check_text_size(text, file, 4 << 20, "use one file per host"));
  return TopologyReader(text, file).read();
}

}  // namespace weft::model
