// Datagrams over the kernel's UDP sockets, with its time stamps: ProbeIo for real networks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "port/probe_io.hpp"

namespace weft::adapt::live {

struct UdpIoOptions {
  std::vector<port::Endpoint> ports;      // own address (0: any) and port (0: any free one) of each
  std::uint32_t queue_bytes = 32u << 20;  // of the receive queue of each, as far as allowed
  port::Stamp send_stamps = port::Stamp::wanted;
  // Whether routers' complaints are heard, which needs CAP_NET_RAW.
  enum class Complaints : std::uint8_t { ignored, heard } complaints = Complaints::ignored;
  // `raw`: datagrams leave with the ports as their source, which need not be free, and nothing is
  // received on them. Needs CAP_NET_RAW.
  enum class Ports : std::uint8_t { bound, raw } use = Ports::bound;
};

class UdpIo : public port::ProbeIo {
 public:
  // One socket a port. They are not connected: the kernel gives a connected socket a hash of its
  // own, and equal-cost paths would no longer follow from addresses and ports.
  // Fails: Errc::io, saying which address and what to do (port taken, address not ours, no right).
  static Result<UdpIo> open(const UdpIoOptions& options, port::Clock& clock);
  UdpIo(UdpIo&&) noexcept;
  UdpIo& operator=(UdpIo&&) noexcept;
  ~UdpIo() override;

  // Own address and port, as bound.
  const std::vector<port::Endpoint>& ports() const;
  // Also ends wait() early; not owned. For signals.
  Status watch(int fd);

  port::SendResult send(std::span<const port::Outgoing> batch) override;
  std::size_t receive(std::span<port::Incoming> batch) override;
  std::size_t send_stamps(std::span<port::SendStamp> batch) override;
  std::size_t complaints(std::span<port::Complaint> batch) override;
  port::Stamp stamping() const override;
  std::uint64_t dropped() override;
  void wait(port::Instant until, port::Wake wake) override;

 private:
  class Impl;
  explicit UdpIo(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::adapt::live
