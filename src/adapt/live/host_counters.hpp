// What Linux counts and senses of the machine it runs on: NICs, buses, memory, processors, fans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/timestamp.hpp"
#include "port/sample.hpp"

namespace weft::adapt::live {

// What a driver's own statistic means ("rx_prio3_pause" of mlx5: pauses in of class 3), as
// `ethtool -S` names it; nothing for those that we do not use.
struct Statistic {
  port::Metric metric;
  std::uint32_t index = 0;
};
std::optional<Statistic> ethtool_statistic(std::string_view name);

// Reads files below /proc and /sys, and statistics of drivers by ioctl. What a machine does not
// have is left out; a counter that is no number is counted and left out.
class HostCounters {
 public:
  struct Options {
    std::string device;  // of the samples
    std::string root;    // before "/proc" and "/sys"; with one, no driver is asked
  };
  struct Counts {
    std::uint64_t rounds = 0, samples = 0;
    std::uint64_t malformed = 0;  // files that are not what they should be
  };

  explicit HostCounters(Options options);

  // All of one moment. Components are interfaces ("eth0"; errors of their bus too), RDMA devices
  // ("mlx5_0", index: port), sensors ("nvme/temp1"), memory controllers ("mc0"), disks ("sda"),
  // PCI addresses of what is no NIC, and "" for the host. The share of its processors is of the
  // time since the call before. Cost: one system call or three a value, some milliseconds in all;
  // at most 4,096 entries of a directory are looked at.
  std::vector<port::Sample> read(Timestamp t);
  const Counts& counts() const { return counts_; }

 private:
  using Metric = port::Metric;
  void add(std::string_view component, Metric metric, double value, std::uint32_t index = 0);
  std::optional<std::string> text(const std::string& path);
  std::optional<double> number(const std::string& path);
  // Names in a directory, sorted.
  std::vector<std::string> names(const std::string& path);
  // The sum of those files of a folder that are there.
  std::optional<double> sum(const std::string& folder, const std::vector<std::string_view>& files);

  void read_interfaces();
  void read_interface(const std::string& name);
  void read_driver(const std::string& name);
  std::optional<double> bus_errors(const std::string& device);
  void read_bus();
  void read_rdma();
  void read_sensors();
  void read_fan(const std::string& folder, const std::string& sensor, const std::string& file);
  void read_memory();
  void read_storage();
  void read_processors();

  Options options_;
  Counts counts_;
  std::uint64_t busy_ = 0, idle_ = 0;  // jiffies, when last read
  Timestamp t_;
  std::vector<port::Sample> out_;
};

}  // namespace weft::adapt::live
