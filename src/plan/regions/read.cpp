#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "base/config.hpp"
#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "plan/regions/read_life_cycle.hpp"
#include "plan/regions/regions.hpp"

namespace weft::plan::regions {
namespace {

constexpr double gpus_max = 1e9;
constexpr std::uint64_t csv_bytes_max = std::uint64_t{64} << 20;

// A row of data: or jobs:, from YAML or CSV. `quantity`: bytes or GPUs; `list`, `within`: names.
struct Row {
  Where where;
  std::string name;
  double quantity = 0;
  std::vector<Token> list, within;
};

class ProblemReader {
 public:
  explicit ProblemReader(const std::string& file) : file_(file) {}

  Result<Problem> read(const Config& root) {
    Reader reader(root, "the file", errors_);
    read_regions(reader);
    for (const Row& row : read_rows(reader, data_columns)) add_data(row);
    for (const Row& row : read_rows(reader, job_columns)) add_job(row);
    read_life_cycle(reader, problem_, errors_);
    reader.finish();
    if (errors_.empty()) check_room(root.where);
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(problem_);
  }

 private:
  struct Columns {
    const char *key, *what, *quantity, *list, *within;
  };
  static constexpr Columns data_columns{"data", "data set", "bytes", "at", nullptr};
  static constexpr Columns job_columns{"jobs", "job", "gpus", "data", "within"};

  void add(Errc code, const Where& where, std::string what, std::string hint) {
    if (errors_.size() < errors_max)
      errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }

  const Config* list_of(Reader& reader, const char* key, std::size_t most) {
    const Config* list = reader.child(key);
    if (list == nullptr) {
      add(Errc::parse, reader.where(), fmt::format("{} is missing", quote(key)),
          "see docs/commands/regions.md for an example");
      return nullptr;
    }
    if (list->kind == Config::Kind::list && list->items.size() <= most && !list->items.empty())
      return list;
    if (list->kind == Config::Kind::scalar && most == items_max) return list;
    add(Errc::parse, list->where, fmt::format("{} must be a list of 1 to {}", quote(key), most),
        "write one {...} for each");
    return nullptr;
  }

  void read_regions(Reader& reader) {
    const Config* list = list_of(reader, "regions", regions_max);
    if (list == nullptr) return;
    for (const Config& item : list->items) {
      Reader entry(item, "region", errors_);
      Region region{.name = entry.text("name", std::nullopt)};
      region.gpus = static_cast<double>(
          entry.count("gpus", std::nullopt, 0, static_cast<std::int64_t>(gpus_max)));
      region.site = entry.text("site", region.name);
      const double utc = entry.number("utc", 0.0, -12, 14);
      region.utc = static_cast<std::int32_t>(utc);
      if (region.utc != utc)
        entry.error(Errc::value, entry.where("utc"), "\"utc\" must be whole hours",
                    "round it: traffic is by the hour");
      entry.finish();
      name_once(regions_, "region", region.name, item.where, problem_.regions.size());
      region_names_.push_back(region.name);
      problem_.regions.push_back(std::move(region));
    }
  }

  std::vector<Row> read_rows(Reader& reader, const Columns& columns) {
    const Config* list = list_of(reader, columns.key, items_max);
    if (list == nullptr) return {};
    if (list->kind == Config::Kind::scalar) return read_csv(token_of(*list), columns);
    std::vector<Row> out;
    for (const Config& item : list->items) {
      Reader entry(item, columns.what, errors_);
      Row row{.where = item.where, .name = entry.text("name", std::nullopt)};
      row.quantity = columns.within == nullptr
                         ? static_cast<double>(entry.bytes("bytes", std::nullopt).count)
                         : static_cast<double>(entry.count("gpus", std::nullopt, 1,
                                                           static_cast<std::int64_t>(gpus_max)));
      row.list = entry.texts(columns.list);
      if (columns.within != nullptr) row.within = entry.texts(columns.within);
      entry.finish();
      out.push_back(std::move(row));
    }
    return out;
  }

  std::vector<Row> read_csv(const Token& name, const Columns& columns) {
    const std::string path =
        (std::filesystem::path(file_).parent_path() / std::string(name.text)).string();
    auto text = read_file(path, csv_bytes_max);
    if (!text) {
      text.error().where = name.where;
      errors_.push_back(text.error());
      return {};
    }
    texts_.push_back(std::make_unique<std::string>(*std::move(text)));
    CsvReader csv(*texts_.back(), path);
    const std::vector<std::string> required{"name", columns.quantity};
    std::vector<std::string> optional{columns.list};
    if (columns.within != nullptr) optional.emplace_back(columns.within);
    if (const Status head = csv.header(required, optional); !head) {
      errors_.push_back(head.error());
      return {};
    }
    std::vector<Row> out;
    while (csv.next() && errors_.size() < errors_max) {
      Row row{.where = csv.where(), .name = std::string(csv.cell(0).text)};
      const Token quantity = csv.cell(1);
      row.quantity = columns.within == nullptr
                         ? quantity_of(parse_bytes(quantity), [](Bytes b) { return b.count; })
                         : quantity_of(parse_count(quantity), [](std::int64_t n) { return n; });
      if (columns.within != nullptr && (row.quantity < 1 || row.quantity > gpus_max))
        add(Errc::value, quantity.where, fmt::format("{} GPUs", quantity.text),
            fmt::format("give 1 to {:.0f}", gpus_max));
      row.list = names_in(csv.cell(2), csv.where());
      if (columns.within != nullptr) row.within = names_in(csv.cell(3), csv.where());
      out.push_back(std::move(row));
      if (out.size() > items_max) {
        add(Errc::value, csv.where(), fmt::format("more than {} rows", items_max),
            "shorten the list");
        return {};
      }
    }
    if (csv.error() != nullptr) errors_.push_back(*csv.error());
    if (out.empty() && errors_.empty())
      add(Errc::parse, {path, 1, 1}, "the file has no rows", "add one line for each");
    return out;
  }

