#include "observe/straggler/timeline.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "base/text.hpp"

namespace weft::observe::straggler {
namespace {

namespace dom = simdjson::dom;

constexpr std::array<std::string_view, kind_count> names{"backward-compute",
                                                         "backward-recv",
                                                         "backward-send",
                                                         "embedding-grads-all-reduce",
                                                         "forward-compute",
                                                         "forward-recv",
                                                         "forward-send",
                                                         "gc",
                                                         "grads-reduce-scatter",
                                                         "layernorm-grads-all-reduce",
                                                         "optimizer",
                                                         "optimizer-clip-main-grad",
                                                         "params-all-gather"};
static_assert(std::ranges::is_sorted(names));

constexpr std::int64_t number_max = 1'000'000;  // of a stage, replica or sequence

struct Event {
  std::int64_t step, replica;
  Op op;
  double start_s, end_s;
  auto key() const { return std::tuple(step, replica, op); }
};

// What a reader throws inside of this file.
struct Unfit {
  std::string what;
};

std::int64_t whole(dom::element object, const char* key) {
  std::int64_t out = 0;
  if (object[key].get(out) != simdjson::SUCCESS || std::abs(out) > number_max)
    throw Unfit{
        fmt::format("{} is missing or not a whole number up to {}", quote(key), number_max)};
  return out;
}
double microseconds(dom::element object, const char* key) {
  double out = 0;
  if (object[key].get(out) != simdjson::SUCCESS || !(std::abs(out) < 1e18))
    throw Unfit{fmt::format("{} is missing or not a time in microseconds", quote(key))};
  return out;
}
std::string_view text_of(dom::element object, const char* key) {
  std::string_view out;
  if (object[key].get(out) != simdjson::SUCCESS)
    throw Unfit{fmt::format("{} is missing or not a text", quote(key))};
  return out;
}

// "PP rank 3, ...".
std::optional<std::uint32_t> stage_in(std::string_view name) {
  constexpr std::string_view head = "PP rank ";
  if (!name.starts_with(head)) return std::nullopt;
  std::uint32_t stage = 0;
  const auto [end, error] =
      std::from_chars(name.data() + head.size(), name.data() + name.size(), stage);
  if (error != std::errc() || stage > number_max) return std::nullopt;
  return stage;
}

class Reader {
 public:
  void add(dom::element event) {
    const std::string_view phase = text_of(event, "ph");
    if (phase == "M") return add_thread(event);
    if (phase != "X" && phase != "B") return;
    const std::string_view name = text_of(event, "name");
    const auto kind = std::ranges::lower_bound(names, name);
    if (phase == "B" && kind != names.end() && *kind == name)
      throw Unfit{
          fmt::format("{} begins and ends in two events (\"ph\" B and E); write it as one "
                      "(X, with \"dur\")",
                      quote(name))};
    if (phase == "B" || kind == names.end() || *kind != name) {
      ++unknown_[std::string(name)];
      return;
    }
    const dom::element args = event["args"];
    if (std::int64_t chunk = 0; args["model_chunk"].get(chunk) == simdjson::SUCCESS && chunk > 0)
      throw Unfit{"has model chunks: interleaved pipelines are not supported"};
    const std::pair thread(whole(event, "pid"), whole(event, "tid"));
    const std::int64_t seq = whole(args, "seq_id");
    const double start = microseconds(event, "ts"), duration = microseconds(event, "dur");
    if (seq < 0 || duration < 0) throw Unfit{"\"seq_id\" or \"dur\" is negative"};
    threads_.push_back(thread);
    events_.push_back(
        {whole(args, "step"),
         thread.first,
         {0, static_cast<Kind>(kind - names.begin()), static_cast<std::uint32_t>(seq)},
         start / 1e6,
         (start + duration) / 1e6});
  }

  Timeline finish() {
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const auto stage = stages_.find(threads_[i]);
      if (stage == stages_.end())
        throw Unfit{fmt::format("thread {} of process {} has no name \"PP rank ...\"",
                                threads_[i].second, threads_[i].first)};
      events_[i].op.stage = stage->second;
    }
    std::ranges::sort(events_, {}, &Event::key);
    const auto twice = std::ranges::adjacent_find(events_, {}, &Event::key);
    if (twice != events_.end())
      throw Unfit{
          fmt::format("step {} of replica {} has {} twice; give the timeline of one "
                      "tensor-parallel rank",
                      twice->step, twice->replica, text(twice->op))};
    return collect();
  }

