#include "model/generate/nccl_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/file.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using namespace testing;

HostSpec read_host(const std::string& text) {
  auto host = read_nccl_topology(text, "t.xml");
  REQUIRE_MESSAGE(host.has_value(), (host ? "" : host.error().text()));
  return *std::move(host);
}
std::string refuse_host(std::string_view text) {
  const auto host = read_nccl_topology(text, "t.xml");
  return host ? "accepted" : host.error().text();
}
std::size_t parts(const HostSpec& host, std::string_view role) {
  return static_cast<std::size_t>(std::ranges::count(host.parts, role, &HostSpec::Part::role));
}
std::uint32_t part(const HostSpec& host, std::string_view role, std::uint32_t index) {
  for (std::uint32_t i = 0; i < host.parts.size(); ++i)
    if (host.parts[i].role == role && index-- == 0) return i;
  return HostSpec::host_part;
}
// Rate of the wire between two parts, 0 for none.
Rate wire(const HostSpec& host, std::uint32_t a, std::uint32_t b) {
  for (const HostSpec::Wire& w : host.wires)
    if ((w.a == a && w.b == b) || (w.a == b && w.b == a)) return w.rate;
  return {};
}

constexpr std::string_view gen5 = R"(link_speed="32.0 GT/s PCIe" link_width="16")";

// cpu - bridge - gpu 1 ======= NVSwitches (18 links)
//  |       \---- NIC: two ports of 200G    cpu - NIC of 100G (front end)
//  \--- bridge - gpu 0 ======= NVSwitches
const std::string two_gpus = R"(<!-- own sample -->
<system version="1">
  <cpu numaid="0" arch="x86_64">
    <pci busid="0000:10:00.0" class="0x060400" )" +
                             std::string(gen5) + R"(>
      <pci busid="0000:11:00.0" class="0x030200" )" +
                             std::string(gen5) + R"(>
        <gpu dev="1" sm="90" rank="1" gdr="1">
          <nvlink target="0000:05:00.0" count="9" tclass="0x068000"/>
          <nvlink target="0000:06:00.0" count="9" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x020000" )" +
                             std::string(gen5) + R"(>
        <nic>
          <net name="mlx5_0" dev="0" speed="200000" port="1" rail="3" plane="0"/>
          <net name="mlx5_1" dev="1" speed="200000" port="2" rail="3" plane="1"/>
        </nic>
      </pci>
    </pci>
    <pci busid="0000:20:00.0" class="0x060400" )" +
                             std::string(gen5) + R"(>
      <pci busid="0000:21:00.0" class="0x030200" )" +
                             std::string(gen5) + R"(>
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:05:00.0" count="18" tclass="0x068000"/>
        </gpu>
      </pci>
    </pci>
    <nic><net name="eth0" dev="2" speed="100000"/></nic>
  </cpu>
</system>)";

