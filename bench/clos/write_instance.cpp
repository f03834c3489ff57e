// clos_instance DIR FLOWS [SEED]: writes fabric.yaml and flows.csv for `weft flows`.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "clos/instance.hpp"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: clos_instance DIR FLOWS [SEED]\n", stderr);
    return 2;
  }
  weft::bench::ClosInstance in;
  in.flows = std::atoi(argv[2]);
  if (argc > 3) in.seed = std::strtoull(argv[3], nullptr, 10);
  const std::string dir = argv[1];
  std::ofstream(dir + "/fabric.yaml") << weft::bench::fabric_yaml(in);
  std::ofstream flows(dir + "/flows.csv");
  flows << weft::bench::flows_csv(in);
  return flows.good() ? 0 : 1;
}
