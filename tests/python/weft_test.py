"""The Python module against the command line: the same numbers, errors and bytes.

weft_test.py WEFT REPOSITORY, with the package on PYTHONPATH.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import weft

program, repository = sys.argv[1], pathlib.Path(sys.argv[2])


def by_command(*arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)


zone = {"fabric": {"generator": "ai_zone", "racks": 4},
        "jobs": [{"name": "reduce", "collective": "all_reduce", "gpus": 64, "bytes": "256 MiB"}]}
zone_yaml = """fabric: {generator: ai_zone, racks: 4}
jobs: [{name: reduce, collective: all_reduce, gpus: 64, bytes: 256 MiB}]
"""


class WeftTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, text):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(text)
        return path

    def test_a_dict_is_the_file_with_the_same_keys(self):
        path = self.file("zone.yaml", zone_yaml)
        told = json.loads(by_command("run", path, "--json").stdout)["variants"]["base"]
        for result in (weft.run(zone), weft.run(path), weft.run(str(path))):
            variant = result["base"]
            self.assertEqual(variant.digest, told["digest"])
            self.assertEqual(variant.jobs[0].time_s, told["jobs"]["reduce"]["time_s"]["mean"])
            self.assertEqual(variant.jobs[0].busbw_GBps, told["jobs"]["reduce"]["busbw_GBps"])
            self.assertEqual(result.frame().loc[0, "busbw_GBps"], variant.jobs[0].busbw_GBps)
            self.assertEqual(json.loads(result.json())["variants"]["base"]["digest"], told["digest"])

    def test_set_and_seed_are_those_of_the_command_line(self):
        path = self.file("zone.yaml", zone_yaml)
        told = json.loads(by_command("run", path, "--json", "--seed", 7, "--set", "fabric.spines=4",
                                     "--set", "routing={scheme: spray}").stdout)
        result = weft.run(zone, seed=7, set={"fabric.spines": 4, "routing": {"scheme": "spray"}})
        self.assertEqual(result.seed, 7)
        self.assertEqual(result.variants[0].digest, told["variants"]["base"]["digest"])
        self.assertEqual(result.variants[0].scheme, "spray")

    def test_variants_heat_maps_and_training(self):
        result = weft.run({"fabric": {"generator": "ai_zone", "racks": 4, "spines": 4},
                           "jobs": [{"name": "train", "model": "llama3-8b", "batch": 64, "sequence": 4096,
                                     "parallel": {"tp": 8, "dp": 8}}],
                           "compare": {"zone": {}, "spray": {"routing": {"scheme": "spray"}},
                                       "hpn": {"fabric": weft.Replace(generator="hpn", segments=1,
                                                                      hosts_per_segment=8)}}})
        self.assertEqual([v.name for v in result.variants], ["zone", "spray", "hpn"])
        self.assertTrue(result["hpn"].fabric.startswith("hpn"))
        zone_map = result["zone"].heat_maps[0]
        self.assertEqual(zone_map.up.shape, (len(zone_map.rows), len(zone_map.columns)))
        training = result["zone"].jobs[0].training
        parts = training.compute_s + training.idle_s + sum(training.exposed_s.values())
        self.assertTrue(math.isclose(parts, training.step_time_s, rel_tol=1e-6))
        frame = result.frame()
        self.assertEqual(len(frame), 3)
        self.assertTrue((frame["mfu"] > 0).all())
        with self.assertRaises(KeyError):
            result["none"]

    def test_errors_are_those_of_the_command_line(self):
        path = self.file("bad.yaml", "fabric: {generator: ai_zone, rakcs: 4, spines: x}\njobs: []\n")
        told = by_command("run", path).stderr
        with self.assertRaises(weft.Error) as raised:
            weft.run(path)
        self.assertEqual("".join(f"weft: error: {line}\n" for line in str(raised.exception).splitlines()), told)
        self.assertGreaterEqual(len(raised.exception.errors), 2)
        with self.assertRaises(weft.Error) as raised:
            weft.run({"fabric": {"generator": "ai_zone", "racks": 4, "rakcs": 4}})
        self.assertIn("fabric.rakcs: unknown key", str(raised.exception))
        self.assertEqual(raised.exception.where, "fabric.rakcs")
        for wrong in ({"fabric": object()}, {"fabric": {"generator": {1, 2}}}, "/does/not/exist.yaml"):
            with self.assertRaises(weft.Error):
                weft.run(wrong)
        with self.assertRaises(TypeError):
            weft.run(5)
        deep = {}
        for _ in range(100):
            deep = {"a": deep}
        with self.assertRaises(weft.Error):
            weft.run(deep)

    def test_a_sweep_is_that_of_the_command_line(self):
        swept = zone | {"sweep": {"fabric.spines": [4, 8], "routing.scheme": ["ecmp", "spray"]}}
        path = self.file("sweep.yaml", zone_yaml + "sweep: {fabric.spines: [4, 8], routing.scheme: [ecmp, spray]}\n")
        prices = repository / "scenarios/prices-example.yaml"
        told = by_command("sweep", path, "--json", "--prices", prices).stdout
        for threads in (1, 3):
            result = weft.sweep(swept, threads=threads, prices=str(prices))
            self.assertEqual(result.json(), told)
        frame = result.frame()
        self.assertEqual(list(frame["fabric.spines"]), [4, 4, 8, 8])
        self.assertEqual(list(frame["pareto"]).count("best"), 1)
        with self.assertRaises(weft.Error):
            weft.sweep(zone)

    def test_other_threads_go_on(self):
        ticks, ended = [], threading.Event()

        def tick():
            while not ended.is_set():
                ticks.append(time.perf_counter())
                time.sleep(0.001)

        large = {"fabric": {"generator": "ai_zone", "racks": 64},
                 "jobs": [{"name": "a", "collective": "all_to_all", "gpus": 512, "bytes": "1 GiB"}]}
        other = threading.Thread(target=tick)
        other.start()
        begin = time.perf_counter()
        weft.run(large)
        end = time.perf_counter()
        ended.set()
        other.join()
        self.assertGreater(end - begin, 0.05)
        inside = sum(begin + 0.01 < at < end - 0.01 for at in ticks)
        self.assertGreater(inside, 5)

    def test_runs_on_two_threads_do_not_meet(self):
        digests = []
        threads = [threading.Thread(target=lambda: digests.append(weft.run(zone).variants[0].digest))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(digests, [weft.run(zone).variants[0].digest] * 4)

    def test_other_commands(self):
        told = json.loads(by_command("perf", "all_reduce", "-b", "1M", "-e", "16M", "-f", "2", "--json").stdout)
        self.assertEqual(weft.perf("all_reduce", b="1M", e="16M", f=2), told)
        self.assertGreater(len(weft.command("faults")), 30)
        with self.assertRaises(weft.Error):
            weft.perf("all_reduce", gpus=1)
        facts = weft.explain(zone)
        self.assertEqual(facts["gpus"], 64)

    def test_the_report_is_written(self):
        out = pathlib.Path(self.folder.name) / "out"
        weft.run(zone).write(str(out))
        self.assertEqual(sorted(path.name for path in out.iterdir()),
                         ["report.html", "report.json", "trace.json.gz"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
