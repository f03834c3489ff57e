#include "workload/collective/messages.hpp"

#include <fmt/format.h>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {

MessageIndex MessageWriter::add(const Spec& spec, std::span<const std::uint32_t> blocks,
                                std::initializer_list<MessageIndex> after) {
  return add(spec, blocks, std::span(after.begin(), after.size()));
}

MessageIndex MessageWriter::add(const Spec& spec, std::span<const std::uint32_t> blocks,
                                std::span<const MessageIndex> after) {
  overflow_ = overflow_ || list_.messages_.size() >= expand_message_max ||
              list_.after_.size() + after.size() > expand_table_max ||
              list_.blocks_.size() + blocks.size() > expand_table_max;
  if (overflow_) return no_message;

  const auto mark = [](const std::vector<std::uint32_t>& table) {
    return static_cast<std::uint32_t>(table.size());
  };
  Message message{.from = ranks_[spec.from],
                  .to = ranks_[spec.to],
                  .from_rank = spec.from,
                  .to_rank = spec.to,
                  .bytes = spec.bytes,
                  .action = spec.action,
                  .forwards = spec.forwards,
                  .after = {mark(list_.after_), 0},
                  .blocks = {mark(list_.blocks_), static_cast<std::uint32_t>(blocks.size())}};
  for (const MessageIndex m : after)
    if (m != no_message) list_.after_.push_back(m);
  message.after.count = mark(list_.after_) - message.after.first;
  list_.blocks_.insert(list_.blocks_.end(), blocks.begin(), blocks.end());
  list_.messages_.push_back(message);
  return static_cast<MessageIndex>(list_.messages_.size() - 1);
}

void MessageWriter::send(const Spec& spec, std::span<const std::uint32_t> blocks) {
  const MessageIndex index = add(spec, blocks, std::span<const MessageIndex>(pending_[spec.from]));
  if (index != no_message) step_.push_back(index);
}

void MessageWriter::end_step() {
  for (const MessageIndex m : step_) pending_[list_.messages_[m].from_rank].clear();
  for (const MessageIndex m : step_) {
    pending_[list_.messages_[m].from_rank].push_back(m);
    pending_[list_.messages_[m].to_rank].push_back(m);
  }
  step_.clear();
}

Result<MessageList> expand_messages(const Fabric& fabric, const Request& request,
                                    std::uint32_t pipeline_chunks) {
  constexpr std::uint32_t chunks_max = 65'536;
  if (pipeline_chunks == 0 || pipeline_chunks > chunks_max)
    return fail(Errc::value, {}, fmt::format("{} pipeline chunks", pipeline_chunks),
                fmt::format("give 1 to {}", chunks_max));
  WEFT_TRY(Job job, make_job(fabric, request));
  job.chunks = pipeline_chunks;
  WEFT_TRY(const Algorithm* algorithm, choose_algorithm(job));
  if (algorithm->expand == nullptr)
    return fail(
        Errc::unsupported, {},
        fmt::format("{} reduces inside switches and cannot be expanded into messages between GPUs",
                    algorithm->name));
  if (job.size() > expand_rank_max)
    return fail(Errc::infeasible, {},
                fmt::format("{} ranks are too many to expand message by message", job.size()),
                fmt::format("use at most {}", expand_rank_max));
  WEFT_TRY([[maybe_unused]] const std::vector<Stage> possible, algorithm->build(job));

  MessageWriter writer(request.ranks);
  algorithm->expand(job, writer);
  if (writer.overflow())
    return fail(Errc::infeasible, {},
                fmt::format("{} over {} ranks and {} channels exceeds {} messages", algorithm->name,
                            job.size(), job.channels, expand_message_max),
                "use fewer ranks, channels or pipeline chunks");
  return writer.take();
}

}  // namespace weft::workload
