// For tests: a simulated network as a stage for the controller of traffic engineering.
#pragma once

#include "adapt/sim/world.hpp"
#include "model/formats/test_fabric.hpp"
#include "operate/te/controller_story.hpp"

namespace weft::adapt::sim::testing {

class WorldStage final : public operate::te::testing::Stage {
 public:
  static constexpr Timestamp begin{1'800'000'000 * ns_per_s};

  explicit WorldStage(const model::Fabric& fabric, WorldSettings settings = {}) {
    settings.converge_ns = 130'000'000;
    settings.notice_ns = 1'200'000;
    settings.te = WorldTeSettings{
        .flows = operate::te::testing::story_flows(fabric),
        .loop = {.base = {}, .settings = {}, .damping = operate::te::testing::story_damping}};
    auto made = World::create(fabric, {}, settings, begin);
    REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().text()));
    world_ = *std::move(made);
  }
  World& world() { return *world_; }

  void cut(model::CableId cable) override { start(FaultKind::cable, cable, 1); }
  void mend(model::CableId cable) override { stop(cable); }
  void slow(model::CableId cable) override { start(FaultKind::degraded, cable, 0.5); }
  void unslow(model::CableId cable) override { stop(cable); }
  void wait(Duration span) override { to(world_->now().ns + span.ps / ps_per_ns); }
  void wait_for(std::size_t events) override {
    for (int i = 0; i < 20'000 && world_->te()->events().size() < events; ++i) wait(1'000_us);
  }
  void stop_controller() override { world_->te()->stop_controller(); }
  std::vector<operate::te::Event> events() override { return world_->te()->events(); }
  double mark_s() override {
    // Its last marks are those of the last decision.
    const operate::te::Event& last = world_->te()->events().back();
    const Duration installed = WorldTeSettings{}.installed;
    return last.at.seconds() + installed.seconds() - static_cast<double>(cut_.ns - begin.ns) / 1e9;
  }
  std::vector<port::RouteMark> marks() override { return world_->te()->marks(); }
  std::vector<double> dark_s() override {
    std::vector<double> out(world_->te()->flows().size(), 0);
    const auto& all = world_->blackouts();
    for (; told_ < all.size(); ++told_) {
      const Timestamp to = all[told_].to.value_or(world_->now());
      out[all[told_].flow] += static_cast<double>(to.ns - all[told_].from.ns) / 1e9;
    }
    return out;
  }

 private:
  void to(std::int64_t ns) {
    const Status done = world_->advance({ns});
    REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
    static_cast<void>(world_->records());
    static_cast<void>(world_->evidence());
  }
  void start(FaultKind kind, model::CableId cable, double factor) {
    cut_ = world_->now();
    fault_ = static_cast<std::uint32_t>(world_->net().faults().size());
    world_->net().begin_at(cut_,
                           {.kind = kind, .part = model::entity(cable), .rate_factor = factor});
    to(cut_.ns + 1);
  }
  void stop(model::CableId /*cable*/) {
    world_->net().end(fault_);
    to(world_->now().ns + 1);
  }

  std::unique_ptr<World> world_;
  Timestamp cut_;
  std::uint32_t fault_ = 0;
  std::size_t told_ = 0;
};

}  // namespace weft::adapt::sim::testing
