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
#include "adapt/lab/link_watch.hpp"
#include "adapt/lab/netlink.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/lab/overlay.hpp"
#include "adapt/lab/routes.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

namespace te = operate::te;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds te_poll{20};
constexpr std::chrono::milliseconds te_ask{200};
constexpr Duration te_retry = 1_s;
constexpr Duration te_renew = 1_s;  // well within overlay_lease

Duration since(Clock::time_point start) {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count() *
          ps_per_ns};
}

// A cable has carrier where both of its ends have.
class CableWatch {
 public:
  static Result<CableWatch> open(const Lab& lab) {
    CableWatch out(lab);
    for (const LabNodeId id : lab.plan.switches()) {
      const LabNode& node = lab.plan.nodes[id];
      WEFT_TRY(LinkWatch watch, LinkWatch::open(node));
      out.watches_.push_back(std::move(watch));
      for (const EndId end : node.ends) out.ends_[id][lab.plan.end(end).interface] = end;
      WEFT_TRY_STATUS(out.look(id));
    }
    return out;
  }

  // Waits for news, at most `patience`. Changes of cables since the last call.
  std::vector<te::LinkNews> wait(std::chrono::milliseconds patience) {
    std::vector<pollfd> fds;
    for (const LinkWatch& watch : watches_) fds.push_back({watch.fd(), POLLIN, 0});
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(patience.count()));
    for (const LabNodeId id : lab_->plan.switches())
      if (ready > 0 && (fds[id.index()].revents & POLLIN) != 0)
        watches_[id.index()].read(
            [&](std::string_view interface, bool carrier) { note(id, interface, carrier); });
    return std::exchange(news_, {});
  }

  // Cables without carrier at an end.
  std::vector<LabCableId> dark() const {
    std::vector<LabCableId> out;
    for (const auto& [cable, ends] : dark_)
      if (ends[0] || ends[1]) out.push_back(cable);
    return out;
  }

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

// Cables that have carrier again, and are of no use before the routes beneath are back.
class Returning {
 public:
  explicit Returning(const Lab& lab) : lab_(lab) {}

  // Keeps cables that came up from `news`.
  void hold_back(std::vector<te::LinkNews>& news) {
    for (const te::LinkNews& one : news) std::erase(waiting_, one.cable);
    for (const te::LinkNews& one : news)
      if (one.is_up) waiting_.push_back(one.cable);
    std::erase_if(news, [](const te::LinkNews& one) { return one.is_up; });
  }

  // Looks every te_ask. Cables whose two switches have all routes that they should, `dark` ones
  // being out.
  void add_ready(std::vector<LabCableId> dark, std::vector<te::LinkNews>& news) {
    if (waiting_.empty() || Clock::now() - looked_ < te_ask) return;
    Without without = without_of(lab_);
    without.cables.insert(without.cables.end(), dark.begin(), dark.end());
    const Routes routes = Routes::shortest(lab_.plan, without).met_by_traffic(lab_.plan);
    std::erase_if(waiting_, [&](model::CableId id) {
      const auto cable = std::ranges::find(lab_.plan.cables, id, &LabCable::cable);
      if (cable == lab_.plan.cables.end()) return true;
      const bool ready = cable->to_host || has_routes(*cable, routes);
      if (ready) news.push_back({id, true});
      return ready;
    });
    looked_ = Clock::now();
  }

 private:
  // A switch that cannot be read is not relied upon.
  bool has_routes(const LabCable& cable, const Routes& routes) const {
    std::vector<LabNodeId> ends{cable.ends[0].node, cable.ends[1].node};
    return count_missing_routes(lab_.plan, routes, ends).value_or(1) == 0;
  }

  const Lab& lab_;
  std::vector<model::CableId> waiting_;
  Clock::time_point looked_{};
};

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

// Interfaces that came back have lost their routes.
Status restore_racks(const Lab& lab, Overlay& overlay, std::span<const te::LinkNews> news) {
  for (const te::LinkNews& one : news) {
    if (!one.is_up) continue;
    for (const LabCable& cable : lab.plan.cables)
      if (cable.cable == one.cable)
        for (const CableEnd& end : cable.ends) WEFT_TRY_STATUS(overlay.restore(end.node));
  }
  return {};
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
  te::LoopOptions options = run.loop;
  options.base = drained_state(lab);
  WEFT_TRY(te::TeLoop loop, te::TeLoop::create(lab.fabric, *overlay, 1, options));
  WEFT_TRY_STATUS(overlay->renew());
  Duration renewed = since(start);
  std::optional<Time> next;
  std::vector<te::LinkNews> news = cables.wait(std::chrono::milliseconds(0));
  Returning returning(lab);
  loop.note(news, Time{});
  bool is_first = true;
  const auto tell = [&](std::vector<std::string> words, const te::Step& step, Duration from) {
    if (run.tell)
      run.tell({.at = Time{} + since(start),
                .news = std::move(words),
                .step = step,
                .is_first = std::exchange(is_first, false),
                .took = since(start) - from});
  };
  WEFT_TRY(const te::Step first, loop.start(std::move(flows), Time{}));
  tell(words_of(lab, news), first, {});
  next = loop.next_step(Time{});
  while (!run.stop()) {
    news = cables.wait(te_poll);
    returning.hold_back(news);
    if (news.empty()) returning.add_ready(cables.dark(), news);
    const Duration heard = since(start);
    const Time now = Time{} + heard;
    // A switch that refuses is asked again at once; it falls back on BGP after the lease.
    if (heard - renewed >= te_renew && overlay->renew()) renewed = heard;
    if (news.empty() && (!next || *next > now)) continue;
    Status done = restore_racks(lab, *overlay, news);
    if (done) {
      const Result<te::Step> step = loop.step(news, now);
      if (step)
        tell(words_of(lab, news), *step, heard);
      else
        done = std::unexpected(step.error());
    } else {
      loop.note(news, now);
    }
    next = done ? loop.next_step(now) : std::optional(now + te_retry);
  }
  return {};
}

}  // namespace weft::adapt::lab
