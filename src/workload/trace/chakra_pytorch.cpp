#include "workload/trace/chakra_pytorch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/text.hpp"
#include "workload/trace/json_text.hpp"
#include "workload/trace/load.hpp"

namespace weft::workload {
namespace {

using Json = nlohmann::json;

constexpr int tensor_depth_max = 8;

// What record_param_comms calls a collective, and its comm_type.
struct Call {
  std::string_view name;
  std::int64_t comm_type;
};
constexpr std::array calls{
    Call{"allreduce", 0},
    Call{"all_reduce", 0},
    Call{"reduce", 1},
    Call{"all_gather", 2},
    Call{"allgather", 2},
    Call{"_allgather_base", 2},
    Call{"gather", 3},
    Call{"scatter", 4},
    Call{"broadcast", 5},
    Call{"all_to_all", 6},
    Call{"all_to_allv", 6},
    Call{"reduce_scatter", 7},
    Call{"_reduce_scatter_base", 7},
    Call{"barrier", 9},
};

// Bytes of the tensors [id, storage, offset, elements, bytes per element, device] in nested lists.
std::int64_t tensor_bytes_of(const Json& value, int depth) {
  if (!value.is_array() || depth > tensor_depth_max) return 0;
  constexpr std::int64_t elements_max = std::int64_t{1} << 50;
  const auto whole = [](const Json& number) { return number.is_number_integer() && number >= 0; };
  if (value.size() == 6 && value[5].is_string() && whole(value[3]) && whole(value[4]))
    return value[3] < elements_max && value[4] <= 64
               ? value[3].get<std::int64_t>() * value[4].get<std::int64_t>()
               : 0;
  std::int64_t sum = 0;
  for (const Json& item : value)
    sum = std::min(sum + tensor_bytes_of(item, depth + 1), std::int64_t{1} << 56);
  return sum;
}

class PytorchReader {
 public:
  PytorchReader(const std::string& file) : file_(file) {}

  Result<ChakraTrace> read(const Json& json) {
    const auto list = json.find("nodes");
    if (list == json.end() || !list->is_array() || list->empty())
      return wrong("the list of nodes is missing");
    if (list->size() > chakra_nodes_max) return wrong("more than 16 million nodes");
    for (const Json& node : *list) find_groups(node);
    for (const Json& node : *list) WEFT_TRY_STATUS(add_node(node));
    chain_threads();
    WEFT_TRY_STATUS(index_nodes(trace_, file_));
    return std::move(trace_);
  }

 private:
  // Order of a node on its thread.
  struct Turn {
    std::uint64_t thread, start;
    std::uint32_t node;
    auto key() const { return std::tuple(thread, start, node); }
  };

  std::unexpected<Error> wrong(std::string what) const {
    return fail(Errc::value, {file_}, std::move(what), "use an execution trace written by PyTorch");
  }

  static const Json* values(const Json& node) {
    const auto inputs = node.find("inputs");
    if (inputs == node.end()) return nullptr;
    if (inputs->is_array()) return &*inputs;
    const auto list = inputs->is_object() ? inputs->find("values") : inputs->end();
    return inputs->is_object() && list != inputs->end() && list->is_array() ? &*list : nullptr;
  }

  static std::uint64_t attribute(const Json& node, std::string_view name, std::uint64_t fallback) {
    const auto number = [&](const Json& value) {
      return value.is_number_unsigned() ? value.get<std::uint64_t>() : fallback;
    };
    if (const auto plain = node.find(name); plain != node.end()) return number(*plain);
    const auto list = node.find("attrs");
    if (list == node.end() || !list->is_array()) return fallback;
    for (const Json& item : *list)
      if (item.is_object() && item.contains("value") && item.value("name", Json{}) == name)
        return number(item["value"]);
    return fallback;
  }

  // The text of a process_group:init node; calls name groups by their backend's number.
  static const std::string* group_text(const Json& node) {
    const Json* list = node.is_object() ? values(node) : nullptr;
    if (list == nullptr || list->empty() || !(*list)[0].is_string()) return nullptr;
    const auto& text = (*list)[0].get_ref<const std::string&>();
    return text.contains("pg_name") ? &text : nullptr;
  }