 private:
  void add_thread(dom::element event) {
    if (text_of(event, "name") != "thread_name") return;
    if (const auto stage = stage_in(text_of(event["args"], "name")))
      stages_[{whole(event, "pid"), whole(event, "tid")}] = *stage;
  }

  // Events are sorted by step, replica and operation.
  Timeline collect() const {
    Timeline out;
    if (events_.empty()) throw Unfit{"has no operation of a training step"};
    for (const Event& e : events_) {
      if (out.steps.empty() || out.steps.back() != e.step) out.steps.push_back(e.step);
      if (e.step == out.steps.front() && (out.replicas.empty() || out.replicas.back() != e.replica))
        out.replicas.push_back(e.replica);
      if (e.step == out.steps.front() && e.replica == out.replicas.front()) out.ops.push_back(e.op);
      out.stage_count = std::max(out.stage_count, e.op.stage + 1);
    }
    std::uint32_t stages = 0;  // operations are sorted by stage
    for (const Op& op : out.ops) {
      if (op.stage > stages)
        throw Unfit{
            fmt::format("stage {} has operations, and stage {} has none", op.stage, stages)};
      stages = op.stage + 1;
    }
    std::size_t at = 0;
    for (const std::int64_t step : out.steps)
      for (const std::int64_t replica : out.replicas)
        for (const Op& op : out.ops) {
          const Event* e = at < events_.size() ? &events_[at] : nullptr;
          if (e == nullptr || e->key() != std::tuple(step, replica, op))
            mismatch(e, step, replica, op);
          out.start_s.push_back(e->start_s);
          out.end_s.push_back(e->end_s);
          ++at;
        }
    if (at < events_.size()) mismatch(&events_[at], INT64_MAX, 0, {});
    for (const auto& [name, count] : unknown_)
      out.notes.push_back(fmt::format(
          "{} spans {} are not an operation of a step and were left out", count, quote(name)));
    return out;
  }

  static std::string text(const Op& op) {
    return fmt::format("{} {} of stage {}", to_text(op.kind), op.seq, op.stage);
  }

  // The first difference from the operations of the first worker.
  [[noreturn]] static void mismatch(const Event* found, std::int64_t step, std::int64_t replica,
                                    const Op& op) {
    if (found != nullptr && found->key() < std::tuple(step, replica, op))
      throw Unfit{fmt::format("step {} of replica {} has {}, which the first step does not have",
                              found->step, found->replica, text(found->op))};
    throw Unfit{fmt::format("step {} of replica {} has no {}", step, replica, text(op))};
  }

  std::vector<Event> events_;
  std::vector<std::pair<std::int64_t, std::int64_t>> threads_;  // of events_: process, thread
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> stages_;
  std::map<std::string, std::size_t> unknown_;
};

}  // namespace

std::string_view to_text(Kind kind) { return names[static_cast<std::size_t>(kind)]; }

bool is_communication(Kind kind) {
  return kind != Kind::backward_compute && kind != Kind::forward_compute && kind != Kind::gc &&
         kind != Kind::optimizer;
}

Result<Timeline> read_timeline(std::string& content, const std::string& file) {
  Reader reader;
  std::size_t event = 0;
  bool is_whole = false;
  const auto refuse = [&](std::string_view what) {
    return fail(Errc::parse, {file, 0, 0},
                is_whole ? std::string(what) : fmt::format("event {}: {}", event, what),
                "see docs/commands/straggler.md for the format");
  };
  try {
    dom::parser parser;
    content.reserve(content.size() + json_padding);
    dom::element document = parser.parse(content.data(), content.size(), false);
    if (document.is_object()) document = document["traceEvents"];
    for (const dom::element e : dom::array(document)) {
      reader.add(e);
      ++event;
    }
    is_whole = true;
    return reader.finish();
  } catch (const simdjson::simdjson_error& error) {
    return refuse(error.what());
  } catch (const Unfit& unfit) {
    return refuse(unfit.what);
  }
}

}  // namespace weft::observe::straggler
