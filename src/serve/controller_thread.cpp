#include "serve/controller_thread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace weft::serve {

namespace repair = operate::repair;
using repair::OrderKind;

namespace {

constexpr std::int64_t dead_ns = 30 * ns_per_s;    // a loop that has not turned for so long is dead
constexpr std::int64_t refusal_ns = 5 * ns_per_s;  // so long it is not ready after it refused lines
constexpr std::int64_t ns_per_ms = 1'000'000;

Error stopped() {
  return {Errc::io, {}, "the service is stopping", "send it again when it is back", {}};
}

std::size_t bytes_of(const std::vector<std::string>& lines) {
  std::size_t out = 0;
  for (const std::string& line : lines) out += line.size();
  return out;
}

// Acts, looks and checks go through the same hands; the others wait for different things. Behind
// these come the notifiers, one by one: none waits for another that hangs.
constexpr std::size_t lane_count = 3;
std::size_t lane(OrderKind kind) {
  switch (kind) {
    case OrderKind::act:
    case OrderKind::look:
    case OrderKind::check:
      return 0;
    case OrderKind::forecast:
      return 1;
    case OrderKind::snapshot:
      return 2;
    case OrderKind::notify:
      return lane_count;
  }
  return 0;
}
constexpr std::size_t partial_notices_max = 10'000;
constexpr std::size_t pasts_max = 8;

Error missing(std::string_view what) {
  return {Errc::unsupported,
          {},
          fmt::format("this service has no {}", what),
          "give it one in its configuration",
          {}};
}

}  // namespace

// Tasks one after another, on a thread of its own.
class ControllerThread::Worker {
 public:
  Worker() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

  // No task begins after the first; the second waits for the one that is under way. Tasks may be
  // added until the end, and are dropped.
  void request_stop() { thread_.request_stop(); }
  void join() { thread_.join(); }

