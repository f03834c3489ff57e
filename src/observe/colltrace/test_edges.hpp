// For tests of this room: a data-parallel job on a two-tier fabric, with one part of it bad: the
// traces of its ranks, probes and counters. Nothing here is shared with what judges them: times
// come from bytes and rates, paths from a choice that nobody else knows.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "model/events/evidence.hpp"
#include "model/formats/test_fabric.hpp"
#include "observe/colltrace/network.hpp"
#include "observe/colltrace/ring.hpp"

namespace weft::observe::colltrace::test {

enum class Bad { none, card, up, down, rank, load };

struct EdgeWorld {
  std::uint32_t racks = 16, hosts_per_rack = 2, gpus = 4, spines = 4;
  int operations = 40, channels = 2;
  Bad bad = Bad::none;
  double factor_low = 1.35, factor_high = 2.6;
  double jitter = 0.08;      // of a call's wait on one edge
  double own = 0.015;        // lasting differences of edges and ranks
  double fabric_factor = 1;  // everything takes so much longer
  double shows_loss = 0.85;  // share of bad links and cards that lose probes
  bool has_edges = true, has_probes = true, has_counters = false;
};

class EdgeRun {
 public:
  EdgeRun(const EdgeWorld& world, std::uint64_t seed)
      : w_(world),
        rng_(seed),
        fabric_(model::testing::make_fabric(fmt::format(
            "{{generator: ai_zone, racks: {}, hosts_per_rack: {}, gpus_per_host: {}, spines: {}, "
            "link: 400 Gbps}}",
            w_.racks, w_.hosts_per_rack, w_.gpus, w_.spines))) {
    choose();
    run_job();
    if (w_.has_probes) probe();
    if (w_.has_counters) count();
  }

  const model::Fabric& fabric() const { return fabric_; }
  const std::vector<RingTrace>& traces() const { return traces_; }
  const model::EvidenceSet& probes() const { return probes_; }
  const std::vector<localise::LinkCounters>& counters() const { return counters_; }
  std::uint32_t bad_rank() const { return bad_rank_; }
  model::LinkId bad_link() const { return bad_link_; }
  model::NodeId bad_nic() const { return bad_nic_; }
  std::vector<model::NodeId> gpus() const { return {fabric_.gpus().begin(), fabric_.gpus().end()}; }

 private:
  std::uint32_t hosts() const { return w_.racks * w_.hosts_per_rack; }
  std::uint32_t ranks() const { return hosts() * w_.gpus; }
  model::NodeId nic(std::uint32_t rank) const { return fabric_.nic_of(fabric_.gpus()[rank]); }
  model::LinkId link(const std::string& from, const std::string& to) const {
    return *fabric_.find_link({from + "->" + to, {}});
  }
  double normal() {
    return std::sqrt(-2 * std::log(1 - rng_.uniform())) * std::cos(6.283185307 * rng_.uniform());
  }
  std::uint32_t rack(std::uint32_t rank) const { return rank / w_.gpus / w_.hosts_per_rack; }

  // NIC up, one spine of the connection's own, NIC down.
  std::vector<model::LinkId> way(std::uint32_t from, std::uint32_t to, std::uint32_t spine) const {
    const std::string a = fmt::format("rtsw:{}", rack(from)), b = fmt::format("rtsw:{}", rack(to));
    const std::string s = fmt::format("ctsw:{}", spine);
    std::vector<model::LinkId> out{link(fabric_.name(nic(from)), a)};
    if (a != b) {
      out.push_back(link(a, s));
      out.push_back(link(s, b));
    }
    out.push_back(link(b, fabric_.name(nic(to))));
    return out;
  }
  bool is_bad(const std::vector<model::LinkId>& links) const {
    for (const model::LinkId l : links)
      if (l == bad_link_ || fabric_.from(l) == bad_nic_ || fabric_.to(l) == bad_nic_) return true;
    return false;
  }

