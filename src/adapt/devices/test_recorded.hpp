// For tests of this room: switches that say what a file has, and nothing else.
#pragma once

#include <doctest/doctest.h>
#include <httplib.h>
#include <sys/stat.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "adapt/devices/actuator.hpp"
#include "base/config.hpp"
#include "base/file.hpp"
#include "base/json_line.hpp"
#include "base/json_text.hpp"
#include "base/test_folder.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::adapt::devices::testing {

// The part of a program that plays ssh: the last argument must be the next command of the file, for
// the host before it.
inline constexpr std::string_view ssh_script = R"sh(#!/bin/sh
dir=$(dirname "$0"); n=$(cat "$dir/next")
host=; for last; do before=$host; host=$last; done
asked="$before $last"
[ "$asked" = "$(cat "$dir/$n.send" 2>/dev/null)" ] || { echo "not recorded: $asked" >&2; exit 99; }
echo $((n + 1)) > "$dir/next"
cat "$dir/$n.answer"; cat "$dir/$n.error" >&2; exit "$(cat "$dir/$n.exit")"
)sh";

// Plays one file: a program in place of ssh, and a server in place of eAPI and NX-API, which tells
// the switches apart by their users.
class Recorded {
 public:
  explicit Recorded(const std::string& dialect) {
    auto loaded = load_yaml("src/adapt/devices/recorded/" + dialect + ".yaml");
    REQUIRE_MESSAGE(loaded.has_value(), (loaded ? "" : loaded.error().text()));
    file_ = *std::move(loaded);
    const Config* list = file_.find("exchanges");
    REQUIRE(list != nullptr);
    for (const Config& item : list->items) exchanges_.push_back(&item);
    write_ssh();
    server_.Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~Recorded() { server_.stop(); }

  std::string text(std::string_view key) const { return of(file_, key); }
  // Two switches and the cable between them, with the file's names of ports.
  model::Fabric fabric() const {
    return model::testing::make_fabric(
        "{nodes: [{role: ctsw}, {role: rtsw}], links: [{link: rtsw:0--ctsw:0, rate: 400 Gbps, "
        "interface_a: " +
        text("rack_port") + ", interface_b: " + text("spine_port") + "}]}");
  }
  Settings settings() const {
    const bool is_ssh = (*find_dialect({text("dialect"), {}}))->transport == Transport::ssh;
    const std::string password = folder_.write("password", "s3cret\n");
    std::string csv = "device,dialect,address,username,password_file,security\n";
    for (const std::string name : {"ctsw", "rtsw"})
      csv += name + ":0," + text("dialect") + "," +
             (is_ssh ? name + "0,weft,,\n"
                     : "127.0.0.1:" + std::to_string(port_) + "," + name + "0," + password +
                           ",plain\n");
    auto devices = read_devices(csv, "switches.csv");
    REQUIRE_MESSAGE(devices.has_value(), (devices ? "" : devices.error().text()));
    return {.devices = *std::move(devices),
            .dry_run = false,
            .settle = std::chrono::milliseconds(1),
            .ssh = folder_.file("ssh")};
  }
  bool is_over() const {
    const std::size_t played = next_ + std::stoul(*read_file(folder_.file("next")));
    return played == exchanges_.size();
  }

 private:
  static std::string of(const Config& config, std::string_view key) {
    const Config* found = config.find(key);
    return found == nullptr ? "" : found->text;
  }
  void write_ssh() {
    for (std::size_t i = 0; i < exchanges_.size(); ++i) {
      const Config& one = *exchanges_[i];
      const std::string name = folder_.file(std::to_string(i));
      const std::string code = of(one, "exit");
      REQUIRE(write_file(name + ".send", of(one, "to") + " " + of(one, "send")));
      REQUIRE(write_file(name + ".answer", of(one, "answer")));
      REQUIRE(write_file(name + ".error", of(one, "error")));
      REQUIRE(write_file(name + ".exit", code.empty() ? "0" : code));
    }
    REQUIRE(write_file(folder_.file("next"), "0"));
    REQUIRE(write_file(folder_.file("ssh"), ssh_script));
    REQUIRE(::chmod(folder_.file("ssh").c_str(), 0700) == 0);
  }
  // The commands of a request, as the file has them; none where it is no such request.
  static std::vector<std::string> commands_of(const httplib::Request& request) {
    const auto body = JsonLine::parse(JsonObject().add("it", JsonText{request.body}).text(), {});
    if (!body) return {};
    std::vector<std::string> out;
    const JsonNode it = body->node().member("it");
    const JsonNode params = it.member("params"), commands = params.member("cmds");
    if (request.path == "/command-api" && it.member("method").text() == "runCmds" &&
        params.member("version").whole() == 1 && params.member("format").text() == "json")
      for (std::size_t i = 0; i < commands.size(); ++i) out.push_back(*commands.item(i).text());
    if (request.path != "/ins" ||
        request.get_header_value("Content-Type") != "application/json-rpc")
      return out;
    for (std::size_t i = 0; i < it.size(); ++i) {
      const JsonNode call = it.item(i), its = call.member("params");
      if (call.member("jsonrpc").text() != "2.0" || its.member("version").whole() != 1 ||
          call.member("id").whole() != static_cast<std::int64_t>(i) + 1)
        return {};
      out.push_back(*call.member("method").text() + " " + *its.member("cmd").text());
    }
    return out;
  }
  void answer(const httplib::Request& request, httplib::Response& response) {
    const std::scoped_lock lock(mutex_);
    response.status = 404;
    if (next_ >= exchanges_.size()) return;
    const Config& one = *exchanges_[next_];
    std::vector<std::string> wanted;
    if (const Config* send = one.find("send"))
      for (const Config& item : send->items) wanted.push_back(item.text);
    const auto user = httplib::make_basic_authentication_header(of(one, "to"), "s3cret");
    if (request.get_header_value("Authorization") != user.second || commands_of(request) != wanted)
      return;
    ++next_;
    response.status = of(one, "status").empty() ? 200 : std::stoi(of(one, "status"));
    response.set_content(of(one, "answer"), "application/json");
  }

  Config file_;
  std::vector<const Config*> exchanges_;
  std::size_t next_ = 0;
  std::mutex mutex_;
  TestFolder folder_;
  httplib::Server server_;
  int port_ = 0;
  std::jthread thread_;
};

}  // namespace weft::adapt::devices::testing
