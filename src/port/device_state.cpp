#include "port/device_state.hpp"

namespace weft::port {

void cut(StatePiece& piece, std::size_t bytes_max, Keep keep) {
  if (piece.text.size() <= bytes_max) return;
  piece.is_cut = true;
  if (keep == Keep::begin) {
    const std::size_t line =
        bytes_max == 0 ? std::string::npos : piece.text.rfind('\n', bytes_max - 1);
    piece.text.resize(line == std::string::npos ? bytes_max : line + 1);
    return;
  }
  const std::size_t from = piece.text.size() - bytes_max;
  const std::size_t line = piece.text.find('\n', from - 1);
  piece.text.erase(0, line == std::string::npos || line + 1 == piece.text.size() ? from : line + 1);
}

}  // namespace weft::port