  void choose() {
    factor_ = w_.factor_low + (w_.factor_high - w_.factor_low) * rng_.uniform();
    loses_ = rng_.uniform() < w_.shows_loss;
    loss_ = std::pow(10, -2.5 + 1.3 * rng_.uniform());
    const auto any = static_cast<std::uint32_t>(rng_.below(ranks()));
    for (std::uint32_t r = 0; r < ranks(); ++r) {
      // Members of a group: the same GPU of each host with the same place in its rack.
      const std::uint32_t group = r % w_.gpus + w_.gpus * (r / w_.gpus % w_.hosts_per_rack);
      groups_[group].push_back(r);
    }
    for (const auto& [g, members] : groups_)
      for (std::size_t i = 0; i < members.size(); ++i)
        for (int c = 0; c < w_.channels; ++c)
          ways_[{members[i], c}] = way(members[i], members[(i + 1) % members.size()],
                                       static_cast<std::uint32_t>(rng_.below(w_.spines)));
    bad_rank_ = any;
    const auto& some = ways_.at({any, 0});  // a link that the job does use
    if (w_.bad == Bad::card) bad_nic_ = nic(any);
    if (w_.bad == Bad::up || (w_.bad == Bad::load && any % 2 == 0)) bad_link_ = some[1];
    if (w_.bad == Bad::down || (w_.bad == Bad::load && any % 2 == 1)) bad_link_ = some[2];
  }

  // Each rank's paces, and a trace that holds nothing yet.
  void begin_traces() {
    traces_.resize(ranks());
    for (std::uint32_t r = 0; r < ranks(); ++r) {
      pace_.push_back(1 + w_.own * normal() * 0.5);
      if (w_.bad == Bad::rank && r == bad_rank_) pace_[r] *= factor_;
      for (int c = 0; c < w_.channels; ++c) own_[{r, c}] = std::exp(w_.own * normal());
      RingTrace& t = traces_[r];
      t.host = fabric_.name(fabric_.host_of(fabric_.gpus()[r]));
      t.rank = static_cast<std::int32_t>(r);
      t.names.assign(256, "?");
      t.names[1] = "AllReduce";
      t.names[2] = "ncclFloat32";
    }
  }

  void run_job() {
    constexpr double bytes = 256e6, chunk = 1 << 20;
    begin_traces();
    for (const auto& [g, members] : groups_) {
      const auto n = static_cast<double>(members.size());
      for (std::size_t i = 0; i < members.size(); ++i)
        traces_[members[i]].communicators.push_back({0x1000 + g, "dp", static_cast<std::int32_t>(i),
                                                     static_cast<std::int32_t>(n),
                                                     static_cast<std::int32_t>(n)});
      std::vector<double> ready(members.size(), 1e6);
      for (int op = 0; op < w_.operations; ++op) {
        std::vector<double> begin(members.size());
        for (std::size_t i = 0; i < members.size(); ++i)
          begin[i] = ready[i] + 4000 * pace_[members[i]] * std::exp(0.03 * normal());
        double slowest = 0;
        for (std::size_t i = 0; i < members.size(); ++i)
          for (int c = 0; c < w_.channels; ++c) {
            double wait = own_[{members[i], c}] * std::exp(w_.jitter * normal()) * w_.fabric_factor;
            if (rng_.uniform() < 0.01) wait *= 1 + 2 * rng_.uniform();  // a hiccup
            const auto& links = ways_.at({members[i], c});
            if (is_bad(links))
              wait *= w_.bad == Bad::load ? 1 + (factor_ - 1) * 2 * rng_.uniform() : factor_;
            slowest = std::max(slowest, wait);
            waits_.push_back({members[i], c, op, wait});
          }
        const double transfer =
            2 * (n - 1) / n * bytes / 50e9 * 1e6 *
            (w_.fabric_factor + std::max(0.0, slowest - 1.2 * w_.fabric_factor));
        const double end = *std::ranges::max_element(begin) + transfer;
        for (std::size_t i = 0; i < members.size(); ++i) {
          ready[i] = end + 5;
          const auto ns = [](double us) {
            return 1'760'000'000'000'000'000 + static_cast<std::int64_t>(us * 1000);
          };
          RingOperation o{.communicator = 0, .state = RingOperation::State::completed};
          o.order = o.seq = static_cast<std::uint64_t>(op);
          o.count = static_cast<std::uint64_t>(bytes / 4);
          o.function = 1;
          o.type = 2;
          o.called_ns = ns(begin[i] - 20);
          o.started_ns = ns(begin[i]);
          o.ended_ns = ns(end);
          o.device_ns = static_cast<std::uint64_t>((end - begin[i]) * 1000);
          traces_[members[i]].operations.push_back(o);
        }
      }
      for (const auto& [rank, channel, op, wait] : waits_) {
        RingTrace& t = traces_[rank];
        RingProxy p{.begin_ns = t.operations[static_cast<std::size_t>(op)].started_ns,
                    .operation = static_cast<std::uint32_t>(op)};
        p.peer = (t.communicators[0].rank + 1) % static_cast<std::int32_t>(n);
        p.channel = static_cast<std::uint8_t>(channel);
        p.is_send = true;
        p.steps = p.steps_done = 240;
        p.bytes = static_cast<std::uint64_t>(240 * chunk);
        p.wait_ns[1] = static_cast<std::uint64_t>(240 * chunk / 50e9 * 1e9 * 3 * wait);
        if (w_.has_edges) t.proxies.push_back(p);
      }
      waits_.clear();
    }
  }

