// Links that flap for good: what a service holds and writes about them does not grow with time.
#include <doctest/doctest.h>
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/test_effort.hpp"
#include "controller_kit.hpp"

namespace weft::controller_test {
namespace {

// Keeps documents and the number of events; of the rest it says that it was kept.
class CountingStore final : public port::Store {
 public:
  Result<std::uint64_t> commit(const port::Commit& commit) override {
    const std::uint64_t first = events_ + 1;
    events_ += commit.events.size();
    for (const port::Document& row : commit.documents) {
      written += row.body.size();
      documents_[{row.kind, row.id}] = row;
    }
    return first;
  }
  Result<std::vector<port::StoredEvent>> events(std::uint64_t, std::size_t) override {
    return std::vector<port::StoredEvent>();
  }
  Result<port::Document> document(std::string_view kind, std::string_view id) override {
    const auto at = documents_.find({std::string(kind), std::string(id)});
    if (at == documents_.end()) return fail(Errc::unknown, {}, "there is none");
    return at->second;
  }
  Result<std::vector<port::Document>> documents(std::string_view kind, Timestamp,
                                                std::size_t) override {
    std::vector<port::Document> out;
    for (const auto& [key, row] : documents_)
      if (key.first == kind) out.push_back(row);
    return out;
  }
  Result<std::vector<port::AuditEntry>> audit(std::uint64_t, std::string_view,
                                              std::size_t) override {
    return std::vector<port::AuditEntry>();
  }
  Result<std::uint64_t> forget_events(std::uint64_t) override { return 0; }
  Result<std::uint64_t> forget_documents(std::string_view, Timestamp) override { return 0; }

  std::uint64_t written = 0;  // bytes of documents

 private:
  std::uint64_t events_ = 0;
  std::map<std::pair<std::string, std::string>, port::Document> documents_;
};

std::size_t heap_bytes() { return ::mallinfo2().uordblks; }

double megabytes(std::size_t bytes) { return static_cast<double>(bytes) * 1e-6; }

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Shape {
  int racks = 0, spines = 0, minutes = 0;
};

class Flapping {
 public:
  explicit Flapping(const Shape& shape)
      : shape_(shape),
        fabric_(model::testing::make_fabric(
            fmt::format("{{generator: ai_zone, racks: {}, hosts_per_rack: 2, gpus_per_host: 1, "
                        "spines: {}}}",
                        shape.racks, shape.spines))),
        controller_({fabric_, inventory_, catalogue_, settled_, provisional_}, settings_,
                    policy_of("{defaults: {forecast: none}}"), store_) {
    REQUIRE(controller_.restore({now_}));
  }

  // Three records a second of each link: down, up, faint light, in turn.
  void pass_minute() {
    for (int second_of = 0; second_of < 60; ++second_of, ++seconds_) {
      std::vector<std::string> lines;
      for (int link = 0; link < shape_.racks * shape_.spines; ++link) add_lines(link, lines);
      const serve::Controller::Batch batch{serve::Feed::record, std::move(lines), ""};
      const auto receipts = controller_.accept({&batch, 1}, {now_});
      REQUIRE(receipts.has_value());
      REQUIRE(receipts->front().refused_count == 0);
      records += receipts->front().acknowledged - receipts->front().known;
      for (int tick = 0; tick < 10; ++tick, now_ += second / 10) {
        REQUIRE(controller_.tick({now_}));
        controller_.announcements();
      }
    }
  }
  CountingStore& store() { return store_; }
  std::uint64_t records = 0;

 private:
  void add_lines(int link, std::vector<std::string>& lines) {
    using Kinds = std::array<std::string_view, 3>;
    constexpr std::array<Kinds, 4> turns{{{"link_down", "link_down", "bgp_down"},
                                          {"link_up", "link_up", "bgp_up"},
                                          {"rx_power", "crc_errors", "rx_power"},
                                          {"rx_power", "rx_power", "prefec_ber"}}};
    const std::string rack = fmt::format("rtsw:{}", link % shape_.racks);
    const std::string spine = fmt::format("ctsw:{}", link / shape_.racks);
    const Kinds& kinds = turns[static_cast<std::size_t>((seconds_ + link) % 4)];
    for (std::size_t i = 0; i < kinds.size(); ++i)
      lines.push_back(Life::record(
          fmt::format("{}", ++next_), now_ - std::int64_t{link % 900} * 1'000'000,
          i % 2 == 0 ? fmt::format("{}->{}", rack, spine) : fmt::format("{}->{}", spine, rack),
          kinds[i]));
  }

  const Shape shape_;
  model::Fabric fabric_;
  observe::telemetry::Inventory inventory_{fabric_};
  observe::telemetry::Catalogue catalogue_ = observe::telemetry::Catalogue::built_in();
  serve::ControllerSettings settings_;
  operate::triage::Context settled_{fabric_, operate::triage::default_rules()};
  operate::triage::Context provisional_{
      fabric_, serve::provisional_rules(operate::triage::default_rules(), settings_.provisional)};
  CountingStore store_;
  serve::Controller controller_;
  std::int64_t now_ = start_ns;
  std::int64_t seconds_ = 0;
  std::uint64_t next_ = 0;
};

// Every record that was sent is a member, listed or summarised, of one case.
std::uint64_t members(CountingStore& store) {
  std::uint64_t out = 0;
  const auto cases = store.documents("case", {}, 0);
  for (const port::Document& row : *cases) {
    const auto document = nlohmann::json::parse(row.body);
    if (document["standing"] == "superseded" || document["standing"] == "withdrawn") continue;
    out += document["members"].size() + document["unexplained"].size();
    for (const char* key : {"members_summarised", "unexplained_summarised"})
      if (document.contains(key))
        for (const auto& summary : document[key]) out += summary["records"].get<std::uint64_t>();
  }
  return out;
}

void check_flat(const Shape& shape) {
  Flapping flapping(shape);
  std::vector<std::size_t> heap;
  std::vector<std::uint64_t> written;
  for (int minute = 1; minute <= shape.minutes; ++minute) {
    const std::uint64_t before = flapping.store().written;
    const double cpu = cpu_seconds();
    flapping.pass_minute();
    heap.push_back(heap_bytes());
    written.push_back(flapping.store().written - before);
    if (minute <= 5 || minute % 5 == 0)
      MESSAGE(
          fmt::format("minute {}: {} records, {:.1f} MB in use, {:.2f} MB of documents written, "
                      "{:.2f} s of CPU",
                      minute, flapping.records, megabytes(heap.back()), megabytes(written.back()),
                      cpu_seconds() - cpu));
  }
  const std::uint64_t held = members(flapping.store());
  MESSAGE(held << " of " << flapping.records << " records are members of documents");
  // Documents are at most a minute late, and the last half minute is not decided yet.
  const auto per_minute = flapping.records / static_cast<std::uint64_t>(shape.minutes);
  CHECK(held + 2 * per_minute >= flapping.records);
  CHECK(held <= flapping.records);
  CHECK(written.back() <= written[4] + written[4] / 10);
#ifndef WEFT_SANITIZED
  CHECK(heap.back() <= heap[4] + heap[4] / 10);
#endif
}

}  // namespace

TEST_CASE("sixty-four links that flap for twelve minutes: memory and writes are flat") {
  const int racks = std::max(2, static_cast<int>(test_effort(8)));
  check_flat({.racks = racks, .spines = 8, .minutes = 12});
}

TEST_CASE("512 links that flap for half an hour: memory and writes are flat" *
          doctest::skip(true)) {
  check_flat({.racks = 32, .spines = 16, .minutes = 30});
}

}  // namespace weft::controller_test
