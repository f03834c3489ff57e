#include "app/agent/agent_state.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace weft::app {

using adapt::live::LogPlace;
using nlohmann::json;

AgentState AgentState::fresh(std::string origin, Timestamp now) {
  constexpr std::int64_t us = 1'000, ms = 1'000'000;
  return {.origin = std::move(origin),
          .sequence = static_cast<std::uint64_t>(std::max<std::int64_t>(now.ns, 0) / us),
          .generation = static_cast<std::uint64_t>(std::max<std::int64_t>(now.ns, 0) / ms),
          .logs = {}};
}

std::optional<AgentState> AgentState::read(std::string_view text) {
  const json all = json::parse(text, nullptr, false);
  AgentState out;
  try {
    out.origin = all.at("origin").get<std::string>();
    out.sequence = all.at("sequence").get<std::uint64_t>();
    out.generation = all.at("generation").get<std::uint64_t>();
    for (const auto& [path, places] : all.at("logs").items())
      for (const json& place : places)
        out.logs[path].push_back({.device = place.at(0).get<std::uint64_t>(),
                                  .inode = place.at(1).get<std::uint64_t>(),
                                  .generation = place.at(2).get<std::uint64_t>(),
                                  .offset = place.at(3).get<std::uint64_t>()});
    for (const json& speed : all.value("speeds", json::array()))
      out.speeds[speed.at(0).get<double>()] = speed.at(1).get<double>();
  } catch (const json::exception&) {
    return std::nullopt;
  }
  return out;
}

std::string AgentState::text() const {
  json held = json::object();
  for (const auto& [path, places] : logs)
    for (const LogPlace& place : places)
      held[path].push_back({place.device, place.inode, place.generation, place.offset});
  json rates = json::array();
  for (const auto& [nominal, most] : speeds) rates.push_back({nominal, most});
  const json all{{"origin", origin},
                 {"sequence", sequence},
                 {"generation", generation},
                 {"logs", std::move(held)},
                 {"speeds", std::move(rates)}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::uint64_t OpenRecords::add(std::size_t log, const LogPlace& place, std::string id,
                               std::string json) {
  rows_.emplace(++last_, Row{log, place, std::move(json)});
  open_[log].emplace(Key{place.generation, place.offset}, place);
  ids_.push_back(std::move(id));
  if (ids_.size() > ids_max) ids_.pop_front();
  return last_;
}

std::string OpenRecords::take(std::uint64_t serial) {
  const auto row = rows_.find(serial);
  if (row == rows_.end()) return {};
  std::string out = std::move(row->second.json);
  const LogPlace& place = row->second.place;
  open_[row->second.log].erase(Key{place.generation, place.offset});
  rows_.erase(row);
  return out;
}

void OpenRecords::fold(std::uint64_t serial, std::int64_t until_ns) {
  folded_.push_back({until_ns, serial});
}

void OpenRecords::forget_folded(std::int64_t now_ns) {
  for (; !folded_.empty() && folded_.front().until_ns <= now_ns; folded_.pop_front())
    take(folded_.front().serial);
}

std::string OpenRecords::id_of(std::uint64_t serial) const {
  const std::uint64_t first = last_ + 1 - ids_.size();
  return serial < first || serial > last_ ? std::string{} : ids_[serial - first];
}

std::deque<LogPlace> OpenRecords::places(std::size_t log, const adapt::live::LogTail& tail) const {
  std::deque<LogPlace> out;
  for (auto at = open_[log].begin(); at != open_[log].end();
       at = open_[log].lower_bound({at->first.first + 1, 0}))
    out.push_back(at->second);
  const LogPlace& next = tail.place();
  if (next.generation != 0 && (out.empty() || out.back().generation != next.generation))
    out.push_back(next);
  out.insert(out.end(), tail.places().begin(), tail.places().end());
  return out;
}

}  // namespace weft::app