  std::uint32_t drops(std::uint32_t sent, double rate) {
    std::uint32_t out = 0;
    for (std::uint32_t i = 0; i < sent; ++i) out += rng_.uniform() < rate;
    return out;
  }

  // A dozen flows from each NIC to others, there and back over ways of their own.
  void probe() {
    for (std::uint32_t r = 0; r < ranks(); ++r)
      for (int k = 0; k < 12; ++k) {
        const auto to = static_cast<std::uint32_t>(rng_.below(ranks()));
        if (rack(to) == rack(r)) continue;
        auto links = way(r, to, static_cast<std::uint32_t>(rng_.below(w_.spines)));
        const auto back = way(to, r, static_cast<std::uint32_t>(rng_.below(w_.spines)));
        links.insert(links.end(), back.begin(), back.end());
        model::Evidence row;
        row.src = nic(r);
        row.dst = nic(to);
        row.sent = 400;
        const bool bad = is_bad(links);
        const bool is_load = w_.bad == Bad::load;
        row.lost = drops(row.sent, 2e-5 + (bad && loses_ && !is_load ? loss_ : 0));
        row.rtt_p50_us = static_cast<float>((8 + 0.6 * normal() * normal()) *
                                            (bad && is_load ? 1.5 + 2 * rng_.uniform() : 1));
        probes_.set_path(row, links);
        probes_.rows.push_back(row);
      }
    probes_.class_index("0");
  }

  void count() {
    for (const model::LinkId l : fabric_.links()) {
      if (!fabric_.on_wire(l)) continue;
      localise::LinkCounters c{.link = l, .packets = 1'000'000};
      const bool bad = is_bad({l});
      const bool is_load = w_.bad == Bad::load;
      if (rng_.uniform() < (bad ? (is_load ? 0.9 : 0.3) : 0.02))
        c.marks = 20'000 + rng_.below(90'000);
      if (bad && !is_load && loses_ && rng_.uniform() < 0.6) c.errors = 1 + rng_.below(3000);
      counters_.push_back(c);
    }
  }

  struct Wait {
    std::uint32_t rank;
    int channel, op;
    double wait;
  };
  EdgeWorld w_;
  Rng rng_;
  model::Fabric fabric_;
  double factor_ = 1, loss_ = 0;
  bool loses_ = false;
  std::uint32_t bad_rank_ = 0;
  model::LinkId bad_link_;
  model::NodeId bad_nic_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> groups_;
  std::map<std::pair<std::uint32_t, int>, std::vector<model::LinkId>> ways_;
  std::map<std::pair<std::uint32_t, int>, double> own_;  // lasting, of edges
  std::vector<double> pace_;                             // of ranks
  std::vector<Wait> waits_;
  std::vector<RingTrace> traces_;
  model::EvidenceSet probes_;
  std::vector<localise::LinkCounters> counters_;
};

}  // namespace weft::observe::colltrace::test
