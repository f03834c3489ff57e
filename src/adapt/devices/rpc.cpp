#include "adapt/devices/rpc.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "adapt/live/http_post.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"

namespace weft::adapt::devices {
namespace {

using nlohmann::json;

constexpr int ok = 200, unauthorized = 401, forbidden = 403;
constexpr int depth_max = 32;
constexpr std::string_view as_json = " | json";

std::string eapi_request(const Commands& commands) {
  JsonList list;
  for (const std::string& command : commands) list.add(command);
  return JsonObject()
      .add("jsonrpc", "2.0")
      .add("method", "runCmds")
      .add("params", JsonObject().add("version", 1).add("cmds", list).add("format", "json"))
      .add("id", "weft")
      .text();
}

// NX-API gives structured output by another method, and takes no pipe for it.
std::string nxapi_request(const Commands& commands) {
  JsonList list;
  int id = 0;
  for (const std::string_view command : commands) {
    const bool is_json = command.ends_with(as_json);
    const bool is_text = command.starts_with("show ") && !is_json;
    const std::string_view asked =
        command.substr(0, command.size() - (is_json ? as_json.size() : 0));
    list.add(JsonObject()
                 .add("jsonrpc", "2.0")
                 .add("method", is_text ? "cli_ascii" : "cli")
                 .add("params", JsonObject().add("cmd", asked).add("version", 1))
                 .add("id", ++id));
  }
  return list.text();
}

// The switch's own words for an error, on one line.
std::string words_of(const json& error) {
  std::string out;
  const auto take = [&](const json& from, const char* key) {
    if (from.is_object() && from.contains(key) && from[key].is_string())
      out += (out.empty() ? "" : ": ") + from[key].get<std::string>();
  };
  take(error, "message");
  if (error.contains("data")) take(error["data"], "msg");
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  constexpr std::size_t bytes_max = 300;
  return std::string(trim(out.substr(0, bytes_max)));
}

std::unexpected<Error> no_answer() {
  return fail(Errc::io, {}, "what came is not an answer to these commands");
}

// Of one result of NX-API.
std::string text_of(const json& result) {
  if (result.is_object() && result.contains("msg") && result["msg"].is_string())
    return result["msg"].get<std::string>();
  if (result.is_object() && result.contains("body"))
    return result["body"].dump(-1, ' ', false, json::error_handler_t::replace);
  return {};
}

Result<std::vector<std::string>> read_eapi(const json& root, const Commands& commands) {
  if (!root.contains("result") || !root["result"].is_array() ||
      root["result"].size() != commands.size())
    return no_answer();
  std::vector<std::string> out;
  for (const json& one : root["result"])
    out.push_back(one.dump(-1, ' ', false, json::error_handler_t::replace));
  return out;
}

Result<std::vector<std::string>> read_nxapi(const json& list, const Commands& commands) {
  std::vector<std::string> out;
  for (const json& one : list) {
    if (!one.is_object() || !one.contains("result")) return no_answer();
    out.push_back(text_of(one["result"]));
  }
  if (out.size() != commands.size()) return no_answer();
  return out;
}

class RpcSession final : public Session {
 public:
  RpcSession(const Device& device, const Settings& settings)
      : device_(device), timeout_(settings.timeout) {}

  Result<std::vector<std::string>> run(const Commands& commands) override {
    const Transport by = device_.dialect->transport;
    const bool is_eapi = by == Transport::eapi;
    const live::HttpSettings settings{
        .target = {.origin = (device_.is_plain ? "http://" : "https://") + device_.address,
                   .path = "",
                   .ca_file = device_.ca},
        .retry = {.timeout = timeout_}};
    auto answer = live::send_json(
        settings, "POST", is_eapi ? "/command-api" : "/ins",
        is_eapi ? eapi_request(commands) : nxapi_request(commands),
        {httplib::make_basic_authentication_header(device_.username, device_.password),
         {"Content-Type", is_eapi ? "application/json" : "application/json-rpc"}});
    if (!answer) return std::unexpected(with_name(std::move(answer).error()));
    if (answer->status == unauthorized || answer->status == forbidden)
      return fail(Errc::unsupported, {},
                  fmt::format("{} refuses the user {} ({})", device_.name, device_.username,
                              answer->status));
    auto out = read_rpc_answer(by, answer->body, commands);
    if (!out && (out.error().code == Errc::unsupported || answer->status == ok))
      return std::unexpected(with_name(std::move(out).error()));
    if (answer->status != ok)
      return fail(Errc::io, {}, fmt::format("{} answers {}", device_.name, answer->status));
    return out;
  }

 private:
  Error with_name(Error error) const {
    error.what = fmt::format("{}: {}", device_.name, error.what);
    return error;
  }

  const Device& device_;
  std::chrono::milliseconds timeout_;
};

}  // namespace

Result<std::vector<std::string>> read_rpc_answer(Transport transport, std::string_view body,
                                                 const Commands& commands) {
  // What is nested deeper than any answer is left out: copies of it would need as much stack.
  const json root = json::parse(
      body, [](int depth, json::parse_event_t, const json&) { return depth <= depth_max; }, false);
  if (!root.is_object() && !root.is_array()) return no_answer();
  const json list = root.is_object() ? json::array({root}) : root;  // of NX-API one stands alone
  for (const json& one : list)
    if (one.is_object() && one.contains("error"))
      return fail(Errc::unsupported, {}, "it refuses: " + words_of(one["error"]));
  return transport == Transport::eapi ? read_eapi(list.size() == 1 ? list[0] : json(), commands)
                                      : read_nxapi(list, commands);
}

std::unique_ptr<Session> open_rpc_session(const Device& device, const Settings& settings) {
  return std::make_unique<RpcSession>(device, settings);
}

}  // namespace weft::adapt::devices
