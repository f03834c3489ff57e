// Writes Chakra traces and archives for tests.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace weft::workload::test {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
inline std::string number(std::uint32_t field, std::uint64_t value) {
  return varint(field << 3) + varint(value);
}
inline std::string text(std::uint32_t field, std::string_view value) {
  return varint(field << 3 | 2) + varint(value.size()) + std::string(value);
}
inline std::string fixed(std::uint32_t field, std::uint64_t value, std::size_t width) {
  std::string out = varint(field << 3 | (width == 8 ? 1 : 5));
  for (std::size_t i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}
inline std::string framed(std::string_view message) {
  return varint(message.size()) + std::string(message);
}

// Attributes of a node; `kind` is the field of the value (7 int32, 9 int64, 13 uint64, ...).
inline std::string attribute(std::string_view name, const std::string& value) {
  return text(10, text(1, name) + value);
}
inline std::string int64_attribute(std::string_view name, std::int64_t value) {
  return attribute(name, number(9, static_cast<std::uint64_t>(value)));
}
inline std::string gpu() { return attribute("is_cpu_op", number(27, 0)); }

inline std::string metadata(std::string_view rest = {}) {
  return framed(text(1, "0.0.4") + std::string(rest));
}

struct NodeText {
  std::uint64_t id = 0;
  std::string name = {};
  std::uint64_t type = 4;
  std::initializer_list<std::uint64_t> data = {};
  std::initializer_list<std::uint64_t> ctrl = {};
  std::uint64_t micros = 0;
  std::string rest = {};
};
inline std::string node(const NodeText& node) {
  std::string data, ctrl;
  for (const std::uint64_t id : node.data) data += varint(id);
  for (const std::uint64_t id : node.ctrl) ctrl += varint(id);
  std::string out = number(1, node.id) + text(2, node.name) + number(3, node.type);
  if (!ctrl.empty()) out += text(4, ctrl);
  if (!data.empty()) out += text(5, data);
  if (node.micros > 0) out += number(7, node.micros);
  return framed(out + node.rest);
}

// A collective of kernels: comm_type and comm_size.
inline std::string collective(std::int64_t type, std::int64_t size, std::string_view group = {}) {
  std::string out = gpu() + int64_attribute("comm_type", type) + int64_attribute("comm_size", size);
  if (!group.empty()) out += attribute("pg_name", text(29, group));
  return out;
}

// One member of a ustar archive.
inline std::string tar_member(std::string_view path, std::string_view content, char type = '0') {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, std::string_view value) {
    header.replace(at, value.size(), value);
  };
  const auto octal = [](std::uint64_t value, std::size_t digits) {
    std::string out(digits, '0');
    for (std::size_t i = digits; i-- > 0; value /= 8) out[i] = static_cast<char>('0' + value % 8);
    return out;
  };
  put(0, path);
  put(124, octal(content.size(), 11));
  put(148, "        ");
  header[156] = type;
  put(257, std::string_view("ustar\00000", 8));
  std::uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  std::string body(content);
  body.resize((body.size() + 511) / 512 * 512);
  return header + body;
}
inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace weft::workload::test
