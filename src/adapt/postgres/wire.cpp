#include "adapt/postgres/wire.hpp"

#include <charconv>

namespace weft::adapt::postgres {
namespace {

constexpr int int4_size = 4;
constexpr int int8_size = 8;

}  // namespace

void append_number(std::string& out, std::int64_t value, int size) {
  const auto bits = static_cast<std::uint64_t>(value);
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(bits >> shift & 255));
}

std::string number(std::int64_t value) {
  std::string out;
  append_number(out, value, int8_size);
  return out;
}

Array::Array(Element type, std::size_t count) {
  constexpr std::int64_t dimensions = 1;
  constexpr std::int64_t nulls = 0;
  constexpr std::int64_t first_index = 1;
  for (const std::int64_t part : {dimensions, nulls, static_cast<std::int64_t>(type),
                                  static_cast<std::int64_t>(count), first_index})
    append_number(out_, part, int4_size);
}

void Array::add(std::int64_t value) {
  append_number(out_, int8_size, int4_size);
  append_number(out_, value, int8_size);
}

void Array::add(std::string_view bytes) {
  append_number(out_, static_cast<std::int64_t>(bytes.size()), int4_size);
  out_ += bytes;
}

std::uint64_t Rows::changed() const {
  const std::string_view text = PQcmdTuples(result_.get());
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

std::int64_t Rows::integer(int row, int column) const {
  const std::string_view from(PQgetvalue(result_.get(), row, column),
                              static_cast<std::size_t>(PQgetlength(result_.get(), row, column)));
  const bool negative = !from.empty() && (static_cast<unsigned char>(from[0]) & 0x80) != 0;
  std::uint64_t bits = negative ? ~std::uint64_t{0} : 0;
  for (const char byte : from) bits = bits << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(bits);
}

std::string Rows::bytes(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

}  // namespace weft::adapt::postgres
