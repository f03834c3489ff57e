// Which fabric a store is about, so that it is not opened with another one.
#pragma once

#include <string>
#include <vector>

#include "base/fields.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/fabric/fabric.hpp"
#include "port/store.hpp"

namespace weft::app {

struct FabricMark {
  std::string name;                // `name:` of the scenario; "" where it has none
  std::vector<std::string> parts;  // switches, hosts and cables of the network, sorted
};

template <class Archive, Of<FabricMark> T>
void fields(Archive& ar, T& m) {
  ar("name", m.name);
  ar("parts", m.parts);
}

// The document that keeps it in the store.
inline constexpr std::string_view mark_kind = "store", mark_id = "fabric";

// Cost: O(parts log parts), some 25 bytes a part.
FabricMark mark_of(const model::Fabric& fabric, std::string name);

enum class IfChanged : std::uint8_t { refuse, accept };

// Makes the store one of this fabric, where it has no mark yet or that of a smaller fabric with the
// same name, all of whose parts are still there; the audit log notes the latter. Any other
// difference is refused, or accepted and noted.
// Fails: Errc::infeasible with what differs; Errc::io. The store must be the caller's to write.
Status check_fabric(port::Store& store, const FabricMark& mark, IfChanged if_changed,
                    Timestamp now);

}  // namespace weft::app
