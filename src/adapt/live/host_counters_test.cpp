#include "adapt/live/host_counters.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "base/test_approx.hpp"
#include "base/test_folder.hpp"
#include "base/test_skip.hpp"

namespace weft::adapt::live {
namespace {

using port::Metric;

// A tree of files like the kernel's, removed at the end.
class Tree {
 public:
  void write(const std::string& path, const std::string& text) const {
    REQUIRE(write_file(root_.path() + path, text + "\n").has_value());
  }
  const std::string& root() const { return root_.path(); }

 private:
  TestFolder root_;
};

std::optional<double> find(const std::vector<port::Sample>& samples, Metric metric,
                           std::string_view component, std::uint32_t index = 0) {
  for (const port::Sample& sample : samples)
    if (sample.metric == metric && sample.component == component && sample.index == index)
      return sample.value;
  return std::nullopt;
}

// One of everything.
void fill(const Tree& tree) {
  const std::string nic = "/sys/class/net/eth0/";
  tree.write(nic + "operstate", "down");
  tree.write(nic + "flags", "0x1003");
  tree.write(nic + "carrier_changes", "7");
  tree.write(nic + "speed", "400000");
  tree.write(nic + "statistics/rx_bytes", "18446744073709551615");
  tree.write(nic + "statistics/rx_errors", "12");
  tree.write(nic + "statistics/rx_dropped", "3");
  tree.write(nic + "statistics/rx_missed_errors", "4");
  tree.write(nic + "device/aer_dev_correctable", "RxErr 1\nBadTLP 2\nTOTAL_ERR_COR 3");
  tree.write(nic + "device/aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 1");
  tree.write("/sys/class/net/bonding_masters", "");
  tree.write("/sys/bus/pci/devices/0000:00:01.0/aer_dev_correctable", "TOTAL_ERR_COR 5");
  tree.write("/sys/bus/pci/devices/0000:00:02.0/net/eth0/x", "");
  tree.write("/sys/bus/pci/devices/0000:00:02.0/aer_dev_correctable", "TOTAL_ERR_COR 3");
  const std::string rdma = "/sys/class/infiniband/mlx5_0/ports/1/";
  tree.write(rdma + "counters/link_downed", "2");
  tree.write(rdma + "hw_counters/out_of_sequence", "40");
  tree.write(rdma + "hw_counters/np_ecn_marked_roce_packets", "9");
  tree.write("/sys/class/hwmon/hwmon0/name", "nvme");
  tree.write("/sys/class/hwmon/hwmon0/temp1_input", "41850");
  tree.write("/sys/class/hwmon/hwmon1/temp1_input", "-3000");
  tree.write("/sys/class/hwmon/hwmon1/fan1_input", "0");
  tree.write("/sys/class/hwmon/hwmon1/fan2_input", "900");
  tree.write("/sys/class/hwmon/hwmon1/fan2_min", "1000");
  tree.write("/sys/class/hwmon/hwmon1/fan3_input", "0");
  tree.write("/sys/class/hwmon/hwmon1/fan3_fault", "0");
  tree.write("/sys/devices/system/edac/mc/mc0/ce_count", "6");
  tree.write("/sys/devices/system/edac/mc/mc0/ue_count", "1");
  tree.write("/sys/block/sda/device/ioerr_cnt", "0x1f");
  tree.write("/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:   250 kB");
  tree.write("/proc/uptime", "47885.12 9000.00");
  tree.write("/proc/loadavg", "6.00 1.00 0.50 1/103 1");
  tree.write("/proc/stat", "cpu 100 0 0 300 0 0 0 0 0 0\ncpu0 1\ncpu1 1\nintr 1");
}

}  // namespace

TEST_CASE("host counters: what drivers call their counters") {
  const auto is = [](std::string_view name, Metric metric, std::uint32_t index) {
    const auto found = ethtool_statistic(name);
    return found && found->metric == metric && found->index == index;
  };
  CHECK(is("rx_prio3_pause", Metric::pfc_pauses_in, 3));
  CHECK(is("tx_prio0_pause", Metric::pfc_pauses_out, 0));
  CHECK(is("rx_pfc_ena_frames_pri5", Metric::pfc_pauses_in, 5));
  CHECK(is("tx_priority_7_xoff.nic", Metric::pfc_pauses_out, 7));
  CHECK(is("rx_ecn_mark", Metric::ecn_marked, 0));
  for (const char* other : {"rx_prio3_pause_duration", "rx_prio8_pause", "rx_prio_pause", "",
                            "rx_prio33_pause", "tx_priority_7_xon.nic"})
    CHECK_MESSAGE(!ethtool_statistic(other), other);
}

TEST_CASE("host counters: a machine with everything") {
  const Tree tree;
  fill(tree);
  HostCounters counters({.device = "host:0", .root = tree.root()});
  auto samples = counters.read({5});
  CHECK(find(samples, Metric::oper_up, "eth0") == 0);
  CHECK(find(samples, Metric::admin_up, "eth0") == 1);
  CHECK(find(samples, Metric::carrier_changes, "eth0") == 7);
  CHECK(find(samples, Metric::speed_bps, "eth0") == 400e9);
  CHECK(find(samples, Metric::in_octets, "eth0") == 0x1p64);
  CHECK(find(samples, Metric::in_errors, "eth0") == 12);
  CHECK(find(samples, Metric::in_discards, "eth0") == 7);
  CHECK_FALSE(find(samples, Metric::out_discards, "eth0"));
  CHECK(find(samples, Metric::pcie_errors, "eth0") == 4);
  CHECK(find(samples, Metric::pcie_errors, "0000:00:01.0") == 5);
  CHECK_FALSE(find(samples, Metric::pcie_errors, "0000:00:02.0"));
  CHECK(find(samples, Metric::rdma_errors, "mlx5_0", 1) == 42);
  CHECK(find(samples, Metric::ecn_marked, "mlx5_0", 1) == 9);
  CHECK(find(samples, Metric::celsius, "nvme/temp1").value_or(0) == approx(41.85));
  CHECK(find(samples, Metric::celsius, "hwmon1/temp1") == -3);
  CHECK_FALSE(find(samples, Metric::fan_ok, "hwmon1/fan1"));  // may stand on purpose
  CHECK(find(samples, Metric::fan_ok, "hwmon1/fan2") == 0);
  CHECK(find(samples, Metric::fan_ok, "hwmon1/fan3") == 1);
  CHECK(find(samples, Metric::memory_errors, "mc0") == 7);
  CHECK(find(samples, Metric::storage_errors, "sda") == 31);
  CHECK(find(samples, Metric::memory_share, "") == 0.75);
  CHECK(find(samples, Metric::uptime_s, "") == 47885.12);
  CHECK(find(samples, Metric::load_per_cpu, "") == 3);
  CHECK_FALSE(find(samples, Metric::cpu_share, ""));  // of which time?
  CHECK(samples.front().device == "host:0");
  CHECK(samples.front().t.ns == 5);
  CHECK(counters.counts().malformed == 0);

  tree.write("/proc/stat", "cpu 130 0 0 310 0 0 0 0 0 0\ncpu0 1\ncpu1 1\nintr 1");
  tree.write("/sys/class/net/eth0/statistics/rx_errors", "a lot");
  samples = counters.read({6});
  CHECK(find(samples, Metric::cpu_share, "") == 0.75);
  CHECK_FALSE(find(samples, Metric::in_errors, "eth0"));
  CHECK(counters.counts().malformed == 1);
}

TEST_CASE("host counters: a machine with nothing") {
  const Tree tree;
  HostCounters counters({.device = "x", .root = tree.root()});
  const auto samples = counters.read({});
  CHECK(std::ranges::all_of(samples, [](const auto& s) {
    return s.metric == Metric::storage_share;  // of the disk that the tree is on
  }));
}

TEST_CASE("host counters: this machine" * doctest::test_suite("needs sysfs")) {
  HostCounters counters({.device = "here", .root = {}});
  counters.read({});
  const auto samples = counters.read({});
  if (!std::filesystem::exists("/sys/class/net/lo")) {
    skip_test("there is no /sys/class/net/lo");
    return;
  }
  CHECK(find(samples, Metric::oper_up, "lo").has_value());
  CHECK(find(samples, Metric::in_octets, "lo").has_value());
  CHECK(find(samples, Metric::uptime_s, "").value_or(0) > 0);
}

}  // namespace weft::adapt::live
