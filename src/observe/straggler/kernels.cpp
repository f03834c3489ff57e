#include "observe/straggler/kernels.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>

#include "observe/straggler/timeline.hpp"

namespace weft::observe::straggler {
namespace {

namespace dom = simdjson::dom;

bool is_communication(std::string_view name) {
  constexpr std::array<std::string_view, 4> marks{"nccl", "rccl", "nvshmem", "deep_ep"};
  return std::ranges::any_of(marks, [&](std::string_view mark) { return name.contains(mark); });
}

class KernelReader {
 public:
  // What is wrong with the event, or "".
  std::string_view add(dom::element event) {
    std::string_view phase, category, name;
    if (event["ph"].get(phase) != simdjson::SUCCESS || phase != "X" ||
        event["cat"].get(category) != simdjson::SUCCESS ||
        event["name"].get(name) != simdjson::SUCCESS)
      return "";
    if (name.starts_with("ProfilerStep#")) steps_.emplace(name);
    if (category != "kernel" && category != "gpu_memcpy" && category != "gpu_memset") return "";
    double start = 0, length = 0;
    std::int64_t device = 0, stream = 0;
    const auto is_time = [](double us) { return std::abs(us) < 1e18; };
    if (event["ts"].get(start) != simdjson::SUCCESS ||
        event["dur"].get(length) != simdjson::SUCCESS || !is_time(start) || !is_time(length) ||
        length < 0)
      return "\"ts\" and \"dur\" of an event of a GPU must be microseconds";
    if (event["pid"].get(device) != simdjson::SUCCESS ||
        event["tid"].get(stream) != simdjson::SUCCESS)
      return "\"pid\" and \"tid\" of an event of a GPU must be its device and its stream";
    out_.kernels.push_back({std::string(name), device, stream, start / 1e6, (start + length) / 1e6,
                            is_communication(name)});
    return "";
  }

  KernelTrace finish() {
    std::ranges::sort(out_.kernels, {}, [](const Kernel& k) {
      return std::tuple(k.device, k.start_s, k.end_s, k.stream, std::string_view(k.name));
    });
    out_.steps = std::max<std::size_t>(steps_.size(), 1);
    return std::move(out_);
  }

 private:
  KernelTrace out_;
  std::set<std::string, std::less<>> steps_;  // names: an annotation is there once per thread
};

// How long at least one interval is open; they come by start.
class Covered {
 public:
  void add(double start, double end) {
    if (start > until_)
      sum_ += end - start;
    else if (end > until_)
      sum_ += end - until_;
    until_ = std::max(until_, end);
  }
  double sum() const { return sum_; }
  double until() const { return until_; }

 private:
  double sum_ = 0, until_ = -HUGE_VAL;
};

}  // namespace

Result<KernelTrace> read_kernels(std::string& content, const std::string& file) {
  const auto refuse = [&](std::string_view what) {
    return fail(Errc::parse, {file, 0, 0}, std::string(what),
                "use what torch.profiler's export_chrome_trace writes");
  };
  KernelReader reader;
  try {
    dom::parser parser;
    content.reserve(content.size() + json_padding);
    dom::element document = parser.parse(content.data(), content.size(), false);
    if (document.is_object()) document = document["traceEvents"];
    std::size_t number = 0;
    for (const dom::element event : dom::array(document)) {
      if (const std::string_view wrong = reader.add(event); !wrong.empty())
        return refuse(fmt::format("event {}: {}", number, wrong));
      ++number;
    }
  } catch (const simdjson::simdjson_error& error) {
    return refuse(error.what());
  }
  KernelTrace out = reader.finish();
  if (out.kernels.empty()) return refuse("no kernels of a GPU in this trace");
  return out;
}

KernelTimes times_of(const KernelTrace& trace) {
  KernelTimes out;
  std::size_t devices = 0;
  for (std::size_t at = 0; at < trace.kernels.size();) {
    const std::int64_t device = trace.kernels[at].device;
    const double start = trace.kernels[at].start_s;
    Covered all, compute;
    for (; at < trace.kernels.size() && trace.kernels[at].device == device; ++at) {
      const Kernel& k = trace.kernels[at];
      all.add(k.start_s, k.end_s);
      if (!k.is_communication) compute.add(k.start_s, k.end_s);
    }
    ++devices;
    out.step_s += all.until() - start;
    out.compute_s += compute.sum();
    out.exposed_s += all.sum() - compute.sum();
    out.idle_s += all.until() - start - all.sum();
  }
  const double each = static_cast<double>(devices * trace.steps);
  for (double* sum : {&out.step_s, &out.compute_s, &out.exposed_s, &out.idle_s}) *sum /= each;
  return out;
}

}  // namespace weft::observe::straggler
