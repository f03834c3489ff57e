#include "model/formats/cable_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/csv.hpp"
#include "base/text.hpp"

namespace weft::model {
namespace {

// Columns of one form, in this order; optional ones that a form lacks are "".
struct CableColumns {
  std::string_view mark;  // in the header line of this form alone; "" for what is no other
  std::array<std::string_view, 4> required;
  std::array<std::string_view, 7>
      optional;  // rate, length, its unit, kind, status, type of the ends
  std::vector<std::string> unused;
};
enum CableCell : std::uint8_t {
  a_device,
  a_port,
  b_device,
  b_port,
  rate,
  length,
  length_unit,
  kind,
  status,
  a_type,
  b_type
};

const std::vector<CableColumns>& cable_forms() {
  static const std::vector<CableColumns> forms{
      {"side_a_device",
       {"side_a_device", "side_a_name", "side_b_device", "side_b_name"},
       {"rate", "length", "length_unit", "type", "status", "side_a_type", "side_b_type"},
       {"id", "side_a_power_panel", "side_b_power_panel", "bundle", "owner", "side_a_site",
        "side_b_site", "tenant", "label", "color", "profile", "description", "comments", "tags"}},
      {"Device A",
       {"Device A", "Termination A", "Device B", "Termination B"},
       {"Rate", "Length", "", "Type", "Status", "", ""},
       {"ID", "Label", "Rack A", "Rack B", "Location A", "Location B", "Site A", "Site B",
        "Profile", "Tenant", "Tenant Group", "Color", "Color Name", "Description", "Comments",
        "Tags", "Created", "Last updated", "Last Updated"}},
      {"",
       {"a_device", "a_port", "b_device", "b_port"},
       {"rate", "length", "", "kind", "", "", ""},
       {}},
  };
  return forms;
}

struct LengthUnit {
  std::string_view name;
  double metres;
};
// Those of NetBox, which its tables write in full.
constexpr std::array length_units{
    LengthUnit{"meters", 1},    LengthUnit{"kilometers", 1000}, LengthUnit{"centimeters", 0.01},
    LengthUnit{"feet", 0.3048}, LengthUnit{"inches", 0.0254},   LengthUnit{"miles", 1609.344},
    LengthUnit{"m", 1},         LengthUnit{"cm", 0.01},         LengthUnit{"km", 1000},
    LengthUnit{"ft", 0.3048},   LengthUnit{"in", 0.0254},       LengthUnit{"mi", 1609.344}};

// Words in names, numbers and signs left out.
constexpr std::array host_words{"gpu", "host",    "node",   "dgx",     "hgx",   "server",
                                "srv", "compute", "worker", "storage", "store", "login"};
constexpr std::array switch_words{"leaf", "spine", "core", "tor", "sw",   "switch", "agg",
                                  "asw",  "psw",   "dsw",  "rsw", "rtsw", "ctsw",   "atsw"};

class CableListReader {
 public:
  CableListReader(std::string_view text, const std::string& file, const CableListOptions& options)
      : text_(text), options_(options) {
    out_.file = file;
  }

  Result<Cabling> read() {
    WEFT_TRY_STATUS(read_cables());
    if (!options_.roles_file.empty()) WEFT_TRY_STATUS(read_roles());
    if (errors_.empty() && rows_.empty())
      error(out_.where({1, 1}), Errc::value, "no cable", "list one cable a line");
    if (errors_.empty()) make_devices();
    if (errors_.empty()) make_cables();
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    const auto note = [&](const NameList& names, std::string_view what) {
      if (names.count() > 0)
        out_.notes.push_back(fmt::format("{}: {}: {}", out_.file, what, names.text()));
    };
    note(left_out_, "power and console cables, left out");
    note(not_connected_, "cables whose status is not connected, left out");
    return std::move(out_);
  }

 private:
  struct RowEnd {
    std::size_t device;  // into listed_
    std::string port;
  };
  struct Row {
    RowEnd a, b;
    Rate rate;
    double length_m;
    Cabling::Place place;
  };
  struct Listed {  // a device as listed
    std::string text, role;
    Cabling::Place place;
    std::map<std::string, std::uint32_t> nics = {};   // were it a host
    std::map<std::string, std::uint32_t> ports = {};  // line of each
    std::uint32_t made = 0;                           // into Cabling::devices
  };

  void error(const Where& where, Errc code, std::string what, std::string hint) {
    if (errors_.size() < errors_max)
      errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }
  void error(Error e) {
    if (errors_.size() < errors_max) errors_.push_back(std::move(e));
  }

