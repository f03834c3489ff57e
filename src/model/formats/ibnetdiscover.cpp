#include "model/formats/ibnetdiscover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/line_reader.hpp"
#include "base/text.hpp"

namespace weft::model {
namespace {

struct IbSpeed {
  std::string_view name;
  std::int64_t lane_bps;  // data rate of a lane, after line coding
};
// Signalling 2.5, 5, 10 GBd with 8b/10b; 10.3125, 14.0625, 25.78125 GBd with 64b/66b; from HDR on
// the data rate after forward error correction.
constexpr std::array ib_speeds{IbSpeed{"SDR", 2'000'000'000},  IbSpeed{"DDR", 4'000'000'000},
                               IbSpeed{"QDR", 8'000'000'000},  IbSpeed{"FDR10", 10'000'000'000},
                               IbSpeed{"FDR", 13'636'363'636}, IbSpeed{"EDR", 25'000'000'000},
                               IbSpeed{"HDR", 50'000'000'000}, IbSpeed{"NDR", 100'000'000'000},
                               IbSpeed{"XDR", 200'000'000'000}};
constexpr std::array ib_widths{1, 2, 4, 8, 12};

// "S-0008f10400410015".
struct IbKey {
  char type = 0;  // S, H or R
  std::uint64_t guid = 0;
  friend auto operator<=>(const IbKey&, const IbKey&) = default;
  std::string text() const { return fmt::format("{}-{:016x}", type, guid); }
};

struct IbPort {
  std::int64_t number = 0;
  IbKey peer;
  std::int64_t peer_port = 0;
  Rate rate;
  Cabling::Place place;
};

struct IbNode {
  IbKey key;
  std::int64_t port_count = 0;
  std::string description;
  std::map<std::int64_t, IbPort> ports{};
  Cabling::Place place{};
};

// Takes a line apart from the left.
class IbLine {
 public:
  explicit IbLine(std::string_view line) : line_(line) {}

  std::size_t column() const { return at_ + 1; }
  std::string_view rest() const { return line_.substr(at_); }
  void blanks() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
  }
  bool take(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  template <class Number>
  std::optional<Number> number(int base) {
    Number value = 0;
    const auto [end, error] =
        std::from_chars(line_.data() + at_, line_.data() + line_.size(), value, base);
    if (error != std::errc{} || value < 0) return {};
    at_ = static_cast<std::size_t>(end - line_.data());
    return value;
  }
  // "[7]".
  std::optional<std::int64_t> port() {
    if (!take("[")) return {};
    const auto value = number<std::int64_t>(10);
    return value && take("]") ? value : std::nullopt;
  }
  // "(8f10403961355)", which only some lines have.
  bool skip_guid() { return !take("(") || (number<std::uint64_t>(16) && take(")")); }
  // "S-0008f10400410015" in quotes.
  std::optional<IbKey> key() {
    IbKey key;
    if (!take("\"") || rest().empty()) return {};
    key.type = rest().front();
    ++at_;
    if ((key.type != 'S' && key.type != 'H' && key.type != 'R') || !take("-")) return {};
    const auto guid = number<std::uint64_t>(16);
    if (!guid || !take("\"")) return {};
    key.guid = *guid;
    return key;
  }

 private:
  std::string_view line_;
  std::size_t at_ = 0;
};

class IbReader {
 public:
  IbReader(std::string_view text, const std::string& file) : lines_(text, file) {
    out_.file = file;
  }

  Result<Cabling> read() {
    while (errors_.size() < errors_max && lines_.next()) read_line(lines_.line());
    if (lines_.error() != nullptr) errors_.push_back(*lines_.error());
    if (errors_.empty() && nodes_.empty())
      error({1, 1}, Errc::parse, "no switch and no channel adapter",
            "pass the output of ibnetdiscover");
    if (errors_.empty()) name_devices();
    for (const IbNode& node : nodes_)
      for (const auto& [number, port] : node.ports) read_cable(node, port);
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    note(left_out_, "routers and aggregation nodes, left out");
    note(unnamed_, "channel adapters whose description names no host, each taken as a host");
    return std::move(out_);
  }

 private:
  void error(Cabling::Place place, Errc code, std::string what, std::string hint) {
    if (errors_.size() < errors_max)
      errors_.push_back({code, out_.where(place), std::move(what), std::move(hint), {}});
  }
  Cabling::Place here(std::size_t column = 1) const {
    return {lines_.line_number(), static_cast<std::uint32_t>(column)};
  }
  void note(const NameList& names, std::string_view what) {
    if (names.count() > 0)
      out_.notes.push_back(fmt::format("{}: {}: {}", out_.file, what, names.text()));
  }

  void read_line(std::string_view line) {
    constexpr std::array ids{
        "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid="};
    constexpr std::array groups{"Chassis ", "Non-Chassis Nodes", "Hostname:"};  // of option -g
    const auto begins = [&](std::string_view with) { return line.starts_with(with); };
    if (trim(line).empty() || line.front() == '#') return;
    if (std::ranges::any_of(ids, begins) || std::ranges::any_of(groups, begins)) return;
    if (line.front() == '[') return read_port(line);
    IbLine scan(line);
    for (const auto& [word, type] :
         {std::pair("Switch", 'S'), std::pair("Ca", 'H'), std::pair("Rt", 'R')})
      if (scan.take(word)) return read_node(scan, type);
    error(here(), Errc::parse, fmt::format("{} is not a line of ibnetdiscover", quote(line)),
          "pass its output as it is, without -l, -p or --diff");
  }

  // Switch  24 "S-005442ba00003080"         # "ISR9024 Voltaire" base port 0 lid 6 lmc 0
  void read_node(IbLine scan, char type) {
    scan.blanks();
    const auto ports = scan.number<std::int64_t>(10);
    scan.blanks();
    const std::size_t column = scan.column();
    const auto key = ports ? scan.key() : std::nullopt;
    scan.blanks();
    const bool well = key && key->type == type && scan.take("#");
    scan.blanks();
    const std::size_t last = scan.rest().rfind('"');
    if (!well || !scan.take("\"") || last == 0)
      return error(
          here(scan.column()), Errc::parse, "not a node as ibnetdiscover prints it",
          "write e.g. Switch 40 \"S-0008f10400410015\" # \"leaf1\" base port 0 lid 3 lmc 0");
    if (!by_key_.emplace(*key, nodes_.size()).second)
      error(here(column), Errc::value,
            fmt::format("{} is there twice, first on line {}", key->text(),
                        nodes_[by_key_[*key]].place.line),
            "pass the output of one run");
    nodes_.push_back(
        {*key, *ports, std::string(scan.rest().substr(0, last - 1)), {}, here(column)});
  }

  // [22]  "H-0008f10403961354"[1](8f10403961355)     # "node1 HCA-1" lid 4 4xSDR
  // [1](8f10403960985)   "S-0008f10400410015"[6]     # lid 16 lmc 1 "SW-6IB4" lid 3 4xSDR
  void read_port(std::string_view line) {
    if (nodes_.empty())
      return error(here(), Errc::parse, "a port before any node", "pass the whole output");
    IbLine scan(line);
    const auto take_external = [&] {
      return !scan.take("[ext ") || (scan.number<int>(10) && scan.take("]"));
    };
    IbPort port;
    const auto number = scan.port();
    bool well = number && take_external() && scan.skip_guid();
    scan.blanks();
    const auto peer = well ? scan.key() : std::nullopt;
    const auto peer_port = peer ? scan.port() : std::nullopt;
    well = peer_port && take_external();
    scan.blanks();
    well = well && scan.skip_guid();
    scan.blanks();
    if (!well || !scan.take("#"))
      return error(here(scan.column()), Errc::parse, "not a port as ibnetdiscover prints it",
                   "write e.g. [1] \"S-0008f10400410015\"[6] # \"leaf1\" lid 3 4xNDR");
    IbNode& node = nodes_.back();
    port = {*number, *peer, *peer_port, {}, here()};
    if (const auto rate = read_rate(scan)) port.rate = *rate;
    if (*number < 1 || *number > node.port_count)
      error(here(), Errc::value,
            fmt::format("port {} of a node of {} ports", *number, node.port_count),
            "pass the output as it is");
    if (!node.ports.emplace(*number, port).second)
      error(here(), Errc::value,
            fmt::format("port {} of {} is there twice", *number, node.key.text()),
            "pass the output of one run");
  }

  // What follows the last quote: lid 4 4xSDR, and with -f the encoded fields.
  std::optional<Rate> read_rate(const IbLine& comment) {
    const std::size_t start = comment.column() - 1;
    const std::string_view line = lines_.line();
    const std::size_t quote_at = line.rfind('"');
    if (quote_at == line.npos || quote_at < start) return bad_comment(start);
    std::optional<Rate> rate;
    std::size_t at = quote_at + 1, word = 0;
    while (at < line.size()) {
      const std::size_t begin = line.find_first_not_of(" \t", at);
      if (begin == line.npos) break;
      at = std::min(line.find_first_of(" \t", begin), line.size());
      const std::string_view text = line.substr(begin, at - begin);
      if (word == 0 && text != "lid") return bad_comment(begin);
      if (word == 1 && !std::ranges::all_of(text, is_digit)) return bad_comment(begin);
      if (word == 2) rate = parse_ib_rate(text, begin);
      ++word;
    }
    if (word < 2) return bad_comment(quote_at);
    return rate;
  }
  std::optional<Rate> bad_comment(std::size_t offset) {
    error(here(offset + 1), Errc::parse, "no \"DESCRIPTION\" lid NUMBER behind the port",
          "pass the output as it is");
    return {};
  }
  // "4xNDR".
  std::optional<Rate> parse_ib_rate(std::string_view text, std::size_t offset) {
    IbLine scan(text);
    const auto lanes = scan.number<int>(10);
    if (lanes && std::ranges::find(ib_widths, *lanes) != ib_widths.end() && scan.take("x"))
      for (const IbSpeed& speed : ib_speeds)
        if (speed.name == scan.rest()) return Rate{*lanes * speed.lane_bps};
    error(here(offset + 1), Errc::unknown, fmt::format("unknown width and speed {}", quote(text)),
          "write 1x, 2x, 4x, 8x or 12x and SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR");
    return {};
  }

  static bool is_left_out(const IbNode& node) {
    return node.key.type == 'R' ||
           (node.key.type == 'H' && node.description.contains("Aggregation Node"));
  }

  // "leaf1" of "MF0;leaf1:MQM9700/U1", which managed switches say; more of it where two have the
  // same; the GUID where that does not help.
  static std::array<std::string, 2> switch_names(std::string_view description) {
    std::string_view host = description;
    if (const std::size_t semicolon = host.find(';'); semicolon != host.npos) {
      host = host.substr(semicolon + 1);
      description = host;
      host = host.substr(0, host.find(':'));
    }
    return {clean_name(host), clean_name(description)};
  }
  // {"node1", "mlx5_0"} of "node1 mlx5_0", {"node1", ""} of one word.
  static std::optional<std::pair<std::string, std::string>> host_names(std::string_view text) {
    text = trim(text);
    const std::size_t blank = text.find(' ');
    if (text.empty()) return {};
    if (blank == text.npos) return std::pair(clean_name(text), std::string{});
    const std::string_view device = trim(text.substr(blank));
    if (device.contains(' ') || !is_digit(device.back())) return {};
    return std::pair(clean_name(text.substr(0, blank)), clean_name(device));
  }

  // Gives each node its device, and each Ca its number among the NICs of its host.
  void name_devices() {
    std::map<std::pair<std::string, std::string>, std::size_t> nics;
    std::map<std::string, std::size_t> uses;
    for (const IbNode& node : nodes_) {
      if (is_left_out(node)) continue;
      if (node.key.type == 'S') {
        const auto [name, longer] = switch_names(node.description);
        ++uses[name];
        if (longer != name) ++uses[longer];
      } else if (const auto names = host_names(node.description)) {
        ++nics[*names];
      }
    }
    std::set<std::string> hosts;
    for (const auto& [names, count] : nics) {
      if (hosts.insert(names.first).second) ++uses[names.first];
      // Two adapters of one name: different hosts that have not been given names.
      if (count > 1 && !names.second.empty()) ++uses[names.first];
    }
    for (const IbNode& node : nodes_) {
      device_.emplace_back();
      if (is_left_out(node))
        left_out_.add(node.key.text());
      else if (node.key.type == 'S')
        add_switch(node, uses);
      else
        add_adapter(node, uses);
    }
  }
  void add_switch(const IbNode& node, const std::map<std::string, std::size_t>& uses) {
    std::string chosen = node.key.text();
    for (const std::string& name : switch_names(node.description))
      if (uses.at(name) == 1 && chosen == node.key.text()) chosen = name;
    device_.back().device = add_device({std::move(chosen), false, {}, {}, node.place});
  }
  void add_adapter(const IbNode& node, const std::map<std::string, std::size_t>& uses) {
    const auto names = host_names(node.description);
    const bool named = names && uses.at(names->first) == 1;
    if (!named) unnamed_.add(node.key.text());
    const std::string host = named ? names->first : node.key.text();
    const auto [known, is_new] = host_.emplace(host, 0);
    if (is_new) known->second = add_device({host, true, {}, {}, node.place});
    auto& nics = out_.devices[known->second].nics;
    device_.back() = {known->second, static_cast<std::uint32_t>(nics.size()), {}};
    nics.push_back(named && !names->second.empty() ? names->second : node.key.text());
  }
  std::uint32_t add_device(Cabling::Device device) {
    if (!names_.insert(device.name).second)
      error(device.place, Errc::value, fmt::format("a second device is called {}", device.name),
            "rename one of them");
    out_.devices.push_back(std::move(device));
    return static_cast<std::uint32_t>(out_.devices.size() - 1);
  }

  // A cable from the first of its two lines, when the other says the same.
  void read_cable(const IbNode& node, const IbPort& port) {
    const auto found = by_key_.find(port.peer);
    if (found == by_key_.end())
      return error(port.place, Errc::unknown,
                   fmt::format("{} has no lines of its own", port.peer.text()),
                   "pass the whole output of a run on a fabric that does not change meanwhile");
    const IbNode& peer = nodes_[found->second];
    const auto back = peer.ports.find(port.peer_port);
    if (back == peer.ports.end() || back->second.peer != node.key ||
        back->second.peer_port != port.number)
      return error(port.place, Errc::value,
                   fmt::format("port {} leads to port {} of {}, which {}", port.number,
                               port.peer_port, port.peer.text(),
                               back == peer.ports.end()
                                   ? "is not connected"
                                   : fmt::format("leads to port {} of {}", back->second.peer_port,
                                                 back->second.peer.text())),
                   "pass the whole output of a run on a fabric that does not change meanwhile");
    if (back->second.rate != port.rate)
      return error(port.place, Errc::value,
                   fmt::format("the rate differs from that on line {}, at the other end",
                               back->second.place.line),
                   "pass the whole output of a run on a fabric that does not change meanwhile");
    const auto from = static_cast<std::size_t>(&node - nodes_.data());
    if (std::pair(found->second, port.peer_port) < std::pair(from, port.number)) return;
    if (device_.empty() || is_left_out(node) || is_left_out(peer)) return;
    out_.cables.push_back({end(node, from, port.number), end(peer, found->second, port.peer_port),
                           port.rate, 0, port.place});
  }
  Cabling::End end(const IbNode& node, std::size_t index, std::int64_t port) const {
    Cabling::End out = device_[index];
    if (node.key.type == 'S')
      out.interface = fmt::format("{}", port);
    else
      out.interface = out_.devices[out.device].nics[out.nic] +
                      (node.port_count > 1 ? fmt::format("/{}", port) : std::string{});
    return out;
  }

  LineReader lines_;
  Errors errors_;
  std::vector<IbNode> nodes_;
  std::map<IbKey, std::size_t> by_key_;
  std::vector<Cabling::End> device_;           // by node
  std::map<std::string, std::uint32_t> host_;  // by name
  std::set<std::string> names_;
  NameList left_out_, unnamed_;
  Cabling out_;
};

}  // namespace

bool is_ibnetdiscover(std::string_view text) {
  return text.substr(0, 400).contains("# Topology file: generated on ");
}

Result<Cabling> read_ibnetdiscover(std::string_view text, const std::string& file) {
  WEFT_TRY_STATUS(check_text_size(text, file, 256 << 20, "import only part of the fabric"));
  return IbReader(text, file).read();
}

}  // namespace weft::model
