// A training job of one rank on each host of the lab, as far as its network and its tracing go:
// ranks send chunks round a ring over UDP, on several channels, and again what was not acknowledged
// in time; each call, send and wait is told to NCCL's profiler plugin in the order that NCCL uses.
//   ring_job PLUGIN HOST
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "adapt/nccl/profiler.hpp"
#include "base/check.hpp"

namespace {

using namespace weft::adapt::nccl;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// From rack to rack, so that every edge of the ring crosses a spine.
constexpr std::array<int, 8> host_of_rank{0, 2, 4, 6, 1, 3, 5, 7};
constexpr int ranks = 8, channels = 6;
constexpr std::uint32_t pieces = 40;  // datagrams of a chunk
constexpr std::size_t piece_bytes = 1000;
constexpr std::uint16_t receive_port = 7000, send_port = 7100;
constexpr auto pace = 150us;      // between two of a channel's
constexpr auto patience = 20ms;   // then all of the chunk is sent again
constexpr auto computing = 60ms;  // between two calls

struct Piece {
  std::uint32_t call, channel, index;
  char payload[piece_bytes - 12];
};

sockaddr_in address_of(int host, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(0x0a000001u + static_cast<std::uint32_t>(host));
  return out;
}

int open_socket(std::uint16_t port) {
  const int out = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_port = htons(port);
  WEFT_CHECK(::bind(out, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0);
  return out;
}

// Takes what the rank before sends, and acknowledges chunks that are whole.
class Receiver {
 public:
  Receiver() : thread_([this] { run(); }) { thread_.detach(); }
  // Chunks that have come on the channel.
  std::uint32_t received(int channel) const {
    return received_[static_cast<std::size_t>(channel)].load();
  }

 private:
  void run() {
    const int socket = open_socket(receive_port);
    std::array<std::uint64_t, channels> seen{};
    for (;;) {
      Piece piece{};
      sockaddr_in from{};
      socklen_t size = sizeof from;
      if (::recvfrom(socket, &piece, sizeof piece, 0, reinterpret_cast<sockaddr*>(&from), &size) !=
              static_cast<ssize_t>(sizeof piece) ||
          piece.channel >= channels || piece.index >= pieces)
        continue;
      auto& received = received_[piece.channel];
      bool is_whole = piece.call < received && piece.index + 1 == pieces;  // its answer was lost
      if (piece.call == received) {
        seen[piece.channel] |= std::uint64_t{1} << piece.index;
        if (seen[piece.channel] + 1 == std::uint64_t{1} << pieces) {
          seen[piece.channel] = 0;
          ++received;
          is_whole = true;
        }
      }
      if (is_whole) ::sendto(socket, &piece, 12, 0, reinterpret_cast<const sockaddr*>(&from), size);
    }
  }
  std::array<std::atomic<std::uint32_t>, channels> received_{};
  std::thread thread_;
};

std::uint64_t gpu_timer() {
  return static_cast<std::uint64_t>(Clock::now().time_since_epoch() / 1ns);
}

class Rank {
 public:
  Rank(const Plugin5& plugin, int host) : plugin_(plugin) {
    while (host_of_rank[static_cast<std::size_t>(rank_)] != host) ++rank_;
    next_ = address_of(host_of_rank[static_cast<std::size_t>((rank_ + 1) % ranks)], receive_port);
    for (int c = 0; c < channels; ++c)
      sends_.push_back({.socket = open_socket(static_cast<std::uint16_t>(send_port + c))});
    int mask = 0;
    WEFT_CHECK(plugin_.init(&context_, 0x17, &mask, "DP Group 0", ranks, ranks, rank_, nullptr) ==
               success);
    WEFT_CHECK(mask != 0);
  }

  void run() {
    for (std::uint32_t call = 0;; ++call) {
      all_reduce(call);
      std::this_thread::sleep_for(computing);
    }
  }

 private:
  struct Send {
    int socket = -1;
    void* proxy = nullptr;
    void* step = nullptr;
    std::uint32_t sent = 0;
    Clock::time_point last{};
    bool is_done = false;
  };

  void* start(const Event& e) {
    void* out = nullptr;
    WEFT_CHECK(plugin_.start(context_, &out, &e) == success);
    return out;
  }

  void all_reduce(std::uint32_t call) {
    Event e{.type = event_collective};
    e.collective = {.seq = call,
                    .function = "AllReduce",
                    .count = std::size_t{channels} * pieces * piece_bytes / 4,
                    .type = "ncclFloat32",
                    .channels = channels,
                    .algorithm = "RING",
                    .protocol = "SIMPLE"};
    void* const operation = start(e);
    plugin_.stop(operation);
    std::array<void*, channels> kernels{};
    for (int c = 0; c < channels; ++c) {
      Event k{.type = event_kernel, .parent = operation};
      k.kernel = {static_cast<std::uint8_t>(c), gpu_timer()};
      kernels[static_cast<std::size_t>(c)] = start(k);
      begin_send(sends_[static_cast<std::size_t>(c)], operation, c);
    }
    while (!is_over(call)) {
      for (int c = 0; c < channels; ++c) move_on(sends_[static_cast<std::size_t>(c)], call, c);
      std::this_thread::sleep_for(pace);
    }
    for (void* kernel : kernels) {
      const StateArguments a{.kernel_timer = gpu_timer()};
      plugin_.state(kernel, kernel_stop, &a);
      plugin_.stop(kernel);
    }
  }

  void begin_send(Send& send, void* operation, int channel) {
    Event p{.type = event_proxy, .parent = operation};
    p.proxy = {.pid = ::getpid(),
               .channel = static_cast<std::uint8_t>(channel),
               .peer = (rank_ + 1) % ranks,
               .steps = 1,
               .chunk = pieces * piece_bytes,
               .is_send = 1};
    send.proxy = start(p);
    Event s{.type = event_step, .parent = send.proxy};
    send.step = start(s);
    for (const int to : {step_send_gpu_wait, step_send_peer_wait, step_send_wait}) {
      const StateArguments a{.step_bytes = to == step_send_wait ? pieces * piece_bytes : 0};
      plugin_.state(send.step, to, &a);
    }
    send.sent = 0;
    send.is_done = false;
  }

  // The next piece, or all again; until the chunk is acknowledged.
  void move_on(Send& send, std::uint32_t call, int channel) {
    if (send.is_done) return;
    std::array<std::uint32_t, 3> answer{};
    while (::recv(send.socket, answer.data(), sizeof answer, MSG_DONTWAIT) > 0)
      send.is_done |= answer[0] == call;
    if (send.is_done) {
      plugin_.stop(send.step);
      plugin_.stop(send.proxy);
      return;
    }
    const auto now = Clock::now();
    if (send.sent == pieces && now - send.last > patience) send.sent = 0;
    if (send.sent == pieces) return;
    const Piece piece{call, static_cast<std::uint32_t>(channel), send.sent++, {}};
    // While the lab is not whole there is no way there: sent again later.
    ::sendto(send.socket, &piece, sizeof piece, 0, reinterpret_cast<const sockaddr*>(&next_),
             sizeof next_);
    send.last = now;
  }

  bool is_over(std::uint32_t call) const {
    for (int c = 0; c < channels; ++c)
      if (!sends_[static_cast<std::size_t>(c)].is_done || receiver_.received(c) <= call)
        return false;
    return true;
  }

  const Plugin5& plugin_;
  int rank_ = 0;
  void* context_ = nullptr;
  sockaddr_in next_{};
  std::vector<Send> sends_;
  Receiver receiver_;
};

}  // namespace

int main(int argc, char** argv) {
  WEFT_CHECK(argc == 3 && argv[2][0] >= '0' && argv[2][0] < '0' + ranks);
  void* const library = ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  WEFT_CHECK(library != nullptr);
  const auto* const plugin = static_cast<const Plugin5*>(::dlsym(library, "ncclProfiler_v6"));
  WEFT_CHECK(plugin != nullptr);
  Rank(*plugin, argv[2][0] - '0').run();
}
