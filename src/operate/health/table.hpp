// Path health as a table: what other processes are told, and how it is kept in a file that they can
// read at any time without locks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "base/json_text.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "operate/health/layout.hpp"

namespace weft::operate::health {

// NCCL's names, by its numbers, which rows of advice have.
inline constexpr std::array<std::string_view, 5> nccl_operations{
    "broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce"};
inline constexpr std::array<std::string_view, 7> nccl_algorithms{
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
inline constexpr std::array<std::string_view, 3> nccl_protocols{"LL", "LL128", "Simple"};

struct RailHealth {
  std::uint16_t rail = 0;
  std::uint16_t evidence = 0;  // bits of layout::Evidence
  std::uint32_t nics = 0, nics_down = 0, nics_impaired = 0;
  double worst_rate = 1;  // of nominal, of NICs that are not down
  double worst_loss = 0;  // share of packets
  friend bool operator==(const RailHealth&, const RailHealth&) = default;
};

struct LinkHealth {
  std::string name;
  double rate = 1;  // of nominal; 0: carries nothing
  double loss = 0;  // share of packets
  std::uint16_t evidence = 0;
  std::uint16_t rail = layout::no_rail;
  friend bool operator==(const LinkHealth&, const LinkHealth&) = default;
};

using layout::Advice;

struct HealthTable {
  Timestamp written;
  std::int64_t valid_ns = 10 * ns_per_s;
  std::uint32_t links_more = 0;  // links that are not well and have no row
  std::vector<RailHealth> rails;
  std::vector<LinkHealth> links;  // those that are not well
  std::vector<Advice> advice;
};

// As the layout has it, at most layout::slot_bytes. Shares are rounded to parts in a million. Links
// with names of more than 55 bytes or beyond links_max are counted in links_more; there must be no
// more rails and advice than fit.
std::string encode(const HealthTable& table);
// Fails: Errc::parse on anything else; takes any bytes.
Result<HealthTable> decode(std::string_view bytes, const std::string& file);

// The bytes of the table in a file, checked. Fails: Errc::io, Errc::parse.
Result<std::string> load(const std::string& path);

// Writes tables into a file that readers hold open or map, one after the other. The last table
// stays when the writer ends, and grows old.
class Publisher {
 public:
  // Takes over a file of this layout, or puts a new one in the place of anything else.
  // Fails: Errc::io; Errc::infeasible where another process writes it.
  static Result<Publisher> open(const std::string& path);
  // `table`: as encode() gives it. Fails: Errc::io.
  Status publish(std::string_view table);

 private:
  Publisher(Fd file, std::string path, std::uint64_t sequence)
      : file_(std::move(file)), path_(std::move(path)), sequence_(sequence) {}
  Status write(std::string_view bytes, std::size_t offset);
  Fd file_;
  std::string path_;
  std::uint64_t sequence_;
};

// "down", "loss", ...: those of the bits that are set, and "none".
std::vector<std::string_view> evidence_names(std::uint16_t bits);
// For people, with its age at `now`.
std::string to_text(const HealthTable& table, Timestamp now);
JsonObject to_json(const HealthTable& table, Timestamp now);

}  // namespace weft::operate::health
