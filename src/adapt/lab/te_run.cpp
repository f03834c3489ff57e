#include "adapt/lab/te_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <map>

#include "adapt/lab/build.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/lab/overlay.hpp"
#include "adapt/lab/routes.hpp"
#include "adapt/linux_switch/link_watch.hpp"
#include "adapt/linux_switch/netlink.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

namespace te = operate::te;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds te_poll{20};

Duration since(Clock::time_point start) {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count() *
          ps_per_ns};
}

model::State drained_state(const Lab& lab) {
  model::State out;
  for (const std::string& name : lab.drained) {
    if (const auto cable = lab.fabric.find_cable({name, {}})) {
      out.set(forward(*cable), {.health = model::Health::draining});
      out.set(reverse(forward(*cable)), {.health = model::Health::draining});
    } else if (const auto node = lab.fabric.find_node({name, {}})) {
      out.set(*node, {.health = model::Health::draining});
    }
  }
  return out;
}

// From the kernels of all switches. A cable has carrier where both of its ends have.
class CableWatch final : public port::LinkFeed {
 public:
  static Result<CableWatch> open(const Lab& lab) {
    CableWatch out(lab);
    for (const LabNodeId id : lab.plan.switches()) {
      const LabNode& node = lab.plan.nodes[id];
      WEFT_TRY(LinkWatch watch, watch_links(node.netns));
      out.watches_.push_back(std::move(watch));
      for (const EndId end : node.ends) out.ends_[id][lab.plan.end(end).interface] = end;
      WEFT_TRY_STATUS(out.look(id));
    }
    return out;
  }

  // Waits for news, at most `patience`.
  void wait(std::chrono::milliseconds patience) {
    std::vector<pollfd> fds;
    for (const LinkWatch& watch : watches_) fds.push_back({watch.fd(), POLLIN, 0});
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(patience.count()));
    for (const LabNodeId id : lab_->plan.switches())
      if (ready > 0 && (fds[id.index()].revents & POLLIN) != 0)
        static_cast<void>(watches_[id.index()].read(
            [&](std::string_view interface, bool carrier) { note(id, interface, carrier); }));
  }

  std::vector<te::LinkNews> news() override { return std::exchange(news_, {}); }

  // Those without carrier are no part of the routes that there should be. A switch that cannot be
  // read is not relied upon.
  std::vector<model::CableId> routed(std::span<const model::CableId> cables) override {
    Without without = without_of(*lab_);
    for (const auto& [cable, ends] : dark_)
      if (ends[0] || ends[1]) without.cables.push_back(cable);
    const Routes routes = Routes::shortest(lab_->plan, without).met_by_traffic(lab_->plan);
    std::vector<model::CableId> out;
    for (const model::CableId id : cables) {
      const auto cable = std::ranges::find(lab_->plan.cables, id, &LabCable::cable);
      if (cable == lab_->plan.cables.end()) continue;
      std::vector<LabNodeId> ends{cable->ends[0].node, cable->ends[1].node};
      if (cable->to_host || count_missing_routes(lab_->plan, routes, ends).value_or(1) == 0)
        out.push_back(id);
    }
    return out;
  }

  // As of when the lab was read.
  model::State drained() override { return drained_state(*lab_); }

 private:
  explicit CableWatch(const Lab& lab) : lab_(&lab) {}

  // What is down from the start.
  Status look(LabNodeId id) {
    const LabNode& node = lab_->plan.nodes[id];
    return run_in_netns(node.netns, [&]() -> Status {
      WEFT_TRY(Netlink netlink, Netlink::open(node.name));
      WEFT_TRY(const auto interfaces, netlink.links());
      for (const LinkState& interface : interfaces)
        if (!interface.carrier) note(id, interface.name, false);
      return {};
    });
  }

  void note(LabNodeId node, std::string_view interface, bool carrier) {
    const auto& ends = ends_[node];
    const auto found = ends.find(interface);
    if (found == ends.end()) return;
    const EndId end = found->second;
    std::array<bool, 2>& dark = dark_[end.cable];
    const bool was_up = !dark[0] && !dark[1];
    dark[end.side] = !carrier;
    const bool is_up = !dark[0] && !dark[1];
    if (was_up != is_up) news_.push_back({lab_->plan.cables[end.cable].cable, is_up});
  }

  const Lab* lab_;
  std::vector<LinkWatch> watches_;  // of the switches, in order
  std::map<LabNodeId, std::map<std::string, EndId, std::less<>>> ends_;
  std::map<LabCableId, std::array<bool, 2>> dark_;  // ends without carrier, by side
  std::vector<te::LinkNews> news_;
};

// The kernel lets go of it when the process that has it ends, however it does.
Result<Fd> wait_for_lease(const Lab& lab, const TeRun& run) {
  const std::string path = lab.directory + "/te.lock";
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) return system_failure(path, errno);
  bool told = false;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return system_failure(path, errno);
    if (!told && run.standby) run.standby();
    told = true;
    if (run.stop()) return Fd();
    static_cast<void>(::poll(nullptr, 0, static_cast<int>(te_poll.count())));
  }
  return file;
}

std::vector<std::string> words_of(const Lab& lab, std::span<const te::LinkNews> news) {
  std::vector<std::string> out;
  for (const te::LinkNews& one : news)
    out.push_back(lab.fabric.name(one.cable) + (one.is_up ? " up" : " down"));
  return out;
}

}  // namespace

Status run_te(const Lab& lab, std::vector<te::Flow> flows, const TeRun& run) {
  WEFT_TRY(const Fd lease, wait_for_lease(lab, run));
  if (!lease.valid()) return {};
  const auto start = Clock::now();
  WEFT_TRY(CableWatch cables, CableWatch::open(lab));
  WEFT_TRY(const std::unique_ptr<Overlay> overlay, Overlay::open(lab));
  WEFT_TRY(te::Controller controller,
           te::Controller::create(lab.fabric, cables, *overlay, 1, run.loop));
  const auto tell = [&](const te::Event& event) {
    if (run.tell)
      run.tell({.at = event.at,
                .news = words_of(lab, event.news),
                .step = event.step,
                .is_first = event.is_first,
                .took = Time{} + since(start) - event.at});
  };
  WEFT_TRY(const te::Event first, controller.start(std::move(flows), Time{} + since(start)));
  tell(first);
  while (!run.stop()) {
    cables.wait(te_poll);
    if (const auto event = controller.turn(Time{} + since(start))) tell(*event);
  }
  return {};
}

}  // namespace weft::adapt::lab
