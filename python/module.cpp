// The extension module under `import weft`: scenarios in, what weft run and weft sweep find out, as
// typed objects. It holds no model of its own: everything is the library that the command line
// uses.
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "base/parallel.hpp"
#include "model/scenario/scenario.hpp"
#include "plan/design/bill.hpp"
#include "plan/explain/explain.hpp"
#include "plan/report/report.hpp"
#include "plan/run/run.hpp"
#include "plan/run/setup.hpp"
#include "plan/sweep/sweep.hpp"

namespace py = pybind11;

namespace weft::python {
namespace {

// Thrown across this file alone, and raised as weft.Error.
struct Failure {
  Error error;
};
[[noreturn]] void refuse(const Where& where, std::string what, std::string hint = {}) {
  Error error{Errc::parse, where, std::move(what), std::move(hint), {}};
  throw Failure{std::move(error)};
}

template <class T>
T value_of(Result<T> result) {
  if (!result) throw Failure{std::move(result.error())};
  return *std::move(result);
}
void check(const Status& status) {
  if (!status) throw Failure{status.error()};
}

// A tree of dict, list, str, numbers, bool, None and paths. What errors call a place is the way to
// it: "jobs.0.bytes". `Replace` is the dict class that does not merge.
class Reader {
 public:
  explicit Reader(py::object replace)
      : replace_(std::move(replace)), path_type_(py::module_::import("os").attr("PathLike")) {}

  Config read(py::handle value, const std::string& at, int depth = 0) const {
    const Where where{at.empty() ? "scenario" : at, 0, 0};
    if (depth > 64) refuse(where, "is nested deeper than 64 levels");
    if (value.is_none()) return {.kind = Config::Kind::null, .where = where};
    if (py::isinstance<py::dict>(value)) return read_dict(value, at, where, depth);
    if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
      Config out = Config::list(where);
      for (const py::handle item : value)
        out.items.push_back(read(item, step(at, std::to_string(out.items.size())), depth + 1));
      return out;
    }
    if (py::isinstance<py::bool_>(value))
      return Config::scalar(value.cast<bool>() ? "true" : "false", where);
    if (!py::isinstance<py::str>(value) && !is_number(value) && !py::isinstance(value, path_type_))
      refuse(where, "is a " + py::str(py::type::of(value).attr("__name__")).cast<std::string>(),
             "a scenario holds dict, list, str, int, float, bool and None");
    return Config::scalar(py::str(value).cast<std::string>(), where);
  }

 private:
  static bool is_number(py::handle value) {
    return py::hasattr(value, "__index__") || py::hasattr(value, "__float__");
  }
  static std::string step(const std::string& at, const std::string& key) {
    return at.empty() ? key : at + "." + key;
  }
  Config read_dict(py::handle dict, const std::string& at, const Where& where, int depth) const {
    Config out = Config::map(where);
    out.is_replacement = py::isinstance(dict, replace_);
    for (const auto& [key, item] : py::reinterpret_borrow<py::dict>(dict)) {
      const std::string name = py::str(key).cast<std::string>();
      if (out.find(name) != nullptr) refuse({step(at, name), 0, 0}, "duplicate key");
      Config value = read(item, step(at, name), depth + 1);
      out.fields.push_back({name, {step(at, name), 0, 0}, std::move(value)});
    }
    return out;
  }

