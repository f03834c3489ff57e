#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>
#include <span>

#include "base/check.hpp"
#include "base/json_text.hpp"
#include "plan/report/finding.hpp"
#include "plan/report/report.hpp"

namespace weft::plan::report {
namespace {

using Json = nlohmann::ordered_json;
using model::Completion;
using model::Dimension;
using model::FabricSummary;
using model::FailureOutcome;
using model::HeatMap;
using model::HotLink;
using model::JobOutcome;
using model::Note;
using model::PacketOutcome;
using model::TierOutcome;
using model::TrainingOutcome;
using model::VariantOutcome;

constexpr int format_version = 1;

// JSON has neither NaN nor infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Four decimals are finer than any screen and keep large maps small.
Json load(double value) { return number(std::round(value * 1e4) / 1e4); }

// One value per dimension; `other`, which only recorded workloads have, where it carries something.
Json by_dimension(auto value_of, auto carries) {
  Json out = Json::object();
  for (std::size_t d = 0; d < model::dimension_count; ++d) {
    const auto dimension = static_cast<Dimension>(d);
    if (dimension == Dimension::other && !carries(d)) continue;
    out[std::string(to_text(dimension))] = value_of(d);
  }
  return out;
}

Json json_of(const HotLink& link) {
  Json flows = Json::array();
  for (const HotLink::Flow& flow : link.flows)
    flows.push_back({{"job", flow.job},
                     {"dimension", to_text(flow.dimension)},
                     {"from", flow.from},
                     {"to", flow.to},
                     {"bytes", number(flow.bytes)}});
  return {{"link", link.link},
          {"load", load(link.load)},
          {"bytes", number(link.bytes)},
          {"flows", std::move(flows)}};
}

Json json_of(const TrainingOutcome::Wait& wait) {
  return {{"rank", wait.rank},
          {"dimension", to_text(wait.dimension)},
          {"seconds", number(wait.seconds)}};
}

Json json_of(const TrainingOutcome::Straggler& straggler) {
  return {{"rank", straggler.rank}, {"factor", number(straggler.factor)}};
}

Json numbers(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double value : values) out.push_back(number(value));
  return out;
}

Json exposed_of(const TrainingOutcome& training) {
  return by_dimension([&](std::size_t d) { return number(training.exposed_s[d]); },
                      [&](std::size_t d) { return training.exposed_s[d] != 0; });
}

// By dimension and distance.
Json distances_of(
    const std::array<std::array<double, model::distance_count>, model::dimension_count>& values) {
  const auto by_distance = [&](std::size_t d) -> Json {
    const auto& [host, rack, zone, cross_zone] = values[d];
    return {{"host", number(host)},
            {"rack", number(rack)},
            {"zone", number(zone)},
            {"cross_zone", number(cross_zone)}};
  };
  return by_dimension(by_distance, [&](std::size_t d) {
    return std::ranges::any_of(values[d], [](double value) { return value != 0; });
  });
}

Json json_of(const HeatMap& map);
Json json_of(const Note& note);
Json json_of(const FailureOutcome& failure);
Json json_of(const PacketOutcome::Tier& tier);
Json json_of(const PacketOutcome::Series& series);
Json json_of(const PacketOutcome::PauseTree& tree);
Json json_of(const VariantOutcome& variant);
Json json_of(const FabricSummary& fabric);

template <class T>
Json list_of(const std::vector<T>& items) {
  Json out = Json::array();
  for (const T& item : items) out.push_back(json_of(item));
  return out;
}

// What a training job has beside the keys of every job; its roofline replaces the collective's.
void add_training(Json& job, const TrainingOutcome& training) {
  job["model"] = training.model;
  job["plan"] = training.plan;
  job["step_time_s"] = number(training.step_time_s);
  job["compute_s"] = number(training.compute_s);
  job["exposed_s"] = exposed_of(training);
  job["idle_s"] = number(training.idle_s);
  job["bubble"] = number(training.bubble);
  job["critical_path"] = {{"compute_s", number(training.critical.compute_s)},
                          {"communication_s", distances_of(training.critical.communication_s)}};
  job["tokens_per_s_per_gpu"] = number(training.tokens_per_s_per_gpu);
  job["tflops_per_gpu"] = number(training.tflops_per_gpu);
  job["mfu"] = number(training.mfu);
  job["memory_bytes"] = number(training.memory_bytes);
  job["roofline_s"] = number(training.roofline_s);
  job["roofline_resource"] = training.roofline_resource;
  job["bytes"] = distances_of(training.bytes);
  job["hottest_links"] = list_of(training.hottest_links);
  job["waits"] = list_of(training.waits);
  job["stragglers"] = list_of(training.stragglers);
  job["step_times_s"] = numbers(training.step_times_s);
  job["start_s"] = number(training.start_s);
  job["bootstrap_s"] = number(training.bootstrap_s);
  job["ingest_s"] = number(training.ingest_s);
  job["ingest_stall_s"] = number(training.ingest_stall_s);
  job["checkpoint_s"] = number(training.checkpoint_s);
  job["checkpoints"] = training.checkpoints;
  job["checkpoint_stall_s"] = number(training.checkpoint_stall_s);
}

// null for a job that came to its end.
Json unfinished_of(const JobOutcome& job) {
  if (!job.unfinished) return nullptr;
  return {{"at_s", number(job.unfinished->at_s)}, {"why", job.unfinished->why}};
}

Json json_of(const JobOutcome& job) {
  Json out = {{"op", job.op},
              {"algorithm", job.algorithm},
              {"placement", job.placement},
              {"gpus", job.gpus},
              {"bytes_per_rank", number(job.bytes_per_rank)},
              {"iterations", job.iterations},
              {"unfinished", unfinished_of(job)},
              {"time_s",
               {{"mean", number(job.time_mean_s)},
                {"min", number(job.time_min_s)},
                {"max", number(job.time_max_s)}}},
              {"algbw_GBps", number(job.algbw_gbyte_s)},
              {"busbw_GBps", number(job.busbw_gbyte_s)},
              {"roofline_s", number(job.roofline_s)},
              {"roofline_busbw_GBps", number(job.roofline_busbw_gbyte_s)},
              {"ratio", number(job.ratio)}};
  if (job.training) add_training(out, *job.training);
  return out;
}

Json json_of(const TierOutcome& tier) {
  return {{"links", tier.links},
          {"mean_load", number(tier.mean_load)},
          {"max_load", number(tier.max_load)},
          {"mmr", number(tier.mmr)},
          {"histogram", tier.histogram}};
}

// How one side of a map is divided.
struct Blocks {
  std::size_t items, per_cell, cells;
  Blocks(std::size_t count, std::size_t cells_max)
      : items(count),
        per_cell(std::max<std::size_t>((count + cells_max - 1) / cells_max, 1)),
        cells((count + per_cell - 1) / per_cell) {}
  std::size_t begin(std::size_t cell) const { return cell * per_cell; }
  std::size_t end(std::size_t cell) const { return std::min(items, begin(cell) + per_cell); }
};

Json names_of(const Blocks& blocks, const std::vector<std::string>& names) {
  Json out = Json::array();
  for (std::size_t cell = 0; cell < blocks.cells; ++cell) {
    const std::string& first = names[blocks.begin(cell)];
    const std::string& last = names[blocks.end(cell) - 1];
    out.push_back(blocks.per_cell == 1 ? first : fmt::format("{} … {}", first, last));
  }
  return out;
}

Json loads_of(const Blocks& rows, const Blocks& columns, std::span<const double> loads) {
  WEFT_CHECK(loads.size() == rows.items * columns.items);
  const auto hottest = [&](std::size_t row, std::size_t column) {
    double most = model::no_number;
    for (std::size_t r = rows.begin(row); r < rows.end(row); ++r)
      for (std::size_t c = columns.begin(column); c < columns.end(column); ++c)
        most = std::fmax(most, loads[r * columns.items + c]);  // ignores no_number
    return most;
  };
  Json out = Json::array();
  for (std::size_t row = 0; row < rows.cells; ++row) {
    Json line = Json::array();
    for (std::size_t column = 0; column < columns.cells; ++column)
      line.push_back(load(hottest(row, column)));
    out.push_back(std::move(line));
  }
  return out;
}

Json json_of(const HeatMap& map) {
  const Blocks rows(map.rows.size(), map_rows_max);
  const Blocks columns(map.columns.size(), map_columns_max);
  return {{"row_role", map.row_role},
          {"column_role", map.column_role},
          {"rows_per_cell", rows.per_cell},
          {"columns_per_cell", columns.per_cell},
          {"rows", names_of(rows, map.rows)},
          {"columns", names_of(columns, map.columns)},
          {"up", loads_of(rows, columns, map.up)},
          {"down", loads_of(rows, columns, map.down)}};
}

Json json_of(const Completion& flows) {
  Json quantiles = Json::array();
  for (const Completion::Point& point : flows.quantiles)
    quantiles.push_back(Json::array({number(point.share), number(point.seconds)}));
  return {{"finished", flows.finished},
          {"unfinished", flows.unfinished},
          {"mean_s", number(flows.mean_s)},
          {"quantiles", std::move(quantiles)}};
}

Json json_of(const Note& note) {
  const bool warns = note.severity == Note::Severity::warning;
  return {{"severity", warns ? "warning" : "info"}, {"text", note.text}};
}

// Readers that lose the order of an object's keys find it in a list beside it.
template <class T>
Json order_of(const std::vector<T>& items) {
  Json out = Json::array();
  for (const T& item : items) out.push_back(item.name);
  return out;
}

template <class T>
Json by_name(const std::vector<T>& items) {
  Json out = Json::object();
  for (const T& item : items) out.emplace(item.name, json_of(item));
  return out;
}

// [upper edge in seconds, pauses] of each bin with some.
Json pause_histogram(const PacketOutcome::Tier& tier) {
  Json out = Json::array();
  for (std::size_t bin = 0; bin < tier.pause_histogram.size(); ++bin)
    if (tier.pause_histogram[bin] > 0)
      out.push_back(Json::array(
          {bin == 0 ? 0 : std::ldexp(1e-12, static_cast<int>(bin)), tier.pause_histogram[bin]}));
  return out;
}

Json json_of(const PacketOutcome::Tier& tier) {
  return {{"packets", tier.packets},
          {"drops", tier.drops},
          {"ecn_marks", tier.ecn_marks},
          {"pauses", tier.pauses},
          {"queue_bytes",
           {{"p50", number(tier.queue_p50_bytes)},
            {"p99", number(tier.queue_p99_bytes)},
            {"max", number(tier.queue_max_bytes)},
            {"histogram", tier.queue_histogram}}},
          {"pause_s",
           {{"p50", number(tier.pause_p50_s)},
            {"p99", number(tier.pause_p99_s)},
            {"histogram_s", pause_histogram(tier)}}},
          {"paused_max_s", number(tier.paused_max_s)},
          {"paused_total_s", number(tier.paused_total_s)}};
}

Json json_of(const PacketOutcome::Series& series) {
  return {{"name", series.name},
          {"unit", series.unit},
          {"time_s", numbers(series.time_s)},
          {"value", numbers(series.value)}};
}

Json json_of(const PacketOutcome::PauseTree& tree) {
  Json ports = Json::array();
  for (const PacketOutcome::PauseTree::Port& port : tree.ports) {
    Json flows = Json::array();
    for (const PacketOutcome::PauseTree::Held& held : port.flows)
      flows.push_back({{"id", held.flow}, {"stopped_s", number(held.stopped_s)}});
    ports.push_back({{"port", port.name},
                     {"depth", port.depth},
                     {"circle", port.circle},
                     {"pauses", port.pauses},
                     {"paused_s", number(port.paused_s)},
                     {"flows", std::move(flows)}});
  }
  return {{"paused_s", number(tree.paused_s)}, {"ports", std::move(ports)}};
}

Json json_of(const PacketOutcome& packet) {
  Json out = {{"transport", packet.transport},
              {"hops", packet.hops},
              {"pause_frames", packet.pause_frames},
              {"ecn_marks", packet.ecn_marks},
              {"cnps", packet.cnps},
              {"drops", packet.drops},
              {"drops_headroom", packet.drops_headroom},
              {"drops_link", packet.drops_link},
              {"drops_control", packet.drops_control},
              {"trims", packet.trims},
              {"retransmissions", packet.retransmissions},
              {"timeouts", packet.timeouts},
              {"buffer_max_bytes", number(packet.buffer_max_bytes)},
              {"payload_bytes",
               {{"sent", number(packet.sent_bytes)},
                {"received", number(packet.received_bytes)},
                {"dropped", number(packet.dropped_bytes)},
                {"in_flight", number(packet.in_flight_bytes)}}},
              {"tier_order", order_of(packet.tiers)},
              {"tiers", by_name(packet.tiers)},
              {"series", list_of(packet.series)},
              {"deadlocks", packet.deadlocks},
              {"storms", packet.storms},
              {"lossless_drops", packet.lossless_drops}};
  if (packet.pause_trees) out["pause_trees"] = list_of(*packet.pause_trees);
  return out;
}

Json json_of(const FailureOutcome& failure) {
  Json flows = Json::array();
  for (const FailureOutcome::Flow& flow : failure.flows)
    flows.push_back({{"from", flow.from},
                     {"to", flow.to},
                     {"qp", flow.qp},
                     {"path_again_s", number(flow.path_again_s)}});
  return {
      {"at_s", number(failure.at_s)},
      {"what", failure.what},
      {"flows_hit", failure.hit},
      {"flows_stranded", failure.stranded},
      {"path_again_s",
       {{"median", number(failure.path_again_p50_s)}, {"max", number(failure.path_again_max_s)}}},
      {"stalled_bytes", number(failure.stalled_bytes)},
      {"lost_bytes", number(failure.lost_bytes)},
      {"lost_packets", failure.lost_packets ? Json(*failure.lost_packets) : Json(nullptr)},
      {"flows", std::move(flows)}};
}

Json json_of(const VariantOutcome& variant) {
  Json out = {{"fabric", json_of(variant.fabric)},
              {"scheme", variant.scheme},
              {"qps", variant.qps},
              {"faults", variant.faults},
              {"job_order", order_of(variant.jobs)},
              {"jobs", by_name(variant.jobs)},
              {"tier_order", order_of(variant.tiers)},
              {"tiers", by_name(variant.tiers)},
              {"heat_maps", list_of(variant.heat_maps)},
              {"flow_completion", json_of(variant.completion)},
              {"failures", list_of(variant.failures)},
              {"notes", list_of(variant.notes)},
              {"digest", variant.digest},
              {"scenario_digest", variant.scenario_digest},
              {"scenario_text", variant.scenario_text}};
  if (variant.packet) out["packet"] = json_of(*variant.packet);
  if (variant.estimate)
    out["estimate"] = {{"share", variant.estimate->share},
                       {"spread", number(variant.estimate->spread)}};
  return out;
}

Json json_of(const FabricSummary& fabric) {
  Json roles = Json::object();
  for (const FabricSummary::Count& count : fabric.roles) roles[count.role] = count.nodes;
  return {{"text", fabric.text},
          {"roles", std::move(roles)},
          {"oversubscription", fabric.oversubscription}};
}

template <class T>
Status check_unique(const std::vector<T>& items, std::string_view kind, const std::string& file) {
  std::set<std::string_view> seen;
  for (const T& item : items)
    if (!seen.insert(item.name).second)
      return fail(Errc::value, {file},
                  fmt::format("two {}s have the name {}", kind, json_string(item.name)),
                  "give each a unique name");
  return {};
}

Status check_names(const Outcome& outcome) {
  WEFT_TRY_STATUS(check_unique(outcome.variants, "variant", outcome.file));
  for (const VariantOutcome& variant : outcome.variants) {
    WEFT_TRY_STATUS(check_unique(variant.jobs, "job", outcome.file));
    WEFT_TRY_STATUS(check_unique(variant.tiers, "tier", outcome.file));
  }
  return {};
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string json_text(const PacketOutcome& packet) { return dump(json_of(packet)); }

Result<std::string> json_text(const Outcome& outcome) {
  WEFT_TRY_STATUS(check_names(outcome));
  const Json root = {
      {"format", "weft.run"},
      {"format_version", format_version},
      {"weft_version", outcome.version},
      {"scenario", {{"name", outcome.scenario}, {"file", outcome.file}, {"seed", outcome.seed}}},
      {"engine", outcome.engine},
      {"command", outcome.command},
      {"fabric", outcome.variants.empty() ? Json() : json_of(outcome.variants.front().fabric)},
      {"findings", findings(outcome)},
      {"variant_order", order_of(outcome.variants)},
      {"variants", by_name(outcome.variants)}};
  return dump(root) + "\n";
}

}  // namespace weft::plan::report
