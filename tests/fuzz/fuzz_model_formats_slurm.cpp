// read_slurm_topology: no input crashes, and the tree of a fabric that it accepts keeps its hosts
// when it is written and read again.
#include "fuzz.hpp"
#include "model/formats/slurm.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::model::SlurmOptions options{.host = weft::model::host_preset("h100", 2, 2),
                                          .link = weft::Rate{400'000'000'000},
                                          .uplink = {},
                                          .limits = {.nodes = 4'000, .links = 20'000}};
  const auto read = read_slurm_topology(weft::fuzz::text_of(data, size), "fuzz.conf", options);
  if (!read) {
    WEFT_CHECK(!read.error().what.empty() && !read.error().hint.empty());
    return 0;
  }
  const auto text = to_slurm_topology(*read);
  if (!text) {  // names that Slurm does not allow, or that become equal
    WEFT_CHECK(text.error().code == weft::Errc::unsupported);
    return 0;
  }
  const auto again = read_slurm_topology(*text, "again.conf", options);
  if (!again) return 0;  // one level more than is read
  WEFT_CHECK(again->hosts().size() == read->hosts().size());
  return 0;
}