  void add(Task task) {
    {
      const std::scoped_lock lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    // What is left at the end is given again in the next life.
    while (changed_.wait(lock, stop, [this] { return !tasks_.empty(); }) &&
           !stop.stop_requested()) {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Task> tasks_;
  std::jthread thread_;  // last: it uses the others
};

ControllerThread::ControllerThread(Controller& controller, port::Clock& clock, Bus& bus,
                                   Effectors hands, Sli sli, ThreadLimits limits,
                                   Simulation* simulation)
    : controller_(controller),
      clock_(clock),
      bus_(bus),
      effectors_(std::move(hands)),
      sli_(std::move(sli)),
      limits_(limits),
      simulation_(simulation),
      turned_ns_(clock.now().ns),
      cases_open_(controller.open_count()) {
  for (std::size_t i = 0; i < lane_count + effectors_.notifiers.size(); ++i)
    workers_.push_back(std::make_unique<Worker>());
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

// The workers' threads end first, because the controller's thread answers what they ask and keeps
// what became of their orders. The workers themselves are destroyed after it: until it has ended it
// gives them orders.
ControllerThread::~ControllerThread() {
  for (const auto& worker : workers_) worker->request_stop();
  for (const auto& worker : workers_) worker->join();
  thread_.request_stop();
  thread_.join();
}

void ControllerThread::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) turn(stop);
  finish();
}

// Called once, at the end of the controller's thread. The lock keeps out those who come after it.
void ControllerThread::finish() {
  const std::scoped_lock late(late_);
  // What came meanwhile was never acknowledged.
  std::deque<Waiting> batches;
  std::vector<Task> tasks;
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
    batches.swap(batches_);
    tasks.swap(tasks_);
  }
  for (Waiting& waiting : batches) waiting.promise.set_value(std::unexpected(stopped()));
  for (const Task& task : tasks) task();
  // The outcomes of the last orders. Orders that it gives are given again in the next life; where
  // the store fails, the outcomes are found out anew then.
  static_cast<void>(controller_.tick(clock_.wall()));
}

void ControllerThread::turn(const std::stop_token& stop) {
  std::deque<Waiting> batches;
  std::vector<Task> tasks;
  {
    std::unique_lock lock(mutex_);
    std::int64_t wait = limits_.turn_ns;
    if (simulation_ != nullptr) wait = std::min(wait, simulation_->wait_ns().value_or(wait));
    changed_.wait_for(lock, stop, std::chrono::nanoseconds(wait),
                      [this] { return !batches_.empty() || !tasks_.empty(); });
    batches.swap(batches_);
    tasks.swap(tasks_);
    waiting_bytes_ = 0;
    turned_ns_ = clock_.now().ns;
  }
  if (!batches.empty()) take_batches(std::move(batches));
  for (const Task& task : tasks) task();
  // What is asked between two moments of a simulation must not make the controller decide sooner.
  const bool is_commanded = std::exchange(is_commanded_, false);
  const bool advances = simulation_ != nullptr && simulation_->wait_ns() == 0;
  if (simulation_ != nullptr && !advances && !is_commanded) return;
  Status simulated;
  if (advances) simulated = simulate();
  auto orders = controller_.tick(clock_.wall());
  if (!simulated) orders = std::unexpected(simulated.error());
  {
    const std::scoped_lock lock(mutex_);
    trouble_ = orders ? "" : orders.error().text();
    cases_open_ = controller_.open_count();
    if (turned_ns_ - refused_ns_ > refusal_ns) refusal_.clear();
  }
  if (orders)
    for (repair::Order& order : *orders) {
      if (simulation_ != nullptr)
        controller_.outcome(perform(order), clock_.wall());
      else
        dispatch(std::move(order));
    }
  for (Announcement& announcement : controller_.announcements())
    bus_.publish(std::move(announcement));
}

// What the store does not take is lost: a simulation without a store is of no use.
Status ControllerThread::simulate() {
  WEFT_TRY(const Simulation::Turn turn, simulation_->advance(controller_.next_due()));
  if (!turn.batches.empty()) {
    WEFT_TRY(const auto receipts, controller_.accept(turn.batches, clock_.wall()));
    for (const Receipt& receipt : receipts)
      if (!receipt.refused.empty())
        return fail(Errc::value, {}, "a simulated line was refused: " + receipt.refused[0].why, "");
  }
  for (const Command& command : turn.commands)
    static_cast<void>(controller_.command(command, clock_.wall()));
  return {};
}

// At once, on the controller's thread.
repair::Outcome ControllerThread::perform(const repair::Order& order) {
  if (order.kind == OrderKind::notify) {
    repair::Outcome out{.order = order.id};
    for (port::Notifier* notifier : effectors_.notifiers)
      if (const Status sent = notifier->notify(order.notice); !sent) out.error = sent.error();
    return out;
  }
  if (order.kind == OrderKind::snapshot)
    return take_snapshot(
        order, controller_.find_case(order.case_id).value_or(model::Case{.id = order.case_id}),
        controller_.open_cases(), [&](const std::string& taken) {
          controller_.keep_snapshot(order.case_id, taken, clock_.wall());
        });
  return carry_out(order);
}

// All that waited is one commit.
void ControllerThread::take_batches(std::deque<Waiting> waiting) {
  std::vector<Controller::Batch> batches;
  for (Waiting& one : waiting) batches.push_back(std::move(one.batch));
  auto receipts = controller_.accept(batches, clock_.wall());
  {
    const std::scoped_lock lock(mutex_);
    if (!receipts) {
      refusal_ = receipts.error().text();
      refused_ns_ = turned_ns_;
    } else if (std::ranges::any_of(*receipts,
                                   [](const Receipt& r) { return r.acknowledged > r.known; })) {
      refusal_.clear();
    }
  }
  for (std::size_t i = 0; i < waiting.size(); ++i)
    waiting[i].promise.set_value(receipts ? Result<Receipt>(std::move((*receipts)[i]))
                                          : std::unexpected(receipts.error()));
}

// One notice on its way to all notifiers that do not have it.
struct ControllerThread::Round {
  repair::Order order;
  std::size_t left = 0;  // that have not answered; by mutex_
  repair::Outcome outcome;
};

void ControllerThread::notify(repair::Order order) {
  std::vector<std::size_t> to;
  {
    const std::scoped_lock lock(mutex_);
    const auto have = have_.find(order.notice.id);
    for (std::size_t i = 0; i < effectors_.notifiers.size(); ++i)
      if (have == have_.end() || !have->second.contains(i)) to.push_back(i);
  }
  repair::Outcome outcome{.order = order.id};
  // Shared by the threads of the notifiers; the last one tells what became of it.
  const auto round =
      std::make_shared<Round>(Round{std::move(order), to.size(), std::move(outcome)});
  if (to.empty()) controller_.outcome(round->outcome, clock_.wall());
  for (const std::size_t i : to)
    workers_[lane_count + i]->add([this, i, round] {
      notice_done(round, i, effectors_.notifiers[i]->notify(round->order.notice));
    });
}

void ControllerThread::notice_done(const std::shared_ptr<Round>& round, std::size_t notifier,
                                   const Status& sent) {
  const std::string& id = round->order.notice.id;
  {
    const std::scoped_lock lock(mutex_);
    if (sent)
      have_[id].insert(notifier);
    else
      round->outcome.error = sent.error();
    if (--round->left > 0) return;
    if (!round->outcome.error || have_.size() > partial_notices_max) have_.erase(id);
  }
  post([this, round] { controller_.outcome(round->outcome, clock_.wall()); });
}

void ControllerThread::dispatch(repair::Order order) {
  if (order.kind == OrderKind::notify) return notify(std::move(order));
  Worker& worker = *workers_[lane(order.kind)];
  const auto tell = [this](repair::Outcome outcome) {
    post([this, outcome = std::move(outcome)] { controller_.outcome(outcome, clock_.wall()); });
  };
  if (order.kind != OrderKind::snapshot) {
    worker.add([this, order = std::move(order), tell] { tell(carry_out(order)); });
    return;
  }
  auto found = controller_.find_case(order.case_id).value_or(model::Case{.id = order.case_id});
  worker.add([this, order = std::move(order), found = std::move(found),
              open = controller_.open_cases(), tell] {
    tell(take_snapshot(order, found, open, [this, id = order.case_id](const std::string& taken) {
      post([this, id, taken] { controller_.keep_snapshot(id, taken, clock_.wall()); });
    }));
  });
}

// Gives what was taken to `keep`.
repair::Outcome ControllerThread::take_snapshot(
    const repair::Order& order, const model::Case& found, const std::vector<std::string>& open,
    const std::function<void(std::string)>& keep) const {
  repair::Outcome out{.order = order.id};
  auto taken = effectors_.snapshot ? effectors_.snapshot(order, found, open)
                                   : std::unexpected(missing("snapshot collector"));
  if (!taken) {
    out.error = taken.error();
    return out;
  }
  out.note = "its manifest is the document of kind snapshot";
  keep(*std::move(taken));
  return out;
}

repair::Outcome ControllerThread::carry_out(const repair::Order& order) {
  repair::Outcome out{.order = order.id};
  if (order.kind == OrderKind::forecast) {
    if (!effectors_.forecast) {
      out.error = missing("jobs to forecast");
    } else if (auto forecast = effectors_.forecast(order)) {
      out.forecast = *std::move(forecast);
    } else {
      out.error = forecast.error();
    }
  } else if (effectors_.actuator == nullptr) {
    out.error = missing("actuator");
  } else {
    act(order, out);
  }
  return out;
}

void ControllerThread::act(const repair::Order& order, repair::Outcome& out) {
  if (order.kind == OrderKind::look) {
    if (const auto state = effectors_.actuator->state(order.entity))
      out.service = *state;
    else
      out.error = state.error();
  } else if (order.kind == OrderKind::check) {
    if (const auto check = effectors_.actuator->check_flows(order.entity, order.flows))
      out.check = *check;
    else
      out.error = check.error();
  } else if (!may_act(order)) {
    out.error = Error{Errc::infeasible, {}, "cancelled: a guard now forbids this action", "", {}};
  } else if (const Status done = effectors_.actuator->act(order.action); !done) {
    out.error = done.error();
  }
}

bool ControllerThread::may_act(const repair::Order& order) {
  const auto may = [&] { return controller_.may_act(order, clock_.wall()); };
  return simulation_ != nullptr ? may() : ask(may);
}

void ControllerThread::post(Task task) {
  {
    const std::scoped_lock lock(mutex_);
    if (!is_stopping_) {
      tasks_.push_back(std::move(task));
      changed_.notify_all();
      return;
    }
  }
  const std::scoped_lock lock(late_);  // the controller's thread is gone
  task();
}

template <class F>
auto ControllerThread::ask(F&& f) -> decltype(f()) {
  std::promise<decltype(f())> promise;
  auto answer = promise.get_future();
  post([&] { promise.set_value(f()); });
  return answer.get();
}

Result<Receipt> ControllerThread::accept(std::string_view feed, std::vector<std::string> lines,
                                         std::string_view sender) {
  WEFT_TRY(const Feed known, find_feed(feed));
  const std::size_t bytes = bytes_of(lines);
  std::future<Result<Receipt>> receipt;
  {
    const std::scoped_lock lock(mutex_);
    if (is_stopping_) return std::unexpected(stopped());
    if (batches_.size() >= limits_.waiting_batches ||
        (waiting_bytes_ > 0 && waiting_bytes_ + bytes > limits_.waiting_bytes)) {
      ++busy_;
      return Receipt{.state = Receipt::State::busy};
    }
    waiting_bytes_ += bytes;
    batches_.push_back({{known, std::move(lines), std::string(sender)}, {}});
    receipt = batches_.back().promise.get_future();
  }
  changed_.notify_all();
  return receipt.get();
}

Status ControllerThread::command(const Command& command) {
  WEFT_TRY_STATUS(ask([&] {
    is_commanded_ = true;
    return controller_.command(command, clock_.wall());
  }));
  ask([] { return 0; });  // a turn has passed, and with it the commit
  const std::scoped_lock lock(mutex_);
  if (trouble_.empty() && !is_stopping_) return {};
  return fail(Errc::io, {},
              "command accepted but not yet durable: " + (is_stopping_ ? "stopping" : trouble_),
              "check the audit log once the store works");
}

Result<std::string> ControllerThread::sli(Timestamp from, Timestamp to) {
  const std::uint64_t event =
      ask([&] { return controller_.event_before({from.ns - ns_per_minute}); });
  return sli_(from, to, event);
}

Result<std::string> ControllerThread::ledger() {
  return ask([&] { return controller_.ledger(); });
}

operate::health::Conditions ControllerThread::link_conditions() {
  return ask([&] { return controller_.link_conditions(clock_.wall()); });
}

std::vector<model::Entity> ControllerThread::out_of_service() {
  return ask([&] { return controller_.out_of_service(clock_.wall()); });
}

model::EvidenceSet ControllerThread::recent_evidence() {
  return ask([&] { return controller_.recent_evidence(); });
}

Result<std::string> ControllerThread::view(View view) {
  return ask([&] { return controller_.view(view, clock_.wall()); });
}

Result<std::string> ControllerThread::records(const RecordWish& wish) {
  const std::uint64_t event =
      ask([&] { return controller_.event_before({wish.since.ns - ns_per_minute}); });
  return controller_.records(wish, event);
}

Result<std::shared_ptr<const Past>> ControllerThread::past(Timestamp at,
                                                           const IsCancelled& is_cancelled) {
  std::promise<Result<std::shared_ptr<const Past>>> promise;
  {
    std::unique_lock lock(past_mutex_);
    const auto known = std::ranges::find(pasts_, at, [](const auto& past) { return past.first; });
    if (known != pasts_.end()) {
      const Answer answer = known->second;
      lock.unlock();
      return answer.get();
    }
    if (is_reading_past_)
      return fail(Errc::io, {}, "another instant is being read", "try again in a moment");
    is_reading_past_ = true;
    pasts_.emplace_back(at, promise.get_future().share());
    if (pasts_.size() > pasts_max) pasts_.pop_front();
  }
  const auto [now, open] = ask([&] { return std::pair(clock_.wall(), controller_.open_cases()); });
  auto found = controller_.past(at, now, open, is_cancelled);
  const Result<std::shared_ptr<const Past>> out =
      found ? Result<std::shared_ptr<const Past>>(*std::move(found))
            : std::unexpected(found.error());
  promise.set_value(out);
  const std::scoped_lock lock(past_mutex_);
  is_reading_past_ = false;
  if (!out) std::erase_if(pasts_, [&](const auto& past) { return past.first == at; });
  return out;
}

std::string ControllerThread::metrics() {
  std::string out = ask([&] { return controller_.metrics(clock_.wall()); });
  const std::scoped_lock lock(mutex_);
  out += fmt::format(
      "# HELP weft_busy_total Batches rejected because the queue was full.\n# TYPE weft_busy_total "
      "counter\nweft_busy_total {}\n",
      busy_);
  return out;
}

Health ControllerThread::health() {
  const std::scoped_lock lock(mutex_);
  const std::int64_t still_ns = clock_.now().ns - turned_ns_;
  Health out{.is_alive = still_ns < dead_ns,
             .is_ready = trouble_.empty() && refusal_.empty() && !is_stopping_,
             .why = {},
             .cases_open = cases_open_};
  if (!out.is_alive)
    out.why = fmt::format("the main loop has not run for {} ms", still_ns / ns_per_ms);
  else if (!out.is_ready)
    out.why = !trouble_.empty() ? trouble_ : !refusal_.empty() ? refusal_ : "stopping";
  return out;
}

}  // namespace weft::serve
