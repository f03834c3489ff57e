#include "plan/life/rates.hpp"

#include <array>

namespace weft::plan::life {
namespace {

// Counts on 16,384 GPUs, 8 to a host, in 54 days.
constexpr double llama3(double count) { return count * 1000 / (2048.0 * 54); }

constexpr std::array llama3_rows{
    RateRow{"faulty GPU", Group::host, llama3(148)},
    RateRow{"GPU HBM3 memory", Group::host, llama3(72)},
    RateRow{"software bug", Group::software, llama3(54)},
    RateRow{"network switch or cable", Group::network, llama3(35)},
    RateRow{"host maintenance", Group::host, llama3(32)},
    RateRow{"GPU SRAM memory", Group::host, llama3(19)},
    RateRow{"GPU system processor", Group::host, llama3(17)},
    RateRow{"NIC", Group::host, llama3(7)},
    RateRow{"NCCL watchdog timeout", Group::software, llama3(7)},
    RateRow{"silent data corruption", Group::host, llama3(6)},
    RateRow{"GPU thermal interface and sensor", Group::host, llama3(6)},
    RateRow{"SSD", Group::host, llama3(3)},
    RateRow{"power supply", Group::host, llama3(3)},
    RateRow{"server chassis", Group::host, llama3(2)},
    RateRow{"IO expansion board", Group::host, llama3(2)},
    RateRow{"dependency", Group::software, llama3(2)},
    RateRow{"CPU", Group::host, llama3(2)},
    RateRow{"system memory", Group::host, llama3(2)},
    RateRow{"planned", Group::planned, llama3(47)},
};
constexpr std::array rsc1_rows{RateRow{"infrastructure", Group::host, 6.50}};
constexpr std::array rsc2_rows{RateRow{"infrastructure", Group::host, 2.34}};

constexpr std::array tables{
    RateTable{
        "llama3",
        "Llama 3 (Meta, 2024), table 5: 419 unexpected and 47 planned interruptions of 16,384 "
        "GPUs in 54 days",
        llama3_rows},
    RateTable{"rsc1",
              "Revisiting Reliability (Meta, HPCA 2025): 6.50 infrastructure failures per 1,000 "
              "host-days on research cluster RSC-1",
              rsc1_rows},
    RateTable{"rsc2",
              "Revisiting Reliability (Meta, HPCA 2025): 2.34 infrastructure failures per 1,000 "
              "host-days on research cluster RSC-2",
              rsc2_rows},
};

constexpr std::array<std::string_view, group_count> group_names{"host", "network", "software",
                                                                "planned"};

}  // namespace

std::string_view to_text(Group group) { return group_names[static_cast<std::size_t>(group)]; }
std::span<const RateTable> rate_tables() { return tables; }

}  // namespace weft::plan::life
