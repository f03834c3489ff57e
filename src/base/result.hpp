// Result, Error and the macros that pass errors up. No exception crosses a room's boundary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace weft {
inline namespace base {

enum class Errc : std::uint8_t {
  parse,        // the text is not what the format allows
  value,        // well-formed, but a value makes no sense
  unknown,      // a name that nothing is known by
  infeasible,   // the request contradicts itself or the fabric
  io,           // a file or socket failed
  unsupported,  // understood, and not available here
};

// Where in an input the trouble is. Line and column count from 1; 0 means not known.
struct Where {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  // "file:line:column", shorter where parts are not known, "" for none.
  std::string text() const;
};

// What went wrong, where, and what to do about it. `more` holds further errors found in one pass.
struct Error {
  Errc code = Errc::value;
  Where where;
  std::string what;
  std::string hint;  // what to do; may be empty
  std::vector<Error> more;

  // One line per error: "file:line:col: what; hint".
  std::string text() const;
};

using Errors = std::vector<Error>;
// Readers of input stop after so many errors.
inline constexpr std::size_t errors_max = 100;

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// return fail(Errc::parse, where, "a rate needs a unit", "write e.g. \"400 Gbps\"");
[[nodiscard]] inline std::unexpected<Error> fail(Errc code, Where where, std::string what,
                                                 std::string hint = {}) {
  return std::unexpected(Error{code, std::move(where), std::move(what), std::move(hint), {}});
}

// Folds a list into one Error (the first, with the rest in `more`). `errors` must not be empty.
[[nodiscard]] Error combine(Errors errors);

}  // namespace base
}  // namespace weft

#define WEFT_CONCAT_INNER(a, b) a##b
#define WEFT_CONCAT(a, b) WEFT_CONCAT_INNER(a, b)

// WEFT_TRY(Rate uplink, parse_rate(text));  returns the error, or declares `uplink`.
#define WEFT_TRY(declaration, expression) \
  WEFT_TRY_INNER(WEFT_CONCAT(weft_try_, __LINE__), declaration, expression)
#define WEFT_TRY_INNER(result, declaration, expression)                           \
  auto result = (expression);                                                     \
  if (!result.has_value()) return ::std::unexpected(::std::move(result).error()); \
  declaration = ::std::move(result).value()

// The same for a Status: WEFT_TRY_STATUS(check(x));
#define WEFT_TRY_STATUS(expression)                               \
  do {                                                            \
    if (auto weft_status = (expression); !weft_status)            \
      return ::std::unexpected(::std::move(weft_status).error()); \
  } while (false)
