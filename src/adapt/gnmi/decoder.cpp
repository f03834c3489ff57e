#include "adapt/gnmi/decoder.hpp"

#include <gnmi.pb.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "adapt/gnmi/leaf.hpp"
#include "adapt/gnmi/mapper.hpp"
#include "adapt/gnmi/path.hpp"

namespace weft::adapt::gnmi {
namespace {

using Json = nlohmann::json;

// Leaves by which OpenConfig names the entries of the lists that are mapped.
constexpr std::array<std::string_view, 9> list_keys{"name",  "index",        "id",
                                                    "ip",    "interface-id", "neighbor-address",
                                                    "dot1p", "identifier",   "local-discriminator"};

bool is_list_key(std::string_view name) {
  return std::ranges::find(list_keys, name) != list_keys.end();
}

// None where it is no JSON, nests too deep, or is no UTF-8.
std::optional<Json> parse_json(std::string_view text) {
  bool is_deep = false;
  const auto guard = [&](int depth, Json::parse_event_t, const Json&) {
    is_deep |= depth > static_cast<int>(Decoder::json_depth_max);
    return !is_deep;  // what is deeper is not kept
  };
  Json out = Json::parse(text, guard, false);
  if (out.is_discarded() || is_deep) return std::nullopt;
  return out;
}

// A value on the way of a decimal: digits times ten to the power of minus precision.
double decimal(const ::gnmi::Decimal64& value) {
  return static_cast<double>(value.digits()) *
         std::pow(10.0, -static_cast<double>(value.precision()));
}

}  // namespace

struct Decoder::Impl {
  Impl(std::string its_device, MisreadTable& table, LeafSink its_sink)
      : device(std::move(its_device)),
        sink(std::move(its_sink)),
        mapper(device, table),
        misread(table) {}

  std::string device;
  LeafSink sink;
  Mapper mapper;
  MisreadTable& misread;
  DecodeCounts counts;

  // Where we are in the tree. Views are of the message or of `old_elements`.
  std::string path;
  std::vector<std::size_t> path_ends;  // of `path` before each element
  std::vector<std::string_view> elements;
  std::vector<PathKey> keys;
  std::vector<PathElement> old_elements;
  Timestamp t;
  std::vector<port::Sample>* out = nullptr;

  struct Place {
    std::size_t elements, keys;
  };
  Place place() const { return {elements.size(), keys.size()}; }

  bool push(std::string_view name) {
    name = without_module(name);
    if (name.empty() || elements.size() == elements_max || path.size() > path_bytes_max)
      return false;
    path_ends.push_back(path.size());
    if (!path.empty()) path += '/';
    path += name;
    elements.push_back(name);
    return true;
  }
  void back_to(const Place& before) {
    if (before.elements < elements.size()) path.resize(path_ends[before.elements]);
    path_ends.resize(before.elements);
    elements.resize(before.elements);
    keys.resize(before.keys);
  }

