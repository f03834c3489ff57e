#include "operate/te/switch_messages.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/json_line.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"

namespace weft::operate::te {
namespace {

constexpr std::int64_t serial_max = INT64_MAX;
constexpr std::size_t list_max = 1'000'000;

std::optional<std::uint32_t> parse_ipv4(std::string_view text) {
  std::uint32_t out = 0;
  const auto pieces = split(text, '.');
  if (pieces.size() != 4) return std::nullopt;
  for (const std::string_view piece : pieces) {
    std::uint8_t byte = 0;
    const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), byte);
    if (error != std::errc() || end != piece.data() + piece.size()) return std::nullopt;
    out = out << 8 | byte;
  }
  return out;
}

JsonList list_of(const std::vector<SwitchMark>& marks) {
  JsonList out;
  for (const SwitchMark& mark : marks)
    out.add(JsonObject()
                .add("src", ipv4_text(mark.src))
                .add("dst", ipv4_text(mark.dst))
                .add("port", mark.port)
                .add("uplink", mark.uplink));
  return out;
}

// One message being read; what is wrong about it joins the errors.
class MessageReader {
 public:
  MessageReader(const JsonLine& line, Errors& errors) : line_(line), errors_(errors) {}

  template <class Take>
  void each(std::string_view key, Take take) {
    const JsonNode list = line_.node().member(key);
    if (!list) return;
    if (!list.is_list() || list.size() > list_max) return wrong(key, list);
    for (std::size_t i = 0; i < list.size() && errors_.size() < errors_max; ++i) take(list.item(i));
  }
  void wrong(std::string_view key, const JsonNode& node) {
    errors_.push_back(
        {Errc::value,
         line_.where(),
         fmt::format("{} holds {}, which is not of its form", quote(key), node.shown()),
         "agent and service must be of one version of weft",
         {}});
  }
  std::vector<SwitchMark> marks(std::string_view key) {
    std::vector<SwitchMark> out;
    each(key, [&](const JsonNode& node) {
      const auto src = parse_ipv4(node.member("src").text().value_or(""));
      const auto dst = parse_ipv4(node.member("dst").text().value_or(""));
      const auto port = node.member("port").whole();
      const auto uplink = node.member("uplink").text();
      if (!src || !dst || !port || *port < 0 || *port > UINT16_MAX || !uplink)
        return wrong(key, node);
      out.push_back({*src, *dst, static_cast<std::uint16_t>(*port), *uplink});
    });
    return out;
  }
  OrderPlace place(const JsonNode& node, std::string_view key) {
    const auto epoch = node.member("epoch").text();
    const auto version = node.member("version").whole();
    if (!epoch || !version || *version < 0) {
      wrong(key, node);
      return {};
    }
    return {*epoch, static_cast<std::uint64_t>(*version)};
  }
  std::uint64_t serial(std::string_view key) {
    return static_cast<std::uint64_t>(line_.count(key, std::nullopt, 0, serial_max, errors_));
  }

 private:
  const JsonLine& line_;
  Errors& errors_;
};

}  // namespace

std::string to_json(const SwitchReport& report) {
  JsonList ports, routes;
  for (const SwitchReport::Port& port : report.ports)
    ports.add(JsonObject()
                  .add("link", port.link)
                  .add("carrier", port.carrier)
                  .add("next_hop", port.next_hop));
  for (const SwitchReport::Routes& one : report.routes)
    routes.add(JsonObject().add("link", one.link).add("missing", one.missing));
  JsonObject out;
  out.add("agent", report.agent)
      .add("serial", report.serial)
      .add("ports", ports)
      .add("routes", routes);
  if (report.done)
    out.add("done",
            JsonObject().add("epoch", report.done->epoch).add("version", report.done->version));
  if (report.marks) out.add("marks", list_of(*report.marks));
  return out.add_if("trouble", report.trouble).text();
}

std::string to_json(const SwitchOrders& orders) {
  return JsonObject()
      .add("epoch", orders.place.epoch)
      .add("version", orders.place.version)
      .add("changes", list_of(orders.changes))
      .add("wants_marks", orders.wants_marks)
      .add("renewals", orders.renewals)
      .add("watch", orders.watch)
      .text();
}

Result<SwitchReport> parse_report(std::string_view text, const std::string& from) {
  WEFT_TRY(const JsonLine line, JsonLine::parse(text, {from, 0, 0}));
  Errors errors;
  MessageReader reader(line, errors);
  SwitchReport out;
  out.agent = line.text("agent", std::nullopt, errors);
  out.serial = reader.serial("serial");
  reader.each("ports", [&](const JsonNode& node) {
    const auto link = node.member("link").text();
    const auto carrier = node.member("carrier").flag(), hop = node.member("next_hop").flag();
    if (!link || !carrier || !hop) return reader.wrong("ports", node);
    out.ports.push_back({*link, *carrier, *hop});
  });
  reader.each("routes", [&](const JsonNode& node) {
    SwitchReport::Routes one{node.member("link").text().value_or(""), {}};
    const JsonNode missing = node.member("missing");
    if (one.link.empty() || !missing.is_list()) return reader.wrong("routes", node);
    for (std::size_t i = 0; i < missing.size(); ++i)
      one.missing.push_back(missing.item(i).text().value_or(""));
    out.routes.push_back(std::move(one));
  });
  if (const JsonNode done = line.node().member("done")) out.done = reader.place(done, "done");
  if (line.has("marks")) out.marks = reader.marks("marks");
  out.trouble = line.text("trouble", "", errors);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

Result<SwitchOrders> parse_orders(std::string_view text, const std::string& from) {
  WEFT_TRY(const JsonLine line, JsonLine::parse(text, {from, 0, 0}));
  Errors errors;
  MessageReader reader(line, errors);
  SwitchOrders out;
  out.place = reader.place(line.node(), "epoch");
  out.changes = reader.marks("changes");
  out.wants_marks = line.node().member("wants_marks").flag().value_or(false);
  out.renewals = reader.serial("renewals");
  out.watch = line.texts("watch", errors);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace weft::operate::te
