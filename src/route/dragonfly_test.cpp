#include <doctest/doctest.h>

#include "route/test_net.hpp"

namespace weft::route {
namespace {

using namespace testing;

constexpr std::string_view small =
    "{generator: dragonfly, p: 2, a: 4, h: 2, g: 9, gpus_per_host: 2}";

std::uint32_t group_of(const Fabric& fabric, NodeId node) {
  return fabric.scopes()[fabric.enclosing(node, model::ScopeKind::pod)].index;
}

struct Shape {
  int locals = 0, globals = 0;
  std::vector<std::uint32_t> groups;  // in order, without repeats
};
Shape shape_of(const Fabric& fabric, const Path& path) {
  Shape shape;
  for (const LinkId l : path) {
    if (!fabric.is_switch(fabric.to(l))) continue;
    const std::uint32_t to = group_of(fabric, fabric.to(l));
    if (shape.groups.empty() || shape.groups.back() != to) shape.groups.push_back(to);
    if (!fabric.is_switch(fabric.from(l))) continue;
    (group_of(fabric, fabric.from(l)) == to ? shape.locals : shape.globals) += 1;
  }
  return shape;
}

TEST_CASE("dragonfly: minimal paths are at most local, global, local") {
  const Fabric fabric = make_fabric(small);
  Router router = make_router(fabric, {.scheme = "minimal"});
  for (const NodeId a : fabric.nics())
    for (const NodeId b : fabric.nics()) {
      if (a == b) continue;
      const Path path = path_of(router, {a, b});
      const Shape shape = shape_of(fabric, path);
      CHECK(shape.globals == (group_of(fabric, a) == group_of(fabric, b) ? 0 : 1));
      CHECK(shape.locals <= (shape.globals == 0 ? 1 : 2));
      Path usable;
      router.append_usable({a, b}, usable);
      for (const LinkId l : path) CHECK(std::ranges::find(usable, l) != usable.end());
    }
}

TEST_CASE("dragonfly: Valiant passes one third group, any of them") {
  const Fabric fabric = make_fabric(small);
  Router router = make_router(fabric, {.scheme = "valiant", .qps = 512});
  const NodeId a = fabric.nics().front(), b = fabric.nics().back();
  const NodeId near = fabric.nics()[7];
  REQUIRE(group_of(fabric, a) == group_of(fabric, near));
  std::set<std::uint32_t> middle, middle_near;
  Path usable;
  router.append_usable({a, b}, usable);
  for (std::uint32_t qp = 0; qp < 512; ++qp) {
    const Path path = path_of(router, {a, b, qp});
    const Shape shape = shape_of(fabric, path);
    REQUIRE(shape.groups.size() == 3);
    CHECK(shape.globals == 2);
    CHECK(shape.locals <= 3);
    middle.insert(shape.groups[1]);
    for (const LinkId l : path) CHECK(std::ranges::find(usable, l) != usable.end());
    const Shape back = shape_of(fabric, path_of(router, {a, near, qp}));
    REQUIRE(back.groups.size() == 3);
    CHECK(back.groups[0] == back.groups[2]);
    middle_near.insert(back.groups[1]);
  }
  CHECK(middle.size() == 7);
  CHECK(middle_near.size() == 8);
}

// All NICs of group 0 send to group 1: one global cable joins the two.
int fullest_global(const Fabric& fabric, const std::string& scheme) {
  Router router = make_router(fabric, {.scheme = scheme, .qps = 64});
  std::map<LinkId, int> load;
  for (std::uint32_t qp = 0; qp < 64; ++qp)
    for (std::size_t i = 0; i < 8; ++i)
      for (const LinkId l : path_of(router, {fabric.nics()[i], fabric.nics()[8 + i], qp}))
        if (fabric.is_switch(fabric.from(l)) && fabric.is_switch(fabric.to(l)) &&
            group_of(fabric, fabric.from(l)) != group_of(fabric, fabric.to(l)))
          ++load[l];
  int fullest = 0;
  for (const auto& [l, count] : load) fullest = std::max(fullest, count);
  return fullest;
}

TEST_CASE("dragonfly: UGAL goes minimally when idle and detours when the one cable fills") {
  const Fabric fabric = make_fabric(small);
  for (const std::string scheme : {"ugal", "ugal_g"}) {
    CAPTURE(scheme);
    Router router = make_router(fabric, {.scheme = scheme});
    CHECK(shape_of(fabric, path_of(router, {fabric.nics()[0], fabric.nics()[8]})).globals == 1);
  }
  // Whoever asks how long a path takes sends nothing over it.
  for (const std::string scheme : {"ugal", "ugal_g"}) {
    Router asked = make_router(fabric, {.scheme = scheme});
    const double latency = asked.present_latency_s(fabric.gpus()[0], fabric.gpus()[8]);
    for (int i = 0; i < 100; ++i)
      CHECK(asked.present_latency_s(fabric.gpus()[0], fabric.gpus()[8]) == latency);
    CHECK(shape_of(fabric, path_of(asked, {fabric.nics()[0], fabric.nics()[8]})).globals == 1);
  }
  const int minimal = fullest_global(fabric, "minimal");
  const int valiant = fullest_global(fabric, "valiant");
  CHECK(minimal == 512);  // all streams
  CHECK(valiant < 512 / 3);
  CHECK(fullest_global(fabric, "ugal_g") < 512 / 3);
  CHECK(fullest_global(fabric, "ugal") < 512);
}

TEST_CASE("dragonfly: a lost global cable sends minimal traffic over a third group") {
  const Fabric fabric = make_fabric(small);
  for (const std::string scheme : {"minimal", "valiant", "ugal", "ugal_g"}) {
    CAPTURE(scheme);
    Router router = make_router(fabric, {.scheme = scheme});
    State state;
    for (const LinkId l : fabric.links())
      if (fabric.is_switch(fabric.from(l)) && fabric.is_switch(fabric.to(l)) &&
          group_of(fabric, fabric.from(l)) == 0 && group_of(fabric, fabric.to(l)) == 1)
        set_health(state, l, Health::down);
    router.set_state(state);
    const Shape shape = shape_of(fabric, path_of(router, {fabric.nics()[0], fabric.nics()[8]}));
    CHECK(shape.globals >= 2);
    CHECK(shape.groups.back() == 1);
  }
}

TEST_CASE("dragonfly: two groups leave Valiant nothing but the minimal way") {
  const Fabric fabric =
      make_fabric("{generator: dragonfly, p: 2, a: 2, h: 1, g: 2, gpus_per_host: 2}");
  Router valiant = make_router(fabric, {.scheme = "valiant"});
  Router minimal = make_router(fabric, {.scheme = "minimal"});
  const Stream stream{fabric.nics().front(), fabric.nics().back()};
  CHECK(shape_of(fabric, path_of(valiant, stream)).globals == 1);
  CHECK(path_of(valiant, stream).size() == path_of(minimal, stream).size());
}

}  // namespace
}  // namespace weft::route