  bool push_path(const ::gnmi::Path& from);
  bool push_old_path(const ::gnmi::Path& from);
  void take(const ::gnmi::Notification& message, Timestamp now);
  void take_update(const ::gnmi::Update& update);
  void take_value(const ::gnmi::TypedValue& value);
  void take_old_value(const ::gnmi::Value& value);
  void take_json(std::string_view text);
  void walk(const Json& json);
  void walk_entry(const Json& entry);
  void walk_members(const Json& object);
  void leaf(const Value& value) {
    ++counts.leaves;
    const Leaf one{path, elements, keys, value};
    if (sink)
      sink(device, one);
    else
      mapper.take(one, t, *out);
  }
};

bool Decoder::Impl::push_path(const ::gnmi::Path& from) {
  if (from.elem().empty()) return push_old_path(from);
  for (const auto& element : from.elem()) {
    if (!push(element.name())) return false;
    const std::size_t first = keys.size();
    for (const auto& [name, value] : element.key())
      keys.push_back({elements.back(), without_module(name), value});
    // The map has no order of its own.
    std::sort(keys.begin() + static_cast<std::ptrdiff_t>(first), keys.end(),
              [](const PathKey& a, const PathKey& b) { return a.name < b.name; });
    if (keys.size() > elements_max) return false;
  }
  return true;
}

bool Decoder::Impl::push_old_path(const ::gnmi::Path& from) {
  if (from.element_size() > static_cast<int>(elements_max)) return false;
  for (const std::string& text : from.element()) {
    if (text.size() > path_bytes_max || old_elements.size() == 2 * elements_max) return false;
    auto element = parse_path_element({text, {}});
    if (!element) return false;
    const PathElement& kept = old_elements.emplace_back(std::move(*element));
    if (!push(kept.name)) return false;
    for (const auto& [name, value] : kept.keys)
      keys.push_back({elements.back(), without_module(name), value});
    if (keys.size() > elements_max) return false;
  }
  return true;
}

void Decoder::Impl::take(const ::gnmi::Notification& message, Timestamp now) {
  ++counts.notifications;
  t = {message.timestamp()};
  if (t.ns < now.ns - clock_error_ns_max || t.ns > now.ns + clock_error_ns_max) {
    ++counts.wrong_times;
    t = now;
  }
  old_elements.clear();
  old_elements.reserve(2 * elements_max);  // views are of them
  back_to({0, 0});
  if (!push_path(message.prefix())) return misread.add(path, Misread::bad_path);
  const Place prefix = place();
  const std::size_t old_prefix = old_elements.size();
  const auto each = [&](const ::gnmi::Path& at, const auto& use) {
    if (push_path(at))
      use();
    else
      misread.add(path, Misread::bad_path);
    back_to(prefix);
    old_elements.resize(old_prefix);
  };
  for (const ::gnmi::Path& gone : message.delete_())
    each(gone, [&] {
      ++counts.deletes;
      mapper.forget(elements, keys);
    });
  for (const ::gnmi::Update& update : message.update())
    each(update.path(), [&] { take_update(update); });
}

void Decoder::Impl::take_update(const ::gnmi::Update& update) {
  ++counts.updates;
  counts.duplicates += update.duplicates();
  if (update.has_val())
    take_value(update.val());
  else
    take_old_value(update.value());
}

void Decoder::Impl::take_value(const ::gnmi::TypedValue& value) {
  using Kind = ::gnmi::TypedValue;
  switch (value.value_case()) {
    case Kind::kStringVal:
      return leaf(std::string_view(value.string_val()));
    case Kind::kIntVal:
      return leaf(std::int64_t{value.int_val()});
    case Kind::kUintVal:
      return leaf(std::uint64_t{value.uint_val()});
    case Kind::kBoolVal:
      return leaf(value.bool_val());
    case Kind::kFloatVal:
      return leaf(static_cast<double>(value.float_val()));
    case Kind::kDoubleVal:
      return leaf(value.double_val());
    case Kind::kDecimalVal:
      return leaf(decimal(value.decimal_val()));
    case Kind::kAsciiVal:
      return leaf(std::string_view(value.ascii_val()));
    case Kind::kJsonVal:
      return take_json(value.json_val());
    case Kind::kJsonIetfVal:
      return take_json(value.json_ietf_val());
    case Kind::kBytesVal:
    case Kind::kProtoBytes:
    case Kind::kLeaflistVal:
    case Kind::VALUE_NOT_SET:
      break;
  }
  misread.add(path, Misread::bad_encoding);
}

void Decoder::Impl::take_old_value(const ::gnmi::Value& value) {
  if (value.type() == ::gnmi::JSON || value.type() == ::gnmi::JSON_IETF)
    return take_json(value.value());
  misread.add(path, Misread::bad_encoding);
}

void Decoder::Impl::take_json(std::string_view text) {
  const auto json = parse_json(text);
  if (!json) return misread.add(path, Misread::bad_json);
  // Some targets put the last element of the path around the value once more.
  if (json->is_object() && json->size() == 1 && !elements.empty() &&
      without_module(json->begin().key()) == elements.back())
    return walk(json->front());
  walk(*json);
}

void Decoder::Impl::walk(const Json& json) {
  switch (json.type()) {
    case Json::value_t::object:
      return walk_members(json);
    case Json::value_t::array:
      for (const Json& entry : json) walk_entry(entry);
      return;
    case Json::value_t::string:
      return leaf(std::string_view(json.get_ref<const std::string&>()));
    case Json::value_t::boolean:
      return leaf(json.get<bool>());
    case Json::value_t::number_integer:
      return leaf(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return leaf(json.get<std::uint64_t>());
    case Json::value_t::number_float:
      return leaf(json.get<double>());
    default:  // null stands for a leaf without a value
      return;
  }
}

void Decoder::Impl::walk_entry(const Json& entry) {
  // A list of plain values, of which no metric is made, or one that has no name.
  if (!entry.is_object() || elements.empty()) return misread.add(path, Misread::unmapped);
  const Place before = place();
  std::array<std::string, list_keys.size()> numbers;  // views are of them
  std::size_t count = 0;
  for (const auto& [name, value] : entry.items()) {
    if (!is_list_key(without_module(name)) || count == numbers.size()) continue;
    if (value.is_string())
      keys.push_back({elements.back(), without_module(name), value.get_ref<const std::string&>()});
    else if (value.is_number_integer())
      keys.push_back({elements.back(), without_module(name), numbers[count++] = value.dump()});
  }
  walk_members(entry);
  back_to(before);
}

void Decoder::Impl::walk_members(const Json& object) {
  for (const auto& [name, value] : object.items()) {
    // An entry repeats its keys as leaves beside its containers.
    if (!value.is_structured() && is_list_key(without_module(name)) && !elements.empty() &&
        elements.back() != "state")
      continue;
    const Place before = place();
    if (push(name))
      walk(value);
    else
      misread.add(path, Misread::bad_path);
    back_to(before);
  }
}

Decoder::Decoder(std::string device, MisreadTable& misread, LeafSink sink)
    : impl_(std::make_unique<Impl>(std::move(device), misread, std::move(sink))) {
  // What targets send must not reach standard error by way of a library's complaints.
  google::protobuf::SetLogHandler(nullptr);
}
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;
Decoder::~Decoder() = default;

Decoder::Said Decoder::take(const ::gnmi::SubscribeResponse& response, Timestamp now,
                            std::vector<port::Sample>& out) {
  const std::size_t before = out.size();
  impl_->out = &out;
  Said said = Said::nothing;
  switch (response.response_case()) {
    case ::gnmi::SubscribeResponse::kUpdate:
      impl_->take(response.update(), now);
      said = Said::update;
      break;
    case ::gnmi::SubscribeResponse::kSyncResponse:
      impl_->mapper.synced(out);
      said = Said::sync;
      break;
    case ::gnmi::SubscribeResponse::kError:
      said = Said::error;
      break;
    case ::gnmi::SubscribeResponse::RESPONSE_NOT_SET:
      break;
  }
  impl_->counts.samples += out.size() - before;
  return said;
}

Result<Decoder::Said> Decoder::take_bytes(std::string_view bytes, Timestamp now,
                                          std::vector<port::Sample>& out) {
  ::gnmi::SubscribeResponse response;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !response.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail(Errc::parse, {}, "the bytes are not a gNMI response");
  return take(response, now, out);
}

void Decoder::reset() { impl_->mapper.reset(); }

const DecodeCounts& Decoder::counts() const { return impl_->counts; }

}  // namespace weft::adapt::gnmi