  std::string_view header_line() const {
    for (const std::string_view line : split(text_.substr(0, 65'536), '\n'))
      if (!trim(line).empty() && trim(line).front() != '#') return line;
    return {};
  }
  Status read_cables() {
    const std::string_view top = header_line();
    const auto form = std::ranges::find_if(
        cable_forms(), [&](const CableColumns& f) { return top.contains(f.mark); });
    CsvReader csv(text_, out_.file);
    std::vector<std::string> required(form->required.begin(), form->required.end());
    std::vector<std::string> optional(form->optional.begin(), form->optional.end());
    optional.insert(optional.end(), form->unused.begin(), form->unused.end());
    WEFT_TRY_STATUS(csv.header(required, optional));
    while (errors_.size() < errors_max && csv.next()) read_row(csv);
    if (csv.error() != nullptr) error(*csv.error());
    return {};
  }

  void read_row(const CsvReader& csv) {
    const Where at = csv.where();
    if (lower_case(csv.cell(kind).text) == "power" || ends_at(csv, "power") ||
        ends_at(csv, "console"))
      return left_out_.add(fmt::format("line {}", at.line));
    const std::string state = lower_case(csv.cell(status).text);
    if (!state.empty() && state != "connected")
      return not_connected_.add(fmt::format("line {}", at.line));
    for (const CableCell cell : {a_type, b_type}) {
      const Token type = csv.cell(cell);
      if (!type.text.empty() && type.text != "dcim.interface" && type.text != "interface")
        return error(type.where, Errc::unsupported,
                     fmt::format("the cable ends at {}", quote(type.text)),
                     "list what is connected from interface to interface, without patch panels");
    }
    const auto a = read_end(csv, a_device, a_port), b = read_end(csv, b_device, b_port);
    const Rate cable_rate = read_rate(csv.cell(rate));
    const double metres = read_length(csv.cell(length), csv.cell(length_unit));
    if (a && b) rows_.push_back({*a, *b, cable_rate, metres, {at.line, at.column}});
  }
  static bool ends_at(const CsvReader& csv, std::string_view what) {
    return csv.cell(a_type).text.contains(what) || csv.cell(b_type).text.contains(what);
  }

  std::optional<RowEnd> read_end(const CsvReader& csv, CableCell device_cell, CableCell port_cell) {
    const Token device = csv.cell(device_cell), port = csv.cell(port_cell);
    for (const Token& token : {device, port}) {
      const bool several = token.text.contains(',');
      if (!several && !token.text.empty() && token.text.size() <= 190) continue;
      error(token.where, Errc::value,
            several ? "several devices or ports at one end" : "a name is missing or too long",
            "list each cable of a breakout for itself, with a device and a port at each end");
      return {};
    }
    const Cabling::Place place{device.where.line, device.where.column};
    const auto [known, is_new] = by_name_.emplace(clean_name(device.text), listed_.size());
    if (is_new) listed_.push_back({std::string(device.text), {}, place});
    Listed& listed = listed_[known->second];
    if (listed.text != device.text)
      error(device.where, Errc::value,
            fmt::format("{} and {} of line {} are both called {} here", quote(device.text),
                        quote(listed.text), listed.place.line, known->first),
            "rename one of them");
    std::string name(port.text);
    std::ranges::replace_if(name, [](char c) { return c <= ' ' || c > '~'; }, '_');
    const auto [used, first] = listed.ports.emplace(name, port.where.line);
    if (!first)
      error(port.where, Errc::value,
            fmt::format("port {} of {} already has the cable of line {}", quote(port.text),
                        quote(device.text), used->second),
            "list each cable once, and each port with one cable");
    listed.nics.emplace(nic_of_port(name), static_cast<std::uint32_t>(listed.nics.size()));
    return RowEnd{known->second, std::move(name)};
  }
  // "mlx5_0" of "mlx5_0/2".
  static std::string nic_of_port(const std::string& port) {
    const std::size_t slash = port.rfind('/');
    const bool numbered = slash != port.npos && slash > 0 && slash + 1 < port.size() &&
                          std::ranges::all_of(std::string_view(port).substr(slash + 1), is_digit);
    return numbered ? port.substr(0, slash) : port;
  }

  Rate read_rate(const Token& token) {
    if (token.text.empty()) return {};
    const auto parsed = parse_rate(token);
    if (!parsed) return error(parsed.error()), Rate{};
    if (parsed->bps <= 0)
      error(token.where, Errc::value, "the rate must be above 0", "write e.g. \"400 Gbps\"");
    return *parsed;
  }
  // "30 m", or "30" beside a column with the unit.
  double read_length(const Token& token, const Token& unit_cell) {
    if (token.text.empty() || token.text == "—") return 0;
    std::size_t end = 0;
    while (end < token.text.size() && (is_digit(token.text[end]) || token.text[end] == '.')) ++end;
    const std::string_view written = trim(token.text.substr(end));
    const std::string unit = lower_case(written.empty() ? unit_cell.text : written);
    const auto value = parse_number({token.text.substr(0, end), token.where});
    const auto known = std::ranges::find(length_units, std::string_view(unit), &LengthUnit::name);
    if (value && *value <= 1e5 && known != length_units.end()) return *value * known->metres;
    error(token.where, Errc::value, fmt::format("{} is not a length", quote(token.text)),
          "write e.g. \"30 m\"; also cm, km, ft, in, mi");
    return 0;
  }

  Status read_roles() {
    CsvReader csv(options_.roles, options_.roles_file);
    WEFT_TRY_STATUS(csv.header(std::array<std::string, 2>{"device", "role"}, {}));
    while (errors_.size() < errors_max && csv.next()) {
      const Token device = csv.cell(0), role = csv.cell(1);
      const auto known = by_name_.find(clean_name(device.text));
      if (known == by_name_.end()) {
        error(device.where, Errc::unknown, fmt::format("{} has no cable", quote(device.text)),
              "name a device of the list of cables");
        continue;
      }
      constexpr std::array reserved{"gpu",  "nic",   "fe_nic",    "nvswitch",
                                    "pcie", "other", "other_nic", "storage"};
      const bool taken = std::ranges::find(reserved, role.text) != reserved.end();
      if (const Status fine = check_name(role); !fine || taken)
        error(role.where, Errc::value,
              fmt::format("a device cannot have the role {}", quote(role.text)),
              "write host, ignore, or what a switch is called: leaf, spine");
      std::string& ours = listed_[known->second].role;
      if (!ours.empty())
        error(device.where, Errc::value, fmt::format("{} has a role already", quote(device.text)),
              "give each device one role");
      ours = role.text;
    }
    if (csv.error() != nullptr) error(*csv.error());
    return {};
  }

  // Whether it is a host; nothing where that is not known.
  std::optional<bool> is_host(const Listed& device) const {
    if (!device.role.empty()) return device.role == "host";
    std::set<std::string, std::less<>> words{""};
    std::string word;
    for (const char c : lower_case(device.text) + "-") {
      if (c >= 'a' && c <= 'z') {
        word += c;
      } else {
        words.insert(std::exchange(word, {}));
      }
    }
    const auto has = [&](std::string_view w) { return words.contains(w); };
    const bool host = std::ranges::any_of(host_words, has);
    const bool forwards = std::ranges::any_of(switch_words, has);
    if (host != forwards) return host;
    if (host || options_.nics_per_host == 0) return {};
    return std::cmp_equal(device.nics.size(), options_.nics_per_host);
  }

  void make_devices() {
    for (Listed& device : listed_) {
      if (device.role == "ignore") continue;
      const std::optional<bool> host = is_host(device);
      if (!host)
        error(out_.where(device.place), Errc::unknown,
              fmt::format("is {} a host or a switch?", quote(device.text)),
              "name it in a CSV \"device,role\" given as \"roles:\", or set nics_per_host");
      device.made = static_cast<std::uint32_t>(out_.devices.size());
      Cabling::Device made{clean_name(device.text), host.value_or(false), {}, {}, device.place};
      if (made.is_host)
        for (const auto& [nic, index] : device.nics) {
          made.nics.resize(device.nics.size());
          made.nics[index] = nic;
        }
      else
        made.role = device.role;
      out_.devices.push_back(std::move(made));
    }
  }
  void make_cables() {
    for (const Row& row : rows_) {
      if (listed_[row.a.device].role == "ignore" || listed_[row.b.device].role == "ignore")
        continue;
      out_.cables.push_back({end(row.a), end(row.b), row.rate, row.length_m, row.place});
    }
  }
  Cabling::End end(const RowEnd& row) const {
    const Listed& device = listed_[row.device];
    return {device.made, device.nics.at(nic_of_port(row.port)), row.port};
  }

  std::string_view text_;
  const CableListOptions& options_;
  Errors errors_;
  std::vector<Row> rows_;
  std::vector<Listed> listed_;
  std::map<std::string, std::size_t> by_name_;
  NameList left_out_, not_connected_;
  Cabling out_;
};

}  // namespace

Result<Cabling> read_cable_list(std::string_view text, const std::string& file,
                                const CableListOptions& options) {
  WEFT_TRY_STATUS(check_text_size(text, file, 256 << 20, "import only part of the fabric"));
  return CableListReader(text, file, options).read();
}

}  // namespace weft::model
