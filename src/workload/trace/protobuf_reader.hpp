// The wire format of protocol buffers: the fields of one message, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weft::workload {

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct ProtobufField {
  std::uint32_t number = 0;
  Wire wire = Wire::varint;
  std::uint64_t value = 0;  // varint, fixed64, fixed32
  std::string_view bytes;   // Wire::bytes; points into the message
  std::size_t at = 0;       // of the field in the whole stream
};

// Never reads past its message. After a fault next() stays false; fault() says what is wrong at
// byte at(). Source of the format: the public "Encoding" page of protocol buffers.
class ProtobufReader {
 public:
  // `at`: where `data` begins in the whole stream, for messages.
  ProtobufReader(std::string_view data, std::size_t at) : data_(data), begin_(at) {}
  // Reads what is inside `field`, which must be Wire::bytes; `outer` is the message it stands in.
  ProtobufReader(const ProtobufField& field, const ProtobufReader& outer)
      : data_(field.bytes),
        begin_(outer.begin_ + static_cast<std::size_t>(field.bytes.data() - outer.data_.data())) {}

  bool next(ProtobufField& field) {
    if (done()) return false;
    field.at = at();
    std::uint64_t tag = 0;
    if (!varint(tag)) return false;
    if (tag >> 3 == 0 || tag >> 3 > field_number_max)
      return stop("field number out of range", field.at);
    field.number = static_cast<std::uint32_t>(tag >> 3);
    switch (tag & 7) {
      case 0:
        field.wire = Wire::varint;
        return varint(field.value);
      case 1:
        field.wire = Wire::fixed64;
        return fixed(field.value, 8);
      case 2:
        field.wire = Wire::bytes;
        return bytes(field.bytes);
      case 5:
        field.wire = Wire::fixed32;
        return fixed(field.value, 4);
      default:
        return stop("unknown wire type", field.at);
    }
  }

  // A bare number: the length before each message of a stream, or an element of a packed list.
  bool varint(std::uint64_t& value) {
    const std::size_t start = at();
    value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (position_ == data_.size()) return stop("the data ends inside a number", start);
      const auto byte = static_cast<std::uint8_t>(data_[position_++]);
      if (shift == 63 && byte > 1) return stop("number (varint) longer than 64 bits", start);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return stop("number (varint) longer than 64 bits", start);
  }

  // A length and that many bytes.
  bool bytes(std::string_view& out) {
    const std::size_t start = at();
    std::uint64_t length = 0;
    if (!varint(length)) return false;
    if (length > data_.size() - position_)
      return stop("length extends past the end of the data", start);
    out = data_.substr(position_, static_cast<std::size_t>(length));
    position_ += static_cast<std::size_t>(length);
    return true;
  }

  // Little endian.
  bool fixed(std::uint64_t& value, std::size_t width) {
    if (width > data_.size() - position_)
      return stop("the data ends inside a fixed-width number", at());
    value = 0;
    for (std::size_t i = 0; i < width; ++i)
      value |= std::uint64_t{static_cast<std::uint8_t>(data_[position_ + i])} << (8 * i);
    position_ += width;
    return true;
  }

  // Stops the reading, with the caller's own complaint.
  bool stop(const char* what, std::size_t where) {
    fault_ = what;
    fault_at_ = where;
    return false;
  }

  bool done() const { return fault_ != nullptr || position_ == data_.size(); }
  const char* fault() const { return fault_; }  // nullptr: none
  std::size_t at() const { return fault_ != nullptr ? fault_at_ : begin_ + position_; }

 private:
  static constexpr std::uint64_t field_number_max = (1u << 29) - 1;

  std::string_view data_;
  std::size_t begin_ = 0;
  std::size_t position_ = 0;
  const char* fault_ = nullptr;
  std::size_t fault_at_ = 0;
};

}  // namespace weft::workload
