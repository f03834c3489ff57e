// How NICs are attached to GPUs, and who starts their messages.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/config.hpp"
#include "base/names.hpp"
#include "base/units.hpp"
#include "workload/collective/system.hpp"

namespace weft::workload {

// What a message between the GPUs of two hosts costs beyond cables and switches:
//   trigger + 2 crossings + latency
// The library's protocols take a multiple of the trigger, which is software (Simple, which fences
// and flushes, 2.8 times that of LL); the rest is hardware.
// From: docs/collectives-timing.md#nics, where measured, claimed and guessed are told apart.
struct Nic {
  // pcie: a card beside the GPU. smartnic: a card whose own cores stand between the bus and the
  // port. package: on the GPU's package, without a bus.
  enum class Attach : std::uint8_t { pcie, smartnic, package };
  // cpu: a proxy thread posts what a GPU asks for. gpu: kernels post it themselves. event: queued
  // before, and started by the NIC when a counter of arrivals is full.
  enum class Drive : std::uint8_t { cpu, gpu, event };
  Duration trigger;         // from "the data are there" to the NIC's first read
  Duration crossing;        // between memory and NIC, once at each end
  Duration latency;         // through both NICs
  double message_rate = 0;  // messages a second that one GPU gets started

  Duration hardware() const { return crossing + crossing + latency; }
};
inline constexpr auto attach_names =
    std::to_array<std::string_view>({"pcie", "smartnic", "package"});
constexpr std::span<const std::string_view> names_of(Nic::Attach) { return attach_names; }
inline constexpr auto drive_names = std::to_array<std::string_view>({"cpu", "gpu", "event"});
constexpr std::span<const std::string_view> names_of(Nic::Drive) { return drive_names; }

// The usual figures of that attachment and drive.
Nic usual_nic(Nic::Attach attach, Nic::Drive drive);

// A call's or a step's part of at most 1 s, so that thousands stay within a Duration; the error is
// the reader's.
Duration read_latency(Reader& reader, std::string_view key, Duration fallback);

// Reads attach, drive, trigger, crossing, latency and message_rate; the errors go to the list.
Nic read_nic(const Config& section, Errors& errors);

// Steps over the network cost what this NIC takes; paths come on top, from their first metre.
void set_nic(System& system, const Nic& nic);

}  // namespace weft::workload
