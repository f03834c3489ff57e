#include "operate/snapshot/snapshot.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "base/config.hpp"
#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "model/formats/test_fabric.hpp"
#include "operate/snapshot/export.hpp"
#include "os/digest.hpp"

namespace weft::operate::snapshot {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

//   ctsw:0  ctsw:1  ctsw:2
//     |  \/ /\  \/ |
//   rtsw:0 ... rtsw:3, one host each
model::Fabric make_fabric(std::string_view yaml =
                              "{generator: ai_zone, racks: 4, hosts_per_rack: 1, "
                              "gpus_per_host: 1, spines: 3}") {
  return model::testing::make_fabric(yaml);
}

model::Case case_of(const model::Fabric& fabric, std::string_view root, std::string id = "c1") {
  const auto entity = model::find_entity(fabric, {root, {}});
  REQUIRE_MESSAGE(entity.has_value(), root);
  return {.id = std::move(id), .kind = model::CauseKind::link, .root = *entity};
}

std::vector<std::string> names(const DeviceChoice& choice, Standing standing) {
  std::vector<std::string> out;
  for (const Asked& asked : choice.asked)
    if (asked.standing == standing) out.push_back(asked.device);
  return out;
}

using Names = std::vector<std::string>;

TEST_CASE("who is asked: the suspect, its ends, what is inside, and neighbours") {
  const model::Fabric fabric = make_fabric();
  const auto ask = [&](std::string_view root, std::size_t most = 32) {
    return devices_to_ask(fabric, case_of(fabric, root), most);
  };
  const DeviceChoice spine = ask("ctsw:1");
  CHECK(names(spine, Standing::suspect) == Names{"ctsw:1"});
  CHECK(names(spine, Standing::neighbour) == Names{"rtsw:0", "rtsw:1", "rtsw:2", "rtsw:3"});
  CHECK(spine.asked.size() == 5);
  const DeviceChoice cable = ask("rtsw:2--ctsw:1");
  CHECK(names(cable, Standing::end).size() == 2);
  CHECK(names(cable, Standing::neighbour).size() == 5);
  CHECK(names(cable, Standing::host) == Names{"host:2"});
  CHECK(names(ask("rtsw:2->ctsw:1"), Standing::end).size() == 2);
  CHECK(names(ask("ctsw:0/2"), Standing::suspect) == Names{"ctsw:0"});
  CHECK(names(ask("ctsw:0/2"), Standing::end).size() == 1);
  CHECK(names(ask("host:3"), Standing::suspect) == Names{"host:3"});
  CHECK(names(ask("host:3"), Standing::neighbour) == Names{"rtsw:3"});
  CHECK(names(ask("nic:3"), Standing::suspect) == Names{"host:3"});
  CHECK(names(ask("rack:1"), Standing::inside).size() >= 1);

  const DeviceChoice few = ask("ctsw:1", 3);
  CHECK(few.asked.size() == 3);
  CHECK(few.left_out == 2);
  CHECK(names(few, Standing::neighbour) == Names{"rtsw:0", "rtsw:2"});
  CHECK(devices_to_ask(fabric, {.id = "x"}, 8).asked.empty());
  CHECK(ask("ctsw:1", 0).left_out == 5);
}

// Devices as a test wants them.
class Devices : public port::DeviceState {
 public:
  Result<std::vector<port::StatePiece>> collect(std::string_view device,
                                                std::chrono::milliseconds patience,
                                                std::size_t bytes_max) override {
    const int now = ++inside;
    most = std::max<int>(most, now);
    std::this_thread::sleep_for(20ms);
    --inside;
    if (device == "rtsw:1") return fail(Errc::io, {}, "refused");
    if (device == "rtsw:2") std::this_thread::sleep_for(patience + 800ms);
    std::vector<port::StatePiece> out;
    out.push_back({.name = "routes", .text = "{\"device\": \"" + std::string(device) + "\"}"});
    out.push_back({.name = "../log", .text = std::string(3 * bytes_max, 'x') + "end"});
    out.push_back({.name = "config", .text = "neighbor 8.8.8.8 password hunter2\n"});
    out.push_back({.name = "bgp", .text = {}, .error = "bgpd does not answer"});
    return out;
  }
  std::atomic<int> inside = 0, most = 0;
};

Settings settings(const std::string& directory) {
  return {.directory = directory,
          .limits = {.patience = 250ms, .piece_bytes_max = 1'000, .device_bytes_max = 1'500}};
}

TEST_CASE("a snapshot is taken side by side, in time, and holds what it says") {
  const TestFolder scratch;
  const model::Fabric fabric = make_fabric();
  const auto devices = std::make_shared<Devices>();
  Taker taker(devices, settings(scratch.file("new/dir")));
  const auto start = std::chrono::steady_clock::now();
  const auto taken = taker.take(fabric, case_of(fabric, "ctsw:1"), "rule \"x\"", {1'000}, {});
  CHECK(std::chrono::steady_clock::now() - start < 900ms);
  REQUIRE_MESSAGE(taken.has_value(), (taken ? "" : taken.error().text()));
  CHECK(devices->most >= 3);
  CHECK(taken->bytes == fs::file_size(taken->path));
  CHECK(taken->sha256 == sha256_hex(*read_file(taken->path)));
  CHECK((fs::status(taken->path).permissions() & fs::perms::others_all) == fs::perms::none);

  const auto snapshot = load(taken->path);
  REQUIRE_MESSAGE(snapshot.has_value(), (snapshot ? "" : snapshot.error().text()));
  const Manifest& manifest = snapshot->manifest;
  CHECK(to_json(manifest) == taken->manifest);
  CHECK(manifest.case_id == "c1");
  CHECK(manifest.cause == "cable");
  CHECK(manifest.entity == "ctsw:1");
  CHECK(manifest.trigger == "rule \"x\"");
  REQUIRE(manifest.devices.size() == 5);
  CHECK(manifest.devices[0].standing == "suspect");
  REQUIRE(manifest.devices[0].pieces.size() == 4);
  const auto& pieces = manifest.devices[0].pieces;
  CHECK(pieces[0].file == "ctsw-1/routes.json");
  CHECK(pieces[1].file == "ctsw-1/.--log.txt");
  CHECK(pieces[1].is_cut);
  CHECK(pieces[1].bytes == 1'000);
  CHECK(pieces[3].error == "bgpd does not answer");
  CHECK(manifest.devices[2].error == "refused");
  CHECK(manifest.devices[3].error == "it did not answer in time");
  for (const ArchiveFile& file : snapshot->files)
    if (file.name == "ctsw-1/.--log.txt") CHECK(file.content.ends_with("xend"));
  std::this_thread::sleep_for(1s);  // the one that was late comes back to nothing
}

TEST_CASE("what was changed, lost, added or cut is found") {
  const Snapshot good{.manifest = {.case_id = "c",
                                   .taken = {5},
                                   .devices = {{.name = "a",
                                                .standing = "suspect",
                                                .pieces = {{.name = "p",
                                                            .file = "a/p.txt",
                                                            .bytes = 3,
                                                            .sha256 = sha256_hex("abc")}}}}},
                      .files = {{"a/p.txt", "abc"}}};
  const auto whole = pack(good);
  REQUIRE(whole.has_value());
  CHECK(*whole == *pack(good));
  REQUIRE(verify(*whole, "f").has_value());

  const auto says = [&](const Snapshot& bad) {
    const auto found = verify(*pack(bad), "f");
    REQUIRE(!found.has_value());
    return found.error().text();
  };
  Snapshot bad = good;
  bad.files[0].content = "abd";
  CHECK(says(bad).find("SHA-256 differs") != std::string::npos);
  bad.files[0].content = "abcd";
  CHECK(says(bad).find("4 bytes, but the manifest says 3") != std::string::npos);
  bad.files.clear();
  CHECK(says(bad).find("a/p.txt is missing") != std::string::npos);
  bad = good;
  bad.files.push_back({"a/q.txt", "x"});
  CHECK(says(bad).find("a/q.txt is not in the manifest") != std::string::npos);
  for (std::size_t size = 0; size < whole->size(); size += 7)
    CHECK(!verify(std::string_view(*whole).substr(0, size), "f").has_value());
  CHECK(!verify(*gzip("{}"), "f").has_value());
}

TEST_CASE("a copy for a vendor holds no secret, and verifies") {
  const TestFolder scratch;
  const model::Fabric fabric = make_fabric();
  Taker taker(std::make_shared<Devices>(), settings(scratch.path()));
  const auto taken = taker.take(fabric, case_of(fabric, "rtsw:3", "acme-1"), "t", {1'000}, {});
  REQUIRE(taken.has_value());
  const auto original = load(taken->path);
  REQUIRE(original.has_value());
  const auto copy =
      export_copy(*original, {.names = {"acme", "ctsw"}, .listed_names = Treatment::pseudonym});
  REQUIRE(copy.has_value());
  const auto back = verify(*pack(copy->snapshot), "copy");
  REQUIRE_MESSAGE(back.has_value(), (back ? "" : back.error().text()));
  const std::string all = gunzip(*pack(copy->snapshot), "copy").value_or("");
  for (const std::string_view secret : {"hunter2", "8.8.8.8", "acme", "ctsw"})
    CHECK(all.find(secret) == std::string::npos);
  CHECK(back->manifest.case_id == "anon-1-1");
  CHECK(back->manifest.is_redacted);
  CHECK(!back->manifest.redactions.empty());
  CHECK(copy->pseudonyms.at("acme") == "anon-1");
  CHECK(!export_copy(copy->snapshot, {}).has_value());
}

TEST_CASE("old snapshots go, of closed cases only, and only when they must") {
  const TestFolder scratch;
  const auto put = [&](std::string_view id, std::int64_t t) {
    const std::string path = scratch.file(snapshot_file_name(id, {t}));
    REQUIRE(write_durable(path, std::string(100, 'x')).has_value());
    return path;
  };
  const std::string open_old = put("open/1", 1), closed_2 = put("closed", 2),
                    closed_3 = put("closed", 3);
  REQUIRE(write_file(scratch.file("README"), std::string(1'000, 'y')).has_value());
  const Names open{"open/1"};
  CHECK(make_room(scratch.path(), 100, 400, open)->empty());
  CHECK(make_room(scratch.path(), 100, 300, open) == Names{closed_2});
  CHECK(!fs::exists(closed_2));
  const auto full = make_room(scratch.path(), 301, 400, open);
  REQUIRE(!full.has_value());
  CHECK(full.error().code == Errc::infeasible);
  CHECK(fs::exists(closed_3));
  CHECK(make_room(scratch.path(), 100, 200, open) == Names{closed_3});
  CHECK(fs::exists(open_old));
  CHECK(make_room(scratch.file("none"), 1, 1, {})->empty());
  CHECK(snapshot_file_name("a/b", {7}) == "a%2Fb.7.tar.gz");
  CHECK(snapshot_file_name(std::string(400, 'a'), {7}).size() < 200);
  CHECK(snapshot_file_name(std::string(400, 'a'), {7}) !=
        snapshot_file_name(std::string(401, 'a'), {7}));
}

TEST_CASE("a full disk leaves nothing half written") {
  const TestFolder scratch;
  // As a disk that takes 1,000 bytes a file; without the signal the write fails.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1'000, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Status done = write_durable(scratch.file("a"), std::string(5'000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  REQUIRE(!done.has_value());
  CHECK(done.error().code == Errc::io);
  CHECK(fs::is_empty(scratch.path()));
}

}  // namespace
}  // namespace weft::operate::snapshot