  py::object replace_, path_type_;
};

// `source`: a path, or a scenario as a dict. `set` as --set has it, `seed` as --seed.
model::ScenarioFile load(const py::object& source, const py::dict& set,
                         std::optional<std::uint64_t> seed, bool fabric_only = false) {
  model::LoadOptions options{.set = {}, .seed = seed, .keys = {}};
  if (fabric_only) options.keys = {"fabric", "faults"};
  const Reader reader(py::module_::import("weft").attr("Replace"));
  for (const auto& [key, value] : set) {
    const Config read = reader.read(value, "set");
    std::string text = read.kind == Config::Kind::scalar ? read.text : to_yaml(read);
    while (text.ends_with('\n')) text.pop_back();
    options.set.emplace_back(py::str(key).cast<std::string>(), text);
  }
  if (py::isinstance<py::dict>(source))
    return value_of(model::read_scenario(reader.read(source, ""), "scenario", options));
  return value_of(model::load_scenario(
      py::module_::import("os").attr("fspath")(source).cast<std::string>(), options));
}

model::Outcome run(const py::object& source, const py::dict& set, std::optional<std::uint64_t> seed,
                   std::uint32_t threads, bool progress) {
  const model::ScenarioFile file = load(source, set, seed);
  const py::gil_scoped_release others_go_on;
  return value_of(plan::run_scenario(
      file, {.command = "weft.run()",
             .progress = progress ? Progress::Show::automatic : Progress::Show::never,
             .threads = threads_or_all(threads)}));
}

// Ctrl-C in the interpreter ends it after the points in hand.
plan::SweepResult sweep(const py::object& source, const py::dict& set,
                        std::optional<std::uint64_t> seed, std::uint32_t threads, bool progress,
                        const std::optional<std::string>& prices) {
  const std::vector<plan::SweepPoint> points =
      value_of(plan::sweep_points(load(source, set, seed)));
  plan::Prices table;
  plan::SweepOptions options{.threads = threads_or_all(threads)};
  if (progress) options.progress = Progress::Show::automatic;
  if (prices) {
    table = value_of(plan::load_prices(*prices));
    options.price = [&](const model::Scenario& variant) {
      return plan::cost_of(variant.section("fabric"), table);
    };
  }
  std::atomic<bool> interrupted{false};
  const auto caller = std::this_thread::get_id();
  options.is_stopped = [&] {
    if (std::this_thread::get_id() == caller && !interrupted) {
      const py::gil_scoped_acquire mine;
      interrupted = PyErr_CheckSignals() != 0;
    }
    return interrupted.load();
  };
  plan::PointRows rows(points.size());
  {
    const py::gil_scoped_release others_go_on;
    const auto run_point = [](const model::ScenarioFile& point) {
      return plan::run_scenario(point, {.command = "weft.sweep()"});
    };
    plan::run_points(points, plan::run_or_serve(run_point), options, rows);
  }
  if (interrupted) throw py::error_already_set();
  std::vector<std::string> keys;
  for (const auto& [key, value] : points.front().values) keys.push_back(key);
  return plan::sweep_result(std::move(keys), rows, table.currency);
}

std::string explain(const py::object& source, const py::dict& set,
                    std::optional<std::uint64_t> seed) {
  const model::ScenarioFile file = load(source, set, seed);
  const py::gil_scoped_release others_go_on;
  const plan::Setup setup = value_of(plan::read_setup(file.variants.front()));
  return plan::to_json(
      plan::explain(setup.fabric, setup.changes.empty() ? model::State{} : setup.changes[0].state));
}

template <class T>
std::string name_and(const T& x, std::string_view what, double value) {
  return fmt::format("<{} {}: {}>", what, x.name, value);
}

void add_training(py::module_& m) {
  using T = model::TrainingOutcome;
  py::class_<T> c(m, "Training", "What a training job found out; seconds, means over GPUs.");
  c.def_readonly("model", &T::model).def_readonly("plan", &T::plan);
  for (const auto& [name, member] :
       {std::pair{"step_time_s", &T::step_time_s}, std::pair{"compute_s", &T::compute_s},
        std::pair{"idle_s", &T::idle_s}, std::pair{"bubble", &T::bubble},
        std::pair{"tokens_per_s_per_gpu", &T::tokens_per_s_per_gpu},
        std::pair{"tflops_per_gpu", &T::tflops_per_gpu}, std::pair{"mfu", &T::mfu},
        std::pair{"memory_bytes", &T::memory_bytes}, std::pair{"roofline_s", &T::roofline_s},
        std::pair{"start_s", &T::start_s}, std::pair{"bootstrap_s", &T::bootstrap_s},
        std::pair{"ingest_s", &T::ingest_s}, std::pair{"ingest_stall_s", &T::ingest_stall_s},
        std::pair{"checkpoint_s", &T::checkpoint_s},
        std::pair{"checkpoint_stall_s", &T::checkpoint_stall_s}})
    c.def_readonly(name, member);
  c.def_readonly("checkpoints", &T::checkpoints);
  c.def_readonly("roofline_resource", &T::roofline_resource)
      .def_readonly("step_times_s", &T::step_times_s)
      .def_property_readonly("exposed_s", [](const T& t) {
        py::dict out;
        for (std::size_t d = 0; d < model::dimension_count; ++d)
          out[py::str(model::to_text(static_cast<model::Dimension>(d)))] = t.exposed_s[d];
        return out;
      });
}

void add_job(py::module_& m) {
  using J = model::JobOutcome;
  py::class_<J>(m, "Job", "What one job of a variant made of it: seconds, bytes, GB/s.")
      .def_readonly("name", &J::name)
      .def_readonly("op", &J::op)
      .def_readonly("algorithm", &J::algorithm)
      .def_readonly("placement", &J::placement)
      .def_readonly("gpus", &J::gpus)
      .def_readonly("bytes_per_rank", &J::bytes_per_rank)
      .def_readonly("iterations", &J::iterations)
      .def_property_readonly(
          "unfinished",
          [](const J& j) { return j.unfinished ? model::to_text(*j.unfinished) : std::string(); },
          "Why it came to a stop before its end; empty when it did not.")
      .def_readonly("time_s", &J::time_mean_s, "Mean of an iteration or step; nan if unfinished.")
      .def_readonly("time_min_s", &J::time_min_s)
      .def_readonly("time_max_s", &J::time_max_s)
      .def_readonly("algbw_GBps", &J::algbw_gbyte_s)
      .def_readonly("busbw_GBps", &J::busbw_gbyte_s)
      .def_readonly("roofline_s", &J::roofline_s)
      .def_readonly("ratio", &J::ratio, "time_s / roofline_s; 1 is ideal.")
      .def_readonly("training", &J::training, "Of training jobs; else None.")
      .def("__repr__", [](const J& j) { return name_and(j, "Job", j.time_mean_s); });
}

void add_variant(py::module_& m) {
  using T = model::TierOutcome;
  py::class_<T>(m, "Tier", "All links of one tier that some flow could use; loads in [0, 1].")
      .def_readonly("name", &T::name)
      .def_readonly("links", &T::links)
      .def_readonly("mean_load", &T::mean_load)
      .def_readonly("max_load", &T::max_load)
      .def_readonly("mmr", &T::mmr, "max_load / mean_load")
      .def_readonly("histogram", &T::histogram)
      .def("__repr__", [](const T& t) { return name_and(t, "Tier", t.max_load); });
  using H = model::HeatMap;
  const auto matrix = [](std::vector<double> H::* values) {
    return [values](const H& h) {
      const std::vector<double>& v = h.*values;
      return py::array_t<double>({h.rows.size(), h.columns.size()}, v.data());
    };
  };
  py::class_<H>(m, "HeatMap", "Load between two roles of switches; nan: no link, or failed.")
      .def_readonly("row_role", &H::row_role)
      .def_readonly("column_role", &H::column_role)
      .def_readonly("rows", &H::rows)
      .def_readonly("columns", &H::columns)
      .def_property_readonly("up", matrix(&H::up), "rows x columns, row to column")
      .def_property_readonly("down", matrix(&H::down), "rows x columns, column to row");
  using V = model::VariantOutcome;
  py::class_<V>(m, "Variant", "One variant of a run.")
      .def_readonly("name", &V::name)
      .def_property_readonly("fabric", [](const V& v) { return v.fabric.text; })
      .def_readonly("scheme", &V::scheme)
      .def_readonly("qps", &V::qps)
      .def_readonly("faults", &V::faults)
      .def_readonly("jobs", &V::jobs)
      .def_readonly("tiers", &V::tiers)
      .def_readonly("heat_maps", &V::heat_maps)
      .def_property_readonly("notes",
                             [](const V& v) {
                               std::vector<std::string> out;
                               for (const model::Note& note : v.notes) out.push_back(note.text);
                               return out;
                             })
      .def_readonly("digest", &V::digest)
      .def_readonly("scenario_text", &V::scenario_text, "The effective scenario, as YAML.")
      .def("__repr__",
           [](const V& v) { return fmt::format("<Variant {}: {} jobs>", v.name, v.jobs.size()); });
}

void add_results(py::module_& m) {
  using O = model::Outcome;
  py::class_<O>(m, "Run", "What weft run found out.")
      .def_readonly("scenario", &O::scenario)
      .def_readonly("engine", &O::engine)
      .def_readonly("seed", &O::seed)
      .def_readonly("variants", &O::variants, "The first is what the others are compared with.")
      .def(
          "json", [](const O& o) { return value_of(plan::report::json_text(o)); },
          "report.json as text.")
      .def(
          "html", [](const O& o) { return value_of(plan::report::html_text(o)); },
          "report.html as text: a page that needs nothing else.")
      .def(
          "write",
          [](const O& o, const std::string& directory) {
            check(plan::report::write_report(o, directory));
          },
          py::arg("directory"), "Writes report.json, report.html and trace.json.gz.")
      .def("__str__", [](const O& o) { return plan::report::terminal_text(o); });
  using S = plan::SweepResult;
  py::class_<S>(m, "Sweep", "Rows of a sweep: one per point, variant and job.")
      .def_readonly("keys", &S::keys)
      .def_readonly("failed_points", &S::failed_points)
      .def_readonly("currency", &S::currency)
      .def("json", [](const S& s) { return plan::to_json(s); })
      .def("csv", [](const S& s) { return plan::to_csv(s); })
      .def("__len__", [](const S& s) { return s.rows.size(); })
      .def("__str__", [](const S& s) { return plan::to_table(s); });
}

// weft.Error(text), with the parts of its first error and all of them under `errors`.
void raise(const Error& error) {
  const py::object type = py::module_::import("weft").attr("Error");
  const py::object raised = type(error.text());
  raised.attr("what") = error.what;
  raised.attr("hint") = error.hint;
  raised.attr("where") = error.where.text();
  py::list all;
  all.append(Error{error.code, error.where, error.what, error.hint, {}}.text());
  for (const Error& more : error.more) all.append(more.text());
  raised.attr("errors") = all;
  PyErr_SetObject(type.ptr(), raised.ptr());
}

}  // namespace
}  // namespace weft::python

PYBIND11_MODULE(_weft, m) {
  using namespace weft::python;
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
      raise(failure.error);
    }
  });
  add_training(m);
  add_job(m);
  add_variant(m);
  add_results(m);
  m.attr("__version__") = WEFT_VERSION;
  const auto source = py::arg("scenario");
  const auto set = py::arg("set") = py::dict();
  const auto seed = py::arg("seed") = py::none();
  const auto threads = py::arg("threads") = 0, progress = py::arg("progress") = false;
  m.def("run", run, source, py::kw_only(), set, seed, threads, progress,
        "Simulates a scenario: a path, or a dict with the keys of a scenario file.");
  m.def("sweep", sweep, source, py::kw_only(), set, seed, threads, progress,
        py::arg("prices") = py::none(),
        "Simulates every combination of the scenario's sweep: keys.");
  m.def("explain_json", explain, source, py::kw_only(), set, seed);
}
