"""weft from Python: the same simulator, scenarios, errors and numbers as the command line.

    import weft
    result = weft.run({"fabric": {"generator": "ai_zone", "racks": 4},
                       "jobs": [{"name": "reduce", "collective": "all_reduce",
                                 "gpus": 64, "bytes": "256 MiB"}]})
    result.variants[0].jobs[0].busbw_GBps
    result.frame()                       # a row for each variant and job, as a pandas frame

A scenario is a path or a dict with the keys of docs/scenario.md; `set` and `seed` are --set and
--seed. Other threads go on while weft simulates.
"""
import json as _json
import pathlib as _pathlib
import shutil as _shutil
import subprocess as _subprocess


class Error(Exception):
    """What weft says of wrong input: `what`, `where`, `hint` of the first error; `errors` has all."""


class Replace(dict):
    """A dict that takes the place of what it is laid on, as !replace does under `compare`."""


from . import _weft  # noqa: E402  (it refers to the classes above)
from ._weft import HeatMap, Job, Run, Sweep, Tier, Training, Variant, __version__, run, sweep  # noqa: E402

__all__ = ["Error", "HeatMap", "Job", "Replace", "Run", "Sweep", "Tier", "Training", "Variant",
           "command", "explain", "flows", "perf", "run", "sweep"]

_training = ["mfu", "tflops_per_gpu", "tokens_per_s_per_gpu", "bubble", "compute_s", "idle_s",
             "memory_bytes"]


def _run_frame(result):
    """A row for each variant and job: times in seconds, bandwidths in GB/s."""
    import pandas
    rows = []
    for variant in result.variants:
        for job in variant.jobs:
            row = {name: getattr(job, name) for name in
                   ("gpus", "op", "algorithm", "time_s", "busbw_GBps", "roofline_s", "ratio", "unfinished")}
            if job.training is not None:
                row |= {name: getattr(job.training, name) for name in _training}
                row |= {f"exposed_{name}_s": seconds for name, seconds in job.training.exposed_s.items()}
            rows.append({"variant": variant.name, "job": job.name} | row)
    return pandas.DataFrame(rows)


def _run_item(result, name):
    for variant in result.variants:
        if variant.name == name:
            return variant
    raise KeyError(f"no variant {name!r}; there are {', '.join(v.name for v in result.variants)}")


def _sweep_frame(result):
    """The rows of the sweep; columns of its keys are numbers where all their values are."""
    import pandas
    rows = [row.pop("point") | row for row in _json.loads(result.json())["rows"]]
    frame = pandas.DataFrame(rows)
    for key in result.keys:
        numbers = pandas.to_numeric(frame[key], errors="coerce")
        if not numbers.isna().any():
            frame[key] = numbers
    return frame


Run.frame, Run.__getitem__, Sweep.frame = _run_frame, _run_item, _sweep_frame


def explain(scenario, *, set={}, seed=None):
    """Properties of the fabric of the first variant, as `weft explain --json` has them."""
    return _json.loads(_weft.explain_json(scenario, set=set, seed=seed))


def _program():
    beside = _pathlib.Path(__file__).with_name("bin") / "weft"
    found = str(beside) if beside.exists() else _shutil.which("weft")
    if found is None:
        raise Error("the program weft was not found; add it to PATH")
    return found


def command(*arguments, input=None):
    """Any other command, in a process of its own: what it prints with --json, parsed.

    >>> weft.command("life", "scenarios/life-llama3.yaml")
    """
    done = _subprocess.run([_program(), *map(str, arguments), "--json", "--quiet"], input=input,
                           capture_output=True, text=True)
    if not done.stdout.strip():
        raise Error(done.stderr.strip().removeprefix("weft: error: "))
    try:
        return _json.loads(done.stdout)
    except _json.JSONDecodeError:  # commands that print a document a line
        return [_json.loads(line) for line in done.stdout.splitlines()]


def _options(options):
    for name, value in options.items():
        if value is None or value is False:
            continue
        dashes = "-" if len(name) == 1 else "--"
        yield dashes + name.replace("_", "-")
        if value is not True:
            yield str(value)


def perf(op, **options):
    """nccl-tests' table for one operation: options are those of `weft perf`, e.g. gpus=64, b="1M"."""
    return command("perf", op, *_options(options))


def flows(scenario, **options):
    """One set of flows on the scenario's fabric: options are those of `weft flows`."""
    return command("flows", scenario, *_options(options))
