// The threads of the service: one that thinks, and some that wait for the world.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "operate/repair/repair.hpp"
#include "port/actuator.hpp"
#include "port/clock.hpp"
#include "port/notifier.hpp"
#include "serve/bus.hpp"
#include "serve/controller.hpp"
#include "serve/service.hpp"

namespace weft::serve {

// What carries orders out. Each of them, and each notifier, is called from one thread of its own
// and may wait.
// Where one is missing its orders fail, and say so.
struct Effectors {
  port::Actuator* actuator = nullptr;
  std::function<Result<operate::repair::Forecast>(const operate::repair::Order&)> forecast;
  // Returns a JSON object that says where the snapshot is and what is in it. `open`: ids of cases
  // that are not over.
  std::function<Result<std::string>(const operate::repair::Order&, const model::Case&,
                                    const std::vector<std::string>& open)>
      snapshot;
  std::vector<port::Notifier*> notifiers;
};

// Time that is simulated. The controller's thread moves it, gives the controller what the simulated
// network says, and carries orders out itself, one after another: what comes of it depends on the
// simulation alone, not on how threads take turns. Calls come from that thread.
class Simulation {
 public:
  struct Turn {
    std::vector<Controller::Batch> batches;
    std::vector<Command> commands;  // of simulated people; those that come too late are dropped
  };
  virtual ~Simulation() = default;
  // Nanoseconds until the next turn may begin; none: time stops here.
  virtual std::optional<std::int64_t> wait_ns() = 0;
  // Moves the clock on to when something happens next, or to `due`, when the controller has
  // something to do.
  virtual Result<Turn> advance(std::optional<Timestamp> due) = 0;
};

struct ThreadLimits {
  std::size_t waiting_bytes = std::size_t{64} << 20;  // of lines that are not durable yet
  std::size_t waiting_batches = 10'000;
  std::int64_t turn_ns = 100'000'000;  // the controller is asked at least so often
};

class ControllerThread final : public Service {
 public:
  using Sli = std::function<Result<std::string>(Timestamp from, Timestamp to, std::uint64_t event)>;

  // All must outlive the loop; the controller belongs to it from now on. The controller was
  // restored. `simulation` moves what `clock` shows.
  ControllerThread(Controller& controller, port::Clock& clock, Bus& bus, Effectors hands, Sli sli,
                   ThreadLimits limits = {}, Simulation* simulation = nullptr);
  ~ControllerThread()
      override;  // stops: what was acknowledged is durable, orders under way are waited for

  Result<Receipt> accept(std::string_view feed, std::vector<std::string> lines,
                         std::string_view sender) override;
  Status command(const Command& command) override;
  Result<std::string> sli(Timestamp from, Timestamp to) override;
  Result<std::string> ledger() override;
  Result<std::string> view(View view) override;
  std::vector<model::Entity> out_of_service();    // any thread
  operate::health::Conditions link_conditions();  // the same
  model::EvidenceSet recent_evidence();           // the same
  Result<std::string> records(const RecordWish& wish) override;
  Result<std::shared_ptr<const Past>> past(Timestamp at, const IsCancelled& is_cancelled) override;
  std::string metrics() override;
  Health health() override;

 private:
  class Worker;
  struct Round;
  struct Waiting {
    Controller::Batch batch;
    std::promise<Result<Receipt>> promise;
  };
  using Task = std::function<void()>;

  void run(const std::stop_token& stop);
  void turn(const std::stop_token& stop);
  Status simulate();
  operate::repair::Outcome perform(const operate::repair::Order& order);
  operate::repair::Outcome take_snapshot(const operate::repair::Order& order,
                                         const model::Case& found,
                                         const std::vector<std::string>& open,
                                         const std::function<void(std::string)>& keep) const;
  bool may_act(const operate::repair::Order& order);
  void finish();
  void take_batches(std::deque<Waiting> batches);
  void dispatch(operate::repair::Order order);
  void notify(operate::repair::Order order);
  void notice_done(const std::shared_ptr<Round>& round, std::size_t notifier, const Status& sent);
  operate::repair::Outcome carry_out(const operate::repair::Order& order);
  void act(const operate::repair::Order& order, operate::repair::Outcome& out);
  void post(Task task);
  // On the controller's thread, when it has time; the result of the call.
  template <class F>
  auto ask(F&& f) -> decltype(f());

  Controller& controller_;
  port::Clock& clock_;
  Bus& bus_;
  Effectors effectors_;
  Sli sli_;
  ThreadLimits limits_;
  Simulation* simulation_;
  bool is_commanded_ = false;  // since the last turn; of the controller's thread
  std::mutex late_;            // of calls of the controller after its thread
  std::mutex mutex_;           // of all below
  std::condition_variable_any changed_;
  std::deque<Waiting> batches_;
  std::size_t waiting_bytes_ = 0;
  std::vector<Task> tasks_;  // for the controller's thread
  bool is_stopping_ = false;
  std::string trouble_;  // what the store said last to the controller; "" when it works
  std::string refusal_;  // what it said to lines that came, not long ago
  std::int64_t refused_ns_ = 0;
  std::int64_t turned_ns_ = 0;  // when the controller's thread came by last, monotonic
  std::uint64_t busy_ = 0;
  std::size_t cases_open_ = 0;  // as of the last turn
  // Notices that some have and others have not: tried again, they go to those others.
  std::map<std::string, std::set<std::size_t>> have_;
  // Instants that were asked for, the latest last, and whether one of them is still being read.
  using Answer = std::shared_future<Result<std::shared_ptr<const Past>>>;
  std::mutex past_mutex_;
  std::deque<std::pair<Timestamp, Answer>> pasts_;
  bool is_reading_past_ = false;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::jthread thread_;
};

}  // namespace weft::serve
