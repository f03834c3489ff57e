// Readers of NCCL Inspector, Kineto and RAS: no input crashes, and errors name the file.
#include <string>

#include "fuzz.hpp"
#include "observe/colltrace/flight.hpp"
#include "observe/colltrace/others.hpp"
#include "observe/colltrace/verdict.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::observe::colltrace;
  const auto copy = [&] {
    std::string out;
    out.reserve(size + json_padding);
    return out.assign(weft::fuzz::text_of(data, size));
  };
  const auto check = [](const weft::Error& error) {
    WEFT_CHECK(error.where.file == "fuzz.json" && !error.what.empty() && !error.hint.empty());
  };
  JobBuilder builder;
  std::string content = copy();
  if (const auto trace = read_inspector(content, "fuzz.json"); !trace)
    check(trace.error());
  else if (const auto status = add_rings({*trace}, {"fuzz.json"}, builder); !status)
    check(status.error());
  for (const auto read : {read_kineto, read_ras}) {
    JobBuilder own;
    content = copy();
    if (const auto status = read(content, "fuzz.json", own); !status) check(status.error());
    const Job job = own.finish();
    if (job.world <= 4096) analyse(job, {.is_stalled = true});
  }
  return 0;
}