  void find_groups(const Json& node) {
    const std::string* text = group_text(node);
    if (text == nullptr) return;
    if (is_nested_too_deep(*text)) return;  // add_embedded_groups() looks at the text again
    const Json groups = Json::parse(*text);
    if (!groups.is_array()) return;
    for (const Json& group : groups)
      if (group.is_object() && group.contains("backend_id") && group.contains("pg_name") &&
          group["backend_id"].is_number_unsigned() && group["pg_name"].is_string())
        group_names_[group["backend_id"].get<std::uint64_t>()] =
            group["pg_name"].get<std::string>();
  }

  std::string_view keep(const std::string& text) { return trace_.made_texts.emplace_back(text); }

  Status add_node(const Json& json) {
    const std::size_t index = trace_.nodes.size();
    if (!json.is_object() || !json.contains("id") || !json["id"].is_number_unsigned() ||
        !json.contains("name") || !json["name"].is_string())
      return wrong(fmt::format("element {} of the nodes has no id or no name", index));
    ChakraNode node{.id = json["id"].get<std::uint64_t>(), .at = index};
    node.name = keep(json["name"].get_ref<const std::string&>());
    node.type = ChakraType::compute;
    if (const std::string* text = group_text(json)) {
      node.type = ChakraType::metadata;
      node.inputs = keep(*text);
    } else if (node.name == "record_param_comms") {
      if (const Json* list = values(json)) read_call(*list, node);
    }
    turns_.push_back({attribute(json, "tid", 0), attribute(json, "rf_id", node.id),
                      static_cast<std::uint32_t>(index)});
    trace_.nodes.push_back(node);
    return {};
  }

  // [tensors, sequence number, group, rank, "all_gather", ...]; others ("wait") move nothing.
  void read_call(const Json& list, ChakraNode& node) {
    for (const Json& item : list) {
      if (item.is_string()) {
        const auto call = std::ranges::find(calls, item.get_ref<const std::string&>(), &Call::name);
        if (call == calls.end()) return;
        node.type = ChakraType::collective;
        node.comm_type = call->comm_type;
        node.comm_size = tensor_bytes_of(list[0], 0);
      } else if (item.is_number_unsigned()) {
        const auto group = group_names_.find(item.get<std::uint64_t>());
        if (group != group_names_.end()) node.group = group->second;
      }
    }
    if (!node.group.empty()) node.group = keep(std::string(node.group));
  }

  void chain_threads() {
    std::ranges::sort(turns_, {}, &Turn::key);
    for (std::size_t i = 1; i < turns_.size(); ++i) {
      if (turns_[i].thread != turns_[i - 1].thread) continue;
      ChakraNode& node = trace_.nodes[turns_[i].node];
      node.data_first = static_cast<std::uint32_t>(trace_.data.size());
      node.data_count = 1;
      trace_.data.push_back(trace_.nodes[turns_[i - 1].node].id);
    }
  }

  const std::string& file_;
  ChakraTrace trace_;
  std::map<std::uint64_t, std::string> group_names_;  // by backend
  std::vector<Turn> turns_;
};

}  // namespace

bool is_pytorch_trace(std::string_view content) {
  const std::string_view head = content.substr(0, 4096);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '{' && head.contains("\"schema\"");
}

Result<ChakraTrace> parse_pytorch_trace(std::string_view content, const std::string& file) {
  constexpr const char* hint = "use an execution trace written by PyTorch";
  if (content.size() > trace_json_bytes_max)
    return fail(
        Errc::value, {file},
        fmt::format("JSON trace of {} bytes, more than {}", content.size(), trace_json_bytes_max),
        "record fewer steps, or convert the trace with Chakra's tools");
  if (is_nested_too_deep(content)) return fail(Errc::parse, {file}, json_too_deep, hint);
  try {
    return PytorchReader(file).read(Json::parse(content));
  } catch (const Json::exception& error) {
    return fail(Errc::parse, {file}, error.what(), hint);
  }
}

}  // namespace weft::workload