TEST_CASE("devices become parts in the order of dev") {
  const HostSpec host = read_host(two_gpus);
  CHECK(host.gpu_count() == 2);
  CHECK(host.notes.empty());
  CHECK(host.nic_count() == 2);
  CHECK(parts(host, "fe_nic") == 1);
  CHECK(parts(host, "nvswitch") == 1);
  CHECK(parts(host, "pcie") == 3);  // two bridges and the dual-port device
  CHECK(host.nic_rate == 200_Gbps);
  CHECK(host.parts[part(host, "nic", 1)].rail == 3);
  CHECK(host.parts[part(host, "nic", 1)].plane == 1);

  const std::uint32_t nvswitch = part(host, "nvswitch", 0);
  CHECK(wire(host, part(host, "gpu", 0), nvswitch) == 3600_Gbps);
  CHECK(wire(host, part(host, "gpu", 1), nvswitch) == 3600_Gbps);
  // 32 GT/s x 16 lanes x 128/130.
  const Rate x16{504'123'076'923};
  const std::uint32_t bridge0 = part(host, "pcie", 0), card = part(host, "pcie", 1);
  CHECK(wire(host, part(host, "gpu", 1), bridge0) == x16);
  CHECK(wire(host, card, bridge0) == x16);
  CHECK(wire(host, part(host, "nic", 0), card) == 200_Gbps);
  CHECK(wire(host, bridge0, HostSpec::host_part) == x16);
  CHECK(wire(host, part(host, "fe_nic", 0), HostSpec::host_part) == 100_Gbps);
}

TEST_CASE("NVLinks between GPUs, C2C, PCIe generations") {
  const auto with = [](std::string_view speed) {
    return R"(<system version="1"><cpu>
      <pci busid="a" class="0x030200" link_speed=")" +
           std::string(speed) + R"(" link_width="8">
        <gpu dev="0" sm="80"><nvlink target="b" count="4" tclass="0x030200"/>
          <c2c count="10" bw="45000"/></gpu></pci>
      <pci busid="b" class="0x030200" link_speed="16 GT/s" link_width="16">
        <gpu dev="1" sm="80"><nvlink target="a" count="4" tclass="0x030200"/></gpu></pci>
      </cpu></system>)";
  };
  const HostSpec host = read_host(with("8 GT/s"));
  CHECK(host.nic_rate == Rate{});
  CHECK(wire(host, 0, 1) == 800_Gbps);  // named from both sides, there once
  CHECK(wire(host, 0, HostSpec::host_part) == Rate{8'000'000'000 * 8 * 128 / 130});
  CHECK(std::ranges::count(host.wires, Rate{3'600'000'000'000}, &HostSpec::Wire::rate) == 1);
  CHECK(wire(read_host(with("5 GT/s")), 0, HostSpec::host_part) == 32_Gbps);
  CHECK(wire(read_host(with("64.0 GT/s PCIe")), 0, HostSpec::host_part) == 484_Gbps);
}

// In the form that clouds ship: two processors, PCIe switches with GPUs and NICs below, known by
// their class code alone.
std::string cloud_host(unsigned gpus_per_switch, std::string_view speed) {
  const auto device = [&](unsigned bus, unsigned n, std::string_view code, std::string_view end) {
    return fmt::format(
        "<pci busid=\"{:04x}:{:02x}:00.0\" class=\"{}\" link_speed=\"{}\" "
        "link_width=\"16\"{}>\n",
        bus, n, code, speed, end);
  };
  std::string out = "<system version=\"1\">\n";
  for (unsigned n = 0; n < 8; ++n) {
    if (n % 4 == 0)
      out += fmt::format("<cpu numaid=\"{}\" affinity=\"ffff\" arch=\"x86_64\">\n", n / 4);
    if (n % gpus_per_switch == 0) out += device(0xffff, n, "0x060400", "");
    out += device(n, 0, "0x030200", "/") + device(0x100 + n, 0, "0x020700", "/");
    if ((n + 1) % gpus_per_switch == 0) out += "</pci>\n";
    if (n % 4 == 3) out += "</cpu>\n";
  }
  return out + "</system>\n";
}

TEST_CASE("files of clouds: devices by class code alone") {
  for (const auto& [gpus_per_switch, speed, rate] :
       {std::tuple(2u, "16.0 GT/s PCIe", Rate{252'061'538'461}),
        std::tuple(1u, "32.0 GT/s PCIe", Rate{504'123'076'923})}) {
    const HostSpec host = read_host(cloud_host(gpus_per_switch, speed));
    CHECK(host.gpu_count() == 8);
    CHECK(host.nic_count() == 8);
    CHECK(host.nic_rate == Rate{});
    CHECK(parts(host, "pcie") == 8u / gpus_per_switch);
    CHECK(host.wires.size() == 16 + parts(host, "pcie"));
    for (const HostSpec::Wire& w : host.wires) CHECK(w.rate == rate);
    REQUIRE(host.notes.size() == 1);
    CHECK(host.notes[0].starts_with("t.xml: no <nvlink>, so the 8 GPUs"));
  }
}

TEST_CASE("rails, planes and notes reach the fabric") {
  const std::string path = "nccl_topology_test.xml";
  REQUIRE(write_file(path, cloud_host(2, "16.0 GT/s PCIe")).has_value());
  CHECK(make_fabric("{generator: ai_zone, racks: 2, host: " + path + "}").notes().size() == 1);
  REQUIRE(write_file(path, two_gpus).has_value());
  const Fabric f =
      make_fabric("{generator: ai_zone, racks: 1, hosts_per_rack: 1, host: " + path + "}");
  std::remove(path.c_str());
  CHECK(f.rail(node(f, "nic:1")) == 3);
  CHECK(f.plane(node(f, "nic:1")) == 1);
  CHECK(f.rate(link(f, "nic:0->rtsw:0")) == 200_Gbps);
}

TEST_CASE("mistakes are named with their place") {
  struct Mistake {
    std::string_view text, place, what;
  };
  const std::array mistakes{
      Mistake{"", "t.xml:1:1", "not valid XML"},
      Mistake{"<system>\n  <cpu>\n</system>", "t.xml:3:", "not valid XML"},
      Mistake{"<graphs/>", "t.xml:1:1", "no <system>"},
      Mistake{"<system/>", "t.xml:1:1", "neither GPUs nor NICs"},
      Mistake{"<system/><system/>", "t.xml:1:11", "next to"},
      Mistake{"<system>\n <cpu><pcy/></cpu></system>", "t.xml:2:8", "did you mean \"pci\"?"},
      Mistake{"<system><gpu/></system>", "t.xml:1:10", "<gpu> inside <system>"},
      Mistake{"<system><cpu><pci busid='a' class='0x030200' link_width='16'/></cpu></system>",
              "t.xml:1:15", "link_speed=\"\""},
      Mistake{"<system><cpu><pci busid='a' class='0x030200' link_speed='7 GT/s' "
              "link_width='16'/></cpu></system>",
              "t.xml:1:15", "not a PCI Express speed"},
      Mistake{"<system><cpu><pci busid='a' class='0x030200' link_speed='8 GT/s' "
              "link_width='0'/></cpu></system>",
              "t.xml:1:15", "link_width=\"0\""},
      Mistake{"<system><cpu><pci busid='a' class='0x010802' link_speed='8 GT/s' "
              "link_width='4'/></cpu></system>",
              "t.xml:1:15", "neither a bridge"},
      Mistake{"<system><cpu><pci class='0x030200' link_speed='8 GT/s' "
              "link_width='4'/></cpu></system>",
              "t.xml:1:15", "no \"busid\""},
      Mistake{"<system><cpu><nic><net dev='0'/></nic></cpu></system>", "t.xml:1:20",
              "no \"speed\""},
      Mistake{"<system><cpu><nic><net dev='0' speed='x'/></nic></cpu></system>", "t.xml:1:20",
              "not a number"},
      Mistake{"<system><cpu><nic><net dev='0' speed='1'/><net dev='0' speed='1'/></nic></cpu>"
              "</system>",
              "t.xml:1:1", "dev=\"0\" is used at"},
      Mistake{"<system><cpu><nic/></cpu></system>", "t.xml:1:15", "neither a PCI device"},
      Mistake{
          "<system><cpu><pci busid='a' class='0x030200' link_speed='8 GT/s' link_width='4'>"
          "<gpu dev='0'><nvlink target='b' count='1' tclass='0x03'/></gpu></pci></cpu></system>",
          "t.xml:1:", "has no \"sm\""},
      Mistake{"<system><cpu><pci busid='a' class='0x030200' link_speed='8 GT/s' link_width='4'>"
              "<gpu dev='0' sm='90'><nvlink target='b' count='1' tclass='0x03'/></gpu></pci></cpu>"
              "</system>",
              "t.xml:1:", "no device has the bus id \"b\""},
  };
  for (const Mistake& m : mistakes) {
    CAPTURE(m.text);
    const std::string said = refuse_host(m.text);
    CHECK_MESSAGE(said.starts_with(m.place), said);
    CHECK_MESSAGE(contains(said, m.what), said);
  }
}

TEST_CASE("deep, wide and large files are refused") {
  std::string deep = "<system><cpu>";
  for (int i = 0; i < 40; ++i)
    deep += "<pci busid='" + std::to_string(i) +
            "' class='0x060400' link_speed='8 GT/s' "
            "link_width='4'>";
  for (int i = 0; i < 40; ++i) deep += "</pci>";
  CHECK(contains(refuse_host(deep + "</cpu></system>"), "deeper than 32"));
  std::string wide = "<system><cpu><nic>";
  for (int i = 0; i < 1100; ++i) wide += "<net speed='1'/>";
  CHECK(contains(refuse_host(wide + "</nic></cpu></system>"), "more than 1024"));
  CHECK(contains(refuse_host(std::string(5 << 20, ' ')), "larger than"));
}

}  // namespace
}  // namespace weft::model