  template <class T, class Of>
  double quantity_of(const Result<T>& parsed, const Of& of) {
    if (parsed) return static_cast<double>(of(*parsed));
    errors_.push_back(parsed.error());
    return 1;
  }

  // Names between ';'. The text lives as long as the reader.
  std::vector<Token> names_in(const Token& cell, const Where& where) {
    std::vector<Token> out;
    if (trim(cell.text).empty()) return out;
    texts_.push_back(std::make_unique<std::string>(cell.text));
    for (const std::string_view name : split(*texts_.back(), ';'))
      out.push_back({trim(name), where});
    return out;
  }

  void name_once(std::map<std::string, std::uint32_t>& names, const char* what,
                 const std::string& name, const Where& where, std::size_t number) {
    if (name.empty()) add(Errc::value, where, fmt::format("a {} without a name", what), "name it");
    if (!names.emplace(name, static_cast<std::uint32_t>(number)).second)
      add(Errc::value, where, fmt::format("two {}s are named {}", what, quote(name)),
          "give each a name of its own");
  }

  std::optional<std::uint32_t> find(const std::map<std::string, std::uint32_t>& names,
                                    const std::vector<std::string>& all, const char* what,
                                    const Token& name) {
    const auto it = names.find(std::string(name.text));
    if (it != names.end()) return it->second;
    add(Errc::unknown, name.where,
        fmt::format("there is no {} {}{}", what, quote(name.text), did_you_mean(name.text, all)),
        fmt::format("name one of the file's {}s", what));
    return std::nullopt;
  }
  std::uint64_t regions_of(const std::vector<Token>& names) {
    std::uint64_t out = 0;
    for (const Token& name : names)
      if (const auto region = find(regions_, region_names_, "region", name))
        out |= std::uint64_t{1} << *region;
    return out;
  }

  void add_data(const Row& row) {
    name_once(data_, "data set", row.name, row.where, problem_.data.size());
    if (row.list.empty())
      add(Errc::value, row.where, fmt::format("data set {} is in no region", quote(row.name)),
          "add at: the regions that hold it");
    data_names_.push_back(row.name);
    problem_.data.push_back({row.name, row.quantity, regions_of(row.list)});
  }

  void add_job(const Row& row) {
    name_once(jobs_, "job", row.name, row.where, problem_.jobs.size());
    Job job{.name = row.name, .gpus = row.quantity};
    for (const Token& name : row.list)
      if (const auto set = find(data_, data_names_, "data set", name)) job.data.push_back(*set);
    std::ranges::sort(job.data);
    if (std::ranges::adjacent_find(job.data) != job.data.end())
      add(Errc::value, row.where, fmt::format("job {} names a data set twice", quote(row.name)),
          "name it once");
    if (job.data.size() > data_per_job_max)
      add(Errc::value, row.where,
          fmt::format("job {} has {} data sets", quote(row.name), job.data.size()),
          fmt::format("join some: {} are the most", data_per_job_max));
    const std::size_t count = problem_.regions.size();
    job.within = row.within.empty()
                     ? (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1)
                     : regions_of(row.within);
    double largest = 0;
    for (std::size_t r = 0; r < count; ++r)
      if ((job.within >> r & 1) != 0) largest = std::max(largest, problem_.regions[r].gpus);
    if (errors_.empty() && largest < job.gpus)
      add(Errc::infeasible, row.where,
          fmt::format("job {} needs {:.0f} GPUs, and the largest region it may run in has {:.0f}",
                      quote(row.name), job.gpus, largest),
          "make it smaller, or add regions to \"within\"");
    problem_.jobs.push_back(std::move(job));
  }

  void check_room(const Where& where) {
    double supply = 0, demand = 0;
    for (const Region& region : problem_.regions) supply += region.gpus;
    for (const Job& job : problem_.jobs) demand += job.gpus;
    if (demand > supply)
      add(Errc::infeasible, where,
          fmt::format("the jobs need {:.0f} GPUs, and the regions have {:.0f}", demand, supply),
          "remove jobs, or add GPUs");
  }

  std::string file_;
  Errors errors_;
  Problem problem_;
  std::map<std::string, std::uint32_t> regions_, data_, jobs_;
  std::vector<std::string> region_names_, data_names_;
  std::vector<std::unique_ptr<std::string>> texts_;
};

}  // namespace

Result<Problem> read_problem(std::string_view yaml, const std::string& file) {
  WEFT_TRY(const Config root, parse_yaml(yaml, file));
  return ProblemReader(file).read(root);
}

}  // namespace weft::plan::regions
