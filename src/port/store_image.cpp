#include "port/store_image.hpp"

#include <fmt/format.h>

#include <utility>

namespace weft::port {
namespace {

constexpr std::size_t rows_max = 1'000;

// Stores count without gaps, and those who copy rely on it.
template <class Row>
Status check_numbers(const std::vector<Row>& rows, std::uint64_t& next, std::string_view what) {
  for (const Row& row : rows) {
    if (next != 0 && row.seq != next)
      return fail(
          Errc::io, {},
          fmt::format("{} {} follows {}: rows are missing between", what, row.seq, next - 1),
          "the store was modified by another program; use an earlier backup");
    next = row.seq + 1;
  }
  return {};
}

}  // namespace

Status each_piece(StoreImage& image, const std::function<Status(const Commit&)>& take) {
  std::uint64_t next = 0;
  for (Commit piece;;) {
    WEFT_TRY(piece.events, image.events(next, rows_max));
    if (piece.events.empty()) break;
    WEFT_TRY_STATUS(check_numbers(piece.events, next, "event"));
    WEFT_TRY_STATUS(take(piece));
  }
  std::string kind, id;
  for (bool is_first = true;; is_first = false) {
    Commit piece;
    WEFT_TRY(piece.documents, image.documents(kind, id, rows_max));
    // The one that the last piece ended with.
    if (!is_first && !piece.documents.empty()) piece.documents.erase(piece.documents.begin());
    if (piece.documents.empty()) break;
    kind = piece.documents.back().kind;
    id = piece.documents.back().id;
    WEFT_TRY_STATUS(take(piece));
  }
  next = 0;
  for (Commit piece;;) {
    WEFT_TRY(piece.audit, image.audit(next, rows_max));
    if (piece.audit.empty()) break;
    WEFT_TRY_STATUS(check_numbers(piece.audit, next, "audit entry"));
    WEFT_TRY_STATUS(take(piece));
  }
  return {};
}

}  // namespace weft::port
