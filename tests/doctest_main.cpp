// The main() of every test program. Its exit status:
//   0   all test cases that ran passed
//   1   one failed, or the filters of the command line match none
//   77  none failed, but at least one was skipped by skip_test: SKIP_RETURN_CODE of CTest
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "base/test_skip.hpp"

namespace {

constexpr int status_skipped = 77;

struct Progress {
  std::string test_case;  // that is running
  bool is_skipped = false;
  unsigned skipped = 0, ran = 0;
};

Progress& progress() {
  static Progress out;
  return out;
}

class Counter : public doctest::IReporter {
 public:
  explicit Counter(const doctest::ContextOptions& /*options*/) {}
  void test_case_start(const doctest::TestCaseData& data) override {
    progress().test_case = data.m_name;
    progress().is_skipped = false;
  }
  void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {
    ++progress().ran;
    if (progress().is_skipped) ++progress().skipped;
  }
  void test_run_end(const doctest::TestRunStats& /*stats*/) override {
    if (progress().skipped > 0)
      std::printf("%u of %u test cases were skipped\n", progress().skipped, progress().ran);
  }
  void report_query(const doctest::QueryData& /*data*/) override {}
  void test_run_start() override {}
  void test_case_reenter(const doctest::TestCaseData& /*data*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*error*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*signature*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*data*/) override {}
  void log_message(const doctest::MessageData& /*data*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*data*/) override {}
};

DOCTEST_REGISTER_LISTENER("skipped", 1, Counter);

}  // namespace

void weft::base::skip_test(std::string_view reason) {
  if (progress().is_skipped) return;  // another subcase of the same
  progress().is_skipped = true;
  // One line, for scripts that list what was skipped.
  std::string line(reason);
  for (char& c : line)
    if (c == '\n') c = ' ';
  std::printf("SKIPPED: %s: %s\n", progress().test_case.c_str(), line.c_str());
  std::fflush(stdout);
}

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int status = context.run();
  if (context.shouldExit()) return status;  // --help, --list-test-cases
  if (progress().ran == 0) {
    std::fprintf(stderr, "no test case matches the filters\n");
    return 1;
  }
  if (status != 0) return status;
  return progress().skipped > 0 ? status_skipped : 0;
}
