#include "adapt/live/host_counters.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/fd.hpp"
#include "base/text.hpp"

namespace weft::adapt::live {
namespace {

using port::Metric;

constexpr std::size_t entries_max = 4096;
constexpr std::size_t file_bytes = 65'536;
constexpr std::size_t statistics_max = 16'384;

// "rx_prio{}_pause": the class stands where the braces do. Names as mlx5, bnxt_en and ice have
// them.
struct StatisticName {
  std::string_view before, behind;
  Metric metric;
};
constexpr std::array statistic_names{
    StatisticName{"rx_prio", "_pause", Metric::pfc_pauses_in},
    StatisticName{"tx_prio", "_pause", Metric::pfc_pauses_out},
    StatisticName{"rx_pfc_ena_frames_pri", "", Metric::pfc_pauses_in},
    StatisticName{"tx_pfc_ena_frames_pri", "", Metric::pfc_pauses_out},
    StatisticName{"rx_priority_", "_xoff.nic", Metric::pfc_pauses_in},
    StatisticName{"tx_priority_", "_xoff.nic", Metric::pfc_pauses_out},
};

// Of an RDMA port: what makes its transport send again or give up, and what is wrong on its link.
const std::vector<std::string_view> link_errors{
    "symbol_error",    "link_error_recovery",         "link_downed",
    "port_rcv_errors", "local_link_integrity_errors", "excessive_buffer_overrun_errors"};
const std::vector<std::string_view> transport_errors{
    "out_of_sequence",     "packet_seq_err",       "local_ack_timeout_err", "rnr_nak_retry_err",
    "implied_nak_seq_err", "rx_icrc_encapsulated", "to_retransmits",        "seq_err_naks_rcvd",
    "max_retry_exceeded",  "rnr_naks_rcvd"};

template <class Number>
std::optional<Number> parse(std::string_view text) {
  text = trim(text);
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  Number out{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out, base);
  if (error != std::errc{} || at != end) return std::nullopt;
  return out;
}

std::optional<double> parse_real(std::string_view text) {
  double out = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} ? std::optional(out) : std::nullopt;
}

std::string_view word(std::string_view line, std::size_t at) {
  for (;; --at) {
    line = trim(line);
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    if (at == 0) return line.substr(0, end);
    line.remove_prefix(end);
    if (line.empty()) return {};
  }
}

struct DirectoryCloser {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// A request to the driver of an interface; the reply is in `data`.
bool ask_driver(int socket, const std::string& name, void* data) {
  ifreq request{};
  if (name.size() >= sizeof request.ifr_name) return false;
  std::memcpy(request.ifr_name, name.data(), name.size());
  request.ifr_data = static_cast<char*>(data);
  return ::ioctl(socket, SIOCETHTOOL, &request) == 0;
}

// Room for one of ethtool's structures and what follows it, aligned for its numbers.
std::vector<std::uint64_t> room_for(std::size_t head, std::size_t rest) {
  return std::vector<std::uint64_t>((head + rest) / sizeof(std::uint64_t) + 1);
}

std::size_t statistic_count(int socket, const std::string& name) {
  std::vector<std::uint64_t> room = room_for(sizeof(ethtool_sset_info), sizeof(std::uint32_t));
  ethtool_sset_info head{};
  head.cmd = ETHTOOL_GSSET_INFO;
  head.sset_mask = std::uint64_t{1} << ETH_SS_STATS;
  std::memcpy(room.data(), &head, sizeof head);
  if (!ask_driver(socket, name, room.data())) return 0;
  std::memcpy(&head, room.data(), sizeof head);
  std::uint32_t count = 0;
  std::memcpy(&count, reinterpret_cast<const char*>(room.data()) + sizeof head, sizeof count);
  return head.sset_mask == 0 ? 0 : std::min<std::size_t>(count, statistics_max);
}

}  // namespace

std::optional<Statistic> ethtool_statistic(std::string_view name) {
  if (name == "rx_ecn_mark") return Statistic{Metric::ecn_marked};
  for (const StatisticName& known : statistic_names) {
    if (!name.starts_with(known.before) || !name.ends_with(known.behind) ||
        name.size() != known.before.size() + 1 + known.behind.size())
      continue;
    const char digit = name[known.before.size()];
    if (digit >= '0' && digit <= '7')
      return Statistic{known.metric, static_cast<std::uint32_t>(digit - '0')};
  }
  return std::nullopt;
}

HostCounters::HostCounters(Options options) : options_(std::move(options)) {}

std::vector<port::Sample> HostCounters::read(Timestamp t) {
  t_ = t;
  out_.clear();
  ++counts_.rounds;
  read_interfaces();
  read_bus();
  read_rdma();
  read_sensors();
  read_memory();
  read_storage();
  read_processors();
  counts_.samples += out_.size();
  return std::exchange(out_, {});
}

void HostCounters::add(std::string_view component, Metric metric, double value,
                       std::uint32_t index) {
  out_.push_back({t_, options_.device, std::string(component), metric, index, value});
}

// Files of these systems have no size that could be trusted; some refuse while a link is down.
std::optional<std::string> HostCounters::text(const std::string& path) {
  const Fd fd(::open((options_.root + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return std::nullopt;
  std::string out(file_bytes, '\0');
  std::size_t size = 0;
  while (size < out.size()) {
    const ssize_t got = ::read(fd.get(), out.data() + size, out.size() - size);
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  out.resize(size);
  return out;
}

std::optional<double> HostCounters::number(const std::string& path) {
  const auto found = text(path);
  if (!found) return std::nullopt;
  if (found->starts_with('-')) {
    if (const auto value = parse<std::int64_t>(*found)) return static_cast<double>(*value);
  } else if (const auto value = parse<std::uint64_t>(*found)) {
    return static_cast<double>(*value);
  }
  ++counts_.malformed;
  return std::nullopt;
}

std::vector<std::string> HostCounters::names(const std::string& path) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, DirectoryCloser> directory(::opendir((options_.root + path).c_str()));
  if (directory == nullptr) return out;
  while (out.size() < entries_max) {
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
  }
  std::ranges::sort(out);
  return out;
}

std::optional<double> HostCounters::sum(const std::string& folder,
                                        const std::vector<std::string_view>& files) {
  std::optional<double> out;
  for (const std::string_view file : files)
    if (const auto value = number(folder + "/" + std::string(file))) out = out.value_or(0) + *value;
  return out;
}

void HostCounters::read_interfaces() {
  for (const std::string& name : names("/sys/class/net")) {
    read_interface(name);
    if (options_.root.empty()) read_driver(name);
  }
}

void HostCounters::read_interface(const std::string& name) {
  const std::string folder = "/sys/class/net/" + name;
  const auto state = text(folder + "/operstate");
  if (!state) return;  // no interface: "bonding_masters" and the like
  // Those without a notion of it, such as the loopback, are "unknown" and work.
  const std::string_view word = trim(*state);
  add(name, Metric::oper_up, word == "up" || word == "unknown" ? 1 : 0);
  if (const auto flags = number(folder + "/flags"))
    add(name, Metric::admin_up, (static_cast<std::uint64_t>(*flags) & IFF_UP) != 0 ? 1 : 0);
  if (const auto changes = number(folder + "/carrier_changes"))
    add(name, Metric::carrier_changes, *changes);
  if (const auto mbps = number(folder + "/speed"); mbps && *mbps > 0)
    add(name, Metric::speed_bps, *mbps * 1e6);
  static const std::vector<std::pair<Metric, std::vector<std::string_view>>> statistics{
      {Metric::in_octets, {"rx_bytes"}},
      {Metric::out_octets, {"tx_bytes"}},
      {Metric::in_packets, {"rx_packets"}},
      {Metric::in_errors, {"rx_errors"}},  // CRC errors are part of it
      {Metric::in_discards, {"rx_dropped", "rx_missed_errors"}},
      {Metric::out_discards, {"tx_dropped", "tx_errors"}}};
  for (const auto& [metric, files] : statistics)
    if (const auto value = sum(folder + "/statistics", files)) add(name, metric, *value);
  if (const auto errors = bus_errors(folder + "/device")) add(name, Metric::pcie_errors, *errors);
}

void HostCounters::read_driver(const std::string& name) {
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const std::size_t count = fd.valid() ? statistic_count(fd.get(), name) : 0;
  if (count == 0) return;
  std::vector<std::uint64_t> names =
      room_for(sizeof(ethtool_gstrings), count * std::size_t{ETH_GSTRING_LEN});
  ethtool_gstrings names_head{};
  names_head.cmd = ETHTOOL_GSTRINGS;
  names_head.string_set = ETH_SS_STATS;
  names_head.len = static_cast<std::uint32_t>(count);
  std::memcpy(names.data(), &names_head, sizeof names_head);
  std::vector<std::uint64_t> values =
      room_for(sizeof(ethtool_stats), count * sizeof(std::uint64_t));
  ethtool_stats values_head{};
  values_head.cmd = ETHTOOL_GSTATS;
  values_head.n_stats = static_cast<std::uint32_t>(count);
  std::memcpy(values.data(), &values_head, sizeof values_head);
  if (!ask_driver(fd.get(), name, names.data()) || !ask_driver(fd.get(), name, values.data()))
    return;
  const auto* text = reinterpret_cast<const char*>(names.data()) + sizeof names_head;
  const auto* data = reinterpret_cast<const char*>(values.data()) + sizeof values_head;
  for (std::size_t i = 0; i < count; ++i, text += ETH_GSTRING_LEN, data += sizeof(std::uint64_t)) {
    const auto known = ethtool_statistic({text, ::strnlen(text, ETH_GSTRING_LEN)});
    if (!known) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, data, sizeof value);
    add(name, known->metric, static_cast<double>(value), known->index);
  }
}

// Each line is a kind of error and its count; the last is their sum.
std::optional<double> HostCounters::bus_errors(const std::string& device) {
  std::optional<double> out;
  for (const char* file : {"/aer_dev_correctable", "/aer_dev_nonfatal", "/aer_dev_fatal"}) {
    const auto found = text(device + file);
    if (!found) continue;
    for (const std::string_view line : split(*found, '\n')) {
      if (!line.starts_with("TOTAL_ERR_")) continue;
      if (const auto value = parse<std::uint64_t>(word(line, 1)))
        out = out.value_or(0) + static_cast<double>(*value);
      else
        ++counts_.malformed;
    }
  }
  return out;
}

void HostCounters::read_bus() {
  for (const std::string& address : names("/sys/bus/pci/devices")) {
    const std::string device = "/sys/bus/pci/devices/" + address;
    if (!names(device + "/net").empty()) continue;  // told with the interface
    if (const auto errors = bus_errors(device)) add(address, Metric::pcie_errors, *errors);
  }
}

void HostCounters::read_rdma() {
  for (const std::string& device : names("/sys/class/infiniband")) {
    const std::string ports = "/sys/class/infiniband/" + device + "/ports";
    for (const std::string& port : names(ports)) {
      const auto index = parse<std::uint32_t>(port);
      if (!index) continue;
      const std::string folder = fmt::format("{}/{}", ports, port);
      const auto link = sum(folder + "/counters", link_errors);
      const auto transport = sum(folder + "/hw_counters", transport_errors);
      if (link || transport)
        add(device, Metric::rdma_errors, link.value_or(0) + transport.value_or(0), *index);
      if (const auto marks = number(folder + "/hw_counters/np_ecn_marked_roce_packets"))
        add(device, Metric::ecn_marked, *marks, *index);
    }
  }
}

void HostCounters::read_sensors() {
  constexpr double milli = 1e-3;
  for (const std::string& chip : names("/sys/class/hwmon")) {
    const std::string folder = "/sys/class/hwmon/" + chip;
    const auto given = text(folder + "/name");
    const std::string name = given ? std::string(trim(*given)) : chip;
    for (const std::string& file : names(folder)) {
      if (!file.ends_with("_input")) continue;
      const std::string sensor = file.substr(0, file.size() - std::strlen("_input"));
      const std::string component = fmt::format("{}/{}", name, sensor);
      if (sensor.starts_with("temp")) {
        if (const auto value = number(fmt::format("{}/{}", folder, file)))
          add(component, Metric::celsius, *value * milli);
      } else if (sensor.starts_with("fan")) {
        read_fan(folder, sensor, component);
      }
    }
  }
}

// A fan that stands may do so on purpose: only what says so itself, or a least speed, tells.
void HostCounters::read_fan(const std::string& folder, const std::string& sensor,
                            const std::string& component) {
  const std::string stem = fmt::format("{}/{}", folder, sensor);
  auto fault = number(stem + "_fault");
  if (!fault) fault = number(stem + "_alarm");
  if (fault) return add(component, Metric::fan_ok, *fault == 0 ? 1 : 0);
  const auto least = number(stem + "_min");
  const auto speed = number(stem + "_input");
  if (least && speed && *least > 0) add(component, Metric::fan_ok, *speed >= *least ? 1 : 0);
}

void HostCounters::read_memory() {
  const std::string controllers = "/sys/devices/system/edac/mc";
  for (const std::string& name : names(controllers))
    if (const auto errors = sum(fmt::format("{}/{}", controllers, name), {"ce_count", "ue_count"}))
      add(name, Metric::memory_errors, *errors);
  const auto info = text("/proc/meminfo");
  if (!info) return;
  std::optional<std::uint64_t> total, available;
  for (const std::string_view line : split(*info, '\n')) {
    if (line.starts_with("MemTotal:")) total = parse<std::uint64_t>(word(line, 1));
    if (line.starts_with("MemAvailable:")) available = parse<std::uint64_t>(word(line, 1));
  }
  if (total && available && *total > 0)
    add("", Metric::memory_share,
        1 - static_cast<double>(*available) / static_cast<double>(*total));
  else
    ++counts_.malformed;
}

void HostCounters::read_storage() {
  for (const std::string& disk : names("/sys/block"))
    if (const auto errors = number("/sys/block/" + disk + "/device/ioerr_cnt"))
      add(disk, Metric::storage_errors, *errors);
  struct statvfs state{};
  const std::string top = options_.root.empty() ? "/" : options_.root;
  if (::statvfs(top.c_str(), &state) != 0 || state.f_blocks == 0) return;
  add("/", Metric::storage_share,
      1 - static_cast<double>(state.f_bavail) / static_cast<double>(state.f_blocks));
}

void HostCounters::read_processors() {
  if (const auto uptime = text("/proc/uptime")) {
    if (const auto value = parse_real(*uptime))
      add("", Metric::uptime_s, *value);
    else
      ++counts_.malformed;
  }
  const auto stat = text("/proc/stat");
  if (!stat) return;
  std::uint64_t busy = 0, idle = 0, processors = 0;
  for (const std::string_view line : split(*stat, '\n')) {
    if (!line.starts_with("cpu")) break;
    if (!line.starts_with("cpu ")) {
      ++processors;
      continue;
    }
    // user nice system idle iowait irq softirq steal; guests are part of user.
    for (std::size_t i = 1; i <= 8; ++i)
      (i == 4 || i == 5 ? idle : busy) += parse<std::uint64_t>(word(line, i)).value_or(0);
  }
  const std::uint64_t more_busy = busy - busy_, more = more_busy + idle - idle_;
  if (busy_ + idle_ > 0 && busy >= busy_ && idle >= idle_ && more > 0)
    add("", Metric::cpu_share, static_cast<double>(more_busy) / static_cast<double>(more));
  busy_ = busy;
  idle_ = idle;
  const auto load = text("/proc/loadavg");
  if (!load || processors == 0) return;
  if (const auto value = parse_real(*load))
    add("", Metric::load_per_cpu, *value / static_cast<double>(processors));
}

}  // namespace weft::adapt::live
