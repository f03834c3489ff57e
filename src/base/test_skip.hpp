// For tests: what a machine may lack.
#pragma once

#include <string_view>

namespace weft {
inline namespace base {

// Marks the running test case as skipped; the case returns at once. The runner of all test programs
// (tests/doctest_main.cpp), which defines it, prints the reason and ends with status 77, which
// CTest shows as "Skipped". Cases that need the same thing stand in a test suite "needs ..." that
// has an entry of its own in CTest (NEEDS of weft_room), so that the other cases of the program
// still count.
void skip_test(std::string_view reason);

}  // namespace base
}  // namespace weft
