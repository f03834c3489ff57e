// Where hosts are, for schedulers of Kubernetes: each a List for kubectl.
#pragma once

#include <string>

#include "base/result.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::model {

// Kueue: a Topology "weft" (kueue.x-k8s.io/v1beta2) with a level "weft/KIND" for each kind of scope
// that holds hosts, from the outside in, and kubernetes.io/hostname; and every host as a Node with
// these labels. A host that is in no scope of a kind has the name of the next smaller one there,
// otherwise that of the scope around, with "-hosts". Names lose ":" ("host:3" is host3), become
// lower case, and have "-" for "_", "@", "+".
// Fails: Errc::unsupported without hosts, where two names become one or a name is longer than 63.
// From: kueue.x-k8s.io_topologies.yaml, Kueue's page "Topology-Aware Scheduling".
Result<std::string> to_kueue(const Fabric& fabric);

// Volcano: a HyperNode (topology.volcano.sh/v1alpha1) for each scope that holds hosts. Its tier is
// that of its kind, 1 for the innermost kind in the fabric, tierName the kind. Members are Nodes,
// or the HyperNodes of the scopes inside; hosts beside such get a HyperNode "NAME-hosts" of tier 1.
// Fails: as to_kueue. From: topology.volcano.sh_hypernodes.yaml.
Result<std::string> to_volcano(const Fabric& fabric);

}  // namespace weft::model
