// weft init: what it writes runs; what is there already stays.
#include <doctest/doctest.h>

#include <string>

#include "run_weft.hpp"

namespace weft::cli_test {

TEST_CASE("init: the scenario that it writes runs") {
  const Scratch scratch;
  const Outcome made =
      scratch.run({"init", "a.yaml", "--gpus", "16", "--fabric", "rail_optimized"});
  REQUIRE_MESSAGE(made.status == 0, made.err);
  CHECK(made.out == "wrote a.yaml; now: weft run a.yaml --out report\n");
  const Outcome ran = scratch.run({"run", "a.yaml"});
  CHECK_MESSAGE(ran.status == 0, ran.err);
  CHECK(ran.out.contains("plain ECMP"));
  const Outcome again = scratch.run({"init", "a.yaml", "--gpus", "8"});
  CHECK(again.status == 2);
  CHECK(again.err.contains("the file is there already; name another one, or pass --force"));
  CHECK(scratch.run({"init", "a.yaml", "--gpus", "8", "--force"}).status == 0);
  CHECK(scratch.read("a.yaml").starts_with("# llama3-8b on 8 GPUs"));
  // The standard output is the file.
  CHECK(scratch.run({"init", "--gpus", "8"}).out == scratch.read("a.yaml"));
}

TEST_CASE("init: what is not said or cannot be is an error") {
  const Scratch scratch;
  const Outcome unsaid = scratch.run({"init"});
  CHECK(unsaid.status == 2);
  CHECK(unsaid.err.contains("pass --gpus N"));
  CHECK(scratch.run({"init", "--gpus", "100"}).err.contains("take 96 or 104"));
  CHECK(
      scratch.run({"init", "--gpus", "8", "--model", "llama3-405b"}).err.contains("does not fit"));
}

}  // namespace weft::cli_test
