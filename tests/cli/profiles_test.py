"""Profiles of PyTorch: public files and made jobs with exact truth. Skipped where the shared data are absent."""
import decimal
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import unittest

from program import PROGRAM, ROOT, ProgramTest, json_lines

SHARED = ROOT.parent / "shared" / "data" / "traces"
MEASURE = """import os, sys
pid = os.spawnv(os.P_NOWAIT, "/bin/sh", ["sh", "-c", 'exec "$@" > /dev/null', *sys.argv[:1], *sys.argv[1:]])
_, status, usage = os.wait4(pid, 0)
assert status == 0
print(usage.ru_maxrss)"""
OWN_KEYS = ("top_kernels", "top_operators", "idle")
# The kinds of changes that the made jobs have an answer for, as flags.
CHANGES = {
    "recorded": [],
    "comm x0.5": ["--scale-comm", "0.5"],
    "comm x4": ["--scale-comm", "4"],
    "gpu x0.5": ["--scale-compute", "0.5"],
    "gpu x2": ["--scale-compute", "2x"],
    "rank 1 late by 3 ms in step 2": ["--late", "1:3ms@2"],
}


class OwnProfile(ProgramTest):
    """A step under PyTorch 2.11, against a count of its events that shares nothing with the program."""
    HOST, DEVICE = (str(ROOT / f"tests/fixtures/profiles/pytorch-2.11-{side}.json.gz") for side in ("host", "device"))

    def answer(self, *command):
        code, out, err = self.run_program(*command)
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def events(self):
        with gzip.open(self.DEVICE) as file:
            events = json.load(file, parse_float=decimal.Decimal)["traceEvents"]
        return [event for event in events if event["ph"] == "X"]

    def test_facts(self):
        events = self.events()
        kernels, memsets = ([event for event in events if event.get("cat") == kind] for kind in ("kernel", "gpu_memset"))
        spans = sorted((int(event["ts"] * 1000), int((event["ts"] + event["dur"]) * 1000)) for event in kernels + memsets)
        busy, end = 0, 0
        for start, stop in spans:
            busy += max(0, stop - max(start, end))
            end = max(end, stop)
        waits = [event for event in events if event["name"] == "cudaDeviceSynchronize"]
        got = self.answer("trace", "stats", self.DEVICE, "--json")["files"][0]["kineto"]
        self.assertGreater(len(kernels), 200)
        self.assertEqual((got["kernels"], got["memset"]), (len(kernels), len(memsets)))
        self.assertEqual((got["whole"]["busy_ns"], got["whole"]["span_ns"]), (busy, end - spans[0][0]))
        self.assertEqual(got["gpu_ops_linked_to_a_call"], len(spans))
        self.assertEqual(got["blocking_calls"], {"count": len(waits), "sum_ns": int(sum(w["dur"] for w in waits) * 1000)})

    def test_every_operator_is_linked(self):
        operators = sum(event.get("cat") in ("cpu_op", "user_annotation") for event in self.events())
        code, out, err = self.run_program("trace", "link", "--host", self.HOST, "--device", self.DEVICE)
        self.assertEqual(code, 0, err)
        self.assertIn(f"{operators:,} of {operators:,} operators linked", out)

    def test_replay_and_rows(self):
        products = {str(event["args"]["Input Dims"]) for event in self.events() if event["name"] == "aten::mm"}
        code, _, err = self.run_program("trace", "import", self.HOST, self.DEVICE, "--out", str(self.folder / "job"), "--rows",
                                        str(self.folder / "job"))
        self.assertEqual(code, 0, err)
        rows = (self.folder / "job.kernels.csv").read_text().splitlines()[1:]
        self.assertEqual(len(rows), len(products))
        replay = self.answer("simulate", "--workload", str(self.folder / "job"), "--json")
        host = [event for event in self.events() if event.get("cat") in ("cpu_op", "cuda_runtime", "cuda_driver")]
        device = [event for event in self.events() if event.get("cat") in ("kernel", "gpu_memset")]
        end = max(event["ts"] + event["dur"] for event in device) - min(event["ts"] for event in host)
        replay = self.answer("simulate", "--workload", str(self.folder / "job"), "--json")
        self.assertAlmostEqual(replay["ranks"][0]["device_end_ns"] / float(end * 1000), 1.0, delta=0.005)
        slower = self.answer("simulate", "--workload", str(self.folder / "job"), "--json", "--scale-compute", "20")
        busy = sum(event["dur"] for event in device)
        self.assertGreaterEqual(slower["ranks"][0]["device_end_ns"], 20 * busy * 1000)


@unittest.skipUnless(SHARED.exists(), "needs ../shared/data/traces")
class SharedProfiles(ProgramTest):
    def extract(self, archive):
        with tarfile.open(SHARED / archive) as files:
            files.extractall(self.folder)

    def answer(self, *command):
        code, out, err = self.run_program(*command)
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def import_job(self, files):
        return self.answer("trace", "import", *map(str, files), "--out", str(self.folder / "job"), "--json")

    def replay(self, *flags):
        return self.answer("simulate", "--workload", str(self.folder / "job"), "--json", *flags)

    def steps(self, *flags):
        return [step["duration_ns"] for step in self.replay(*flags)["steps"]]

    # To the nanosecond, with those of an independent program.
    def test_facts_of_public_profiles(self):
        self.extract("param/dlrm_kineto.tar.gz")
        expected = json.loads((SHARED / "expected/kineto-facts.json").read_text())
        for name, facts in expected.items():
            path = self.folder / name.split("!")[1] if "!" in name else SHARED / name
            with self.subTest(name):
                got = self.answer("trace", "stats", str(path), "--json")["files"][0]["kineto"]
                self.assertEqual({key: value for key, value in got.items() if key not in OWN_KEYS}, facts)
                whole = got["whole"]
                self.assertEqual(got["idle"]["all_ns"], whole["span_ns"] - whole["busy_ns"])

    # Other seeds of these jobs behave alike: nothing here is fitted to them (replay_test has random jobs of its own).
    def test_made_jobs_follow_every_change(self):
        for job in ("a_4ranks", "b_plain_us", "c_prefetch_sync", "d_clocks"):
            self.extract(f"synthetic/{job}.tar.xz")
            self.import_job(sorted((self.folder / job).glob("rank*.json.gz")))
            truth = json.loads((self.folder / job / "truth.json").read_text())
            for change, flags in CHANGES.items():
                with self.subTest(f"{job} {change}"):
                    want = [step for rank in sorted(truth["steps_ns"][change]) for step in truth["steps_ns"][change][rank]]
                    for got, right in zip(self.steps(*flags), want, strict=True):
                        self.assertAlmostEqual(got / right, 1, delta=0.005)
            if job == "b_plain_us":
                continue  # no metadata: groups and kinds are not known
            with self.subTest(f"{job} collectives"):
                def key(one):
                    return one["kind"], one["members"], one["number"]
                for got, right in zip(sorted(self.replay()["collectives"], key=key), sorted(truth["collectives"], key=key),
                                      strict=True):
                    self.assertEqual(key(got), key(right))
                    self.assertAlmostEqual(got["wire_ns"] / right["wire_ns"], 1, delta=0.001)
                    self.assertAlmostEqual(got["waiting_ns"], right["waiting_ns"], delta=0.001 * right["waiting_ns"])

    def test_dlrm_on_eight_ranks(self):
        self.extract("param/dlrm_kineto.tar.gz")
        made = self.import_job(sorted((self.folder / "dlrm_kineto").glob("*.json")))
        for rank in made["files"]:
            self.assertGreaterEqual(rank["blocked_with_cause_ns"], 0.99 * rank["blocked_ns"])
            self.assertEqual(rank["unexplained_idle_ns"], 0)
        for rank in made["replay"]["ranks"]:
            self.assertAlmostEqual(rank["device_end_ns"] / rank["recorded_device_end_ns"], 1, delta=0.005)
            self.assertLessEqual(rank["start_off_p95_ns"], 50_000)
        recorded = [14455, 19901, 13017, 19313, 17979, 17797, 13091, 12509]  # us
        as_recorded = self.steps()
        for got, right in zip(as_recorded, recorded, strict=True):
            self.assertAlmostEqual(got / right / 1000, 1, delta=0.005)
        # Rank 7 arrives last everywhere: its lateness is everyone's. Rank 1 waits for the others: its lateness is nobody's.
        for got, before in zip(self.steps("--late", "7:3ms"), as_recorded, strict=True):
            self.assertAlmostEqual(got - before, 3_000_000, delta=50_000)
        for got, before in zip(self.steps("--late", "1:3ms"), as_recorded, strict=True):
            self.assertAlmostEqual(got, before, delta=50_000)
        together = json.loads((SHARED / "expected/dlrm-replay.json").read_text())["changed"]["all ranks start together"]
        for got, right in zip(self.steps("--common-start"), together.values(), strict=True):
            self.assertAlmostEqual(got / right, 1, delta=0.01)
        self.assertAlmostEqual(self.steps("--scale-comm", "10")[7] / as_recorded[7], 1.044, delta=0.005)

    # The whole recorded span. Where much idle time has no known cause, no accuracy is claimed; it is reported.
    def test_single_ranks(self):
        for name in ("hta/trace_diff__control", "hta/df_index_resolver__df_index_resolver",
                     "hta/nccl_parser_config__nccl_data", "hta/ns_resolution_trace__rank-0.Apr_03_18_51_38.1102.pt.trace",
                     "param/linear_kineto", "param/resnet_kineto", "hta/negative_queue_length__rank0"):
            made = self.import_job([SHARED / f"{name}.json.gz"])
            rank = made["replay"]["ranks"][0]
            with self.subTest(name):
                if name == "hta/negative_queue_length__rank0":
                    self.assertGreater(rank["unexplained_idle_ns"], 0.01 * rank["recorded_host_ns"])
                    continue
                self.assertAlmostEqual(rank["host_ns"] / rank["recorded_host_ns"], 1, delta=0.01)
                self.assertAlmostEqual(rank["device_end_ns"] / rank["recorded_device_end_ns"], 1, delta=0.015)

    # 30 and 40 iterations were recorded without ProfilerStep.
    def test_steps_of_loops_without_annotations(self):
        for name, iterations in (("param/linear_kineto", 40), ("param/resnet_kineto", 30)):
            made = self.import_job([SHARED / f"{name}.json.gz"])
            with self.subTest(name):
                self.assertTrue(made["files"][0]["steps_guessed"])
                self.assertAlmostEqual(len(made["replay"]["steps"]), iterations, delta=1)

    # On the machine that it was recorded on, every kernel with shapes takes the recorded time; on a faster one, less.
    def test_dlrm_on_another_machine(self):
        self.extract("param/dlrm_kineto.tar.gz")
        self.import_job(sorted((self.folder / "dlrm_kineto").glob("*.json")))
        kept = self.replay("--cluster", "dgx-a100")["kept_as_recorded"]
        self.assertRegex(kept[0], "^time on the wire of 0 of 8 collectives")
        self.assertRegex(kept[1], "the others are scaled from v100-sxm2-32gb to a100-sxm-80gb")

    def test_operators_of_dlrm_are_linked_without_ids(self):
        self.extract("param/dlrm_kineto.tar.gz")
        self.extract("param/dlrm_pytorch_et.tar.gz")
        for rank in range(8):
            device = next((self.folder / "dlrm_kineto").glob(f"worker{rank}_*"))
            host = self.folder / f"dlrm_pytorch_et/dlrm_eg_{rank}.json"
            link = self.answer("trace", "link", "--host", str(host), "--device", str(device), "--json")
            self.assertEqual(link["operators"], 1672)
            self.assertGreaterEqual(link["linked"], 1666)

    def test_ranks_whose_collectives_were_sampled_are_refused(self):
        files = [str(SHARED / f"hta/trace_filter__sampled_rank-{rank}.json.gz") for rank in (0, 1)]
        code, _, err = self.run_program("trace", "import", *files, "--out", str(self.folder / "job"))
        self.assertEqual(code, 2)
        self.assertRegex(err, "rank [01]: its .*(time on the wire|before the last rank)")

    # Both files of a rank: sizes of collectives, which the profile of 2023 lacks, and what the host waits for.
    def test_dlrm_with_its_execution_traces(self):
        self.extract("param/dlrm_kineto.tar.gz")
        self.extract("param/dlrm_pytorch_et.tar.gz")
        profiles = sorted((self.folder / "dlrm_kineto").glob("*.json"))
        hosts = sorted((self.folder / "dlrm_pytorch_et").glob("*.json"))
        made = self.import_job(profiles + hosts)
        self.assertEqual(len(made["hosts"]), 8)
        for host in made["hosts"]:
            self.assertGreaterEqual(host["linked"], 1666)
            self.assertEqual(host["collectives_added"], 8)
            self.assertGreater(host["waits_named"], 0)
        for rank in made["files"]:
            self.assertGreater(rank["waits_named_by_the_trace"], 0)
            self.assertGreaterEqual(rank["blocked_with_cause_ns"], 0.99 * rank["blocked_ns"])
        for rank in made["replay"]["ranks"]:
            self.assertAlmostEqual(rank["device_end_ns"] / rank["recorded_device_end_ns"], 1, delta=0.005)
            self.assertLessEqual(rank["start_off_p95_ns"], 50_000)
        as_recorded = self.steps()
        for got, before in zip(self.steps("--late", "7:3ms"), as_recorded, strict=True):
            self.assertAlmostEqual(got - before, 3_000_000, delta=50_000)
        self.assertRegex(self.replay("--cluster", "dgx-a100")["kept_as_recorded"][0], "^time on the wire of 0 of 8 collectives")

    def test_execution_traces_alone_and_of_other_processes(self):
        self.extract("param/dlrm_kineto.tar.gz")
        self.extract("param/dlrm_pytorch_et.tar.gz")
        hosts = sorted((self.folder / "dlrm_pytorch_et").glob("*.json"))
        graphs = self.import_job(hosts)["host_graphs"]
        self.assertEqual([graph["collectives"] for graph in graphs], [8] * 8)
        others = [SHARED / "param/resnet_kineto.json.gz", SHARED / "param/resnet_et.json.gz"]
        code, _, err = self.run_program("trace", "import", *map(str, others), "--out", str(self.folder / "job"))
        self.assertEqual(code, 2)
        self.assertIn("is of process 23442", err)
        for name in ("1.0.3-chakra.0.0.4/resnet_1gpu_et", "1.1.0-chakra.0.0.4/resnet_2gpu_et", "resnet_et", "linear_et"):
            with self.subTest(name):
                graph = self.import_job([SHARED / f"param/{name}.json.gz"])["host_graphs"][0]
                self.assertGreater(graph["nodes"], 100)
                self.assertEqual(graph["without_group"], 0)

    def peak(self, *command):
        """Bytes of the command's process at its peak. A small process starts it: memory before exec counts, too."""
        peak = subprocess.run([sys.executable, "-S", "-c", MEASURE, PROGRAM, *command], capture_output=True, text=True, check=True)
        return int(peak.stdout) * 1024

    # `trace link`: the whole process is below the size of the uncompressed file. `trace stats` and `trace import`: what
    # the process needs more than `--version` does (about 10 MB, most of it pages of the program and its libraries, whose
    # number depends on the build and on the state of the page cache) is below two thirds of the file.
    def test_memory_is_below_the_size_of_the_file(self):
        program = self.peak("--version")
        for name in ("linear", "resnet"):
            profile = self.folder / f"{name}.json"
            host = "linear_et" if name == "linear" else "resnet_et.2023-07-12.pairs-with-resnet_kineto"
            profile.write_bytes(gzip.decompress((SHARED / f"param/{name}_kineto.json.gz").read_bytes()))
            size = profile.stat().st_size
            for command in (("trace", "stats", str(profile)), ("trace", "import", str(profile), "--out", str(self.folder / "job"))):
                with self.subTest(f"{name} {command[1]}"):
                    self.assertLessEqual(self.peak(*command) - program, size * 2 // 3)
            with self.subTest(f"{name} link"):
                self.assertLessEqual(self.peak("trace", "link", "--host", str(SHARED / f"param/{host}.json.gz"), "--device",
                                               str(profile)), size)

    # One rank that is not rank 0: it is replayed with every change, by its prefix and by its file.
    def test_a_rank_other_than_0_is_replayed(self):
        self.import_job([SHARED / "hta/trace_diff__control.json.gz"])
        recorded = self.replay()
        self.assertEqual([rank["rank"] for rank in recorded["ranks"]], [3])
        by_file = self.answer("simulate", "--workload", str(self.folder / "job.3.et"), "--json", "--late", "3:2ms")
        self.assertEqual(by_file["steps"][0]["duration_ns"], recorded["steps"][0]["duration_ns"] + 2_000_000)

    # Ranks 0, 1 and 3 of four: the import and the replay agree, and 2x the compute is slower on all.
    def test_a_job_with_a_missing_rank_is_replayed(self):
        self.extract("synthetic/a_4ranks.tar.xz")
        files = sorted((self.folder / "a_4ranks").glob("rank*.json.gz"))
        made = self.import_job([files[0], files[1], files[3]])
        replay = self.replay()
        self.assertEqual([rank["rank"] for rank in replay["ranks"]], [0, 1, 3])
        self.assertEqual(replay["steps"], made["replay"]["steps"])
        for slow, step in zip(self.steps("--scale-compute", "2"), replay["steps"], strict=True):
            self.assertGreater(slow, step["duration_ns"])

    # Its work has no calls: it is imported in the order of its streams and marked.
    def test_mtia_is_marked(self):
        made = self.import_job([SHARED / "hta/mtia_inference_trace__mtia_inference_rank_0.json.gz"])
        self.assertEqual(made["files"][0]["device_ops"], 877 + 37 + 36 + 24)  # DMA, remote, merge, processing elements
        self.assertRegex("\n".join(made["notes"]), "974 device operations are of MTIA")


class Replays(ProgramTest):
    """What a replay refuses: the example of two ranks."""

    def import_example(self):
        files = [str(ROOT / f"examples/profiles/rank{rank}.json") for rank in (0, 1)]
        code, _, err = self.run_program("trace", "import", *files, "--out", str(self.folder / "job"))
        self.assertEqual(code, 0, err)
        return ("simulate", "--workload", str(self.folder / "job"))

    def assert_refused(self, command, message):
        code, out, err = self.run_program(*command)
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, message)

    def test_a_part_of_an_import_is_refused(self):
        self.import_example()
        one = ("--workload", str(self.folder / "job.0.et"))
        self.assert_refused(("simulate", *one), "1 of 2 ranks imported together has no file: 1")
        self.assert_refused(("simulate", *one, *one), "of rank 0, as another file is")

    # Files of an earlier import under the same prefix are not mixed with those of a later one.
    def test_files_of_two_imports_are_refused(self):
        command = self.import_example()
        code, _, err = self.run_program("trace", "import", str(ROOT / "examples/profiles/rank0.json"), "--out", str(self.folder / "job"))
        self.assertEqual(code, 0, err)
        self.assert_refused(command, "of another import")

    def test_times_beyond_the_clock_are_refused(self):
        command = self.import_example()
        for late in ("1:1e30s", "1:1e7s", "1:-3ms", "1:1e300s"):
            with self.subTest(late):
                self.assert_refused((*command, f"--late={late}"), "^error: --late: ")

    def test_flags_without_effect_are_refused(self):
        command = self.import_example()
        for flags in (("--timeline", str(self.folder / "x.json")), ("--explain",), ("--semantics", "physical"), ("--backend", "flow"),
                      ("--table", "ranks"), ("--tables", str(self.folder / "t")), ("--slow", "0:2"), ("--fold", "off"), ("--energy",),
                      ("--roofline",), ("--copies", "2"), ("--chunk-order", "themis"), ("--link-changes", "x"), ("--flows", "x")):
            with self.subTest(flags[0]):
                self.assert_refused((*command, *flags), f"^error: {flags[0]}: is not valid with the replay of an imported profile")

    # A call that blocks for 5 ms although nothing runs on the device.
    def test_blocking_without_a_cause_is_listed_as_kept(self):
        events = [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1000, "dur": 5,
                   "args": {"correlation": 1}},
                  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1010, "dur": 100,
                   "args": {"device": 0, "stream": 7, "correlation": 1}},
                  {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1, "ts": 1200, "dur": 5000,
                   "args": {"correlation": 2}}]
        profile = self.write("blocked.json", json.dumps({"schemaVersion": 1, "traceEvents": events}))
        code, out, err = self.run_program("trace", "import", str(self.folder / profile), "--out", str(self.folder / "job"), "--json")
        self.assertEqual(code, 0, err)
        counts = json.loads(out)["files"][0]
        without = counts["blocked_ns"] - counts["blocked_with_cause_ns"]
        self.assertAlmostEqual(without, 5_000_000, delta=50_000)
        code, out, err = self.run_program("simulate", "--workload", str(self.folder / "job"))
        self.assertEqual(code, 0, err)
        self.assertIn(f"{without * 1e-6:.3f} ms of blocking calls without a known cause", out)

    def test_the_workload_is_named_before_a_missing_cluster(self):
        for file, message in ((str(ROOT / "examples/profiles/rank0.json"), '"orrery trace stats" reads it'), ("nothing_here", "nothing_here")):
            with self.subTest(file):
                self.assert_refused(("simulate", "--workload", file), message)

    def test_events_that_are_dropped_are_counted_with_their_cause(self):
        events = [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1000 + 100 * i, "dur": (50, -3)[i],
                   "args": {"device": 0, "stream": 7}} for i in range(2)]
        profile = self.write("negative.json", json.dumps({"schemaVersion": 1, "traceEvents": events}))
        code, out, err = self.run_program("trace", "stats", str(self.folder / profile))
        self.assertEqual(code, 0, err)
        self.assertRegex(out + err, "1 event is dropped: no time, a negative one")


class Rows(ProgramTest):
    """Measurements of a profile, read by the commands that --rows is for."""

    def run_ok(self, *command):
        code, out, err = self.run_program(*command)
        self.assertEqual(code, 0, err)
        return out

    # Two ranks of an A100: products of several sizes at 60 % of 312 TFLOP/s, all-reduces at 200 GB/s.
    def profile(self, rank):
        events, now = [], 1000.0
        def event(cat, name, tid, start, length, args, device=False):
            events.append({"ph": "X", "cat": cat, "name": name, "pid": 0 if device else 9, "tid": tid, "ts": start, "dur": length,
                           "args": args})
        for number in range(24):
            m = 1024 * (1 + number % 6)
            time = 2 * m * 4096 * 4096 / (0.6 * 312e12) * 1e6
            event("cpu_op", "aten::mm", 9, now, 20, {"Input Dims": [[m, 4096], [4096, 4096]], "Input type": ["c10::Half", "c10::Half"]})
            event("cuda_runtime", "cudaLaunchKernel", 9, now + 5, 5, {"correlation": 2 * number + 1})
            event("kernel", "gemm", 7, now + 20, time, {"device": 0, "stream": 7, "correlation": 2 * number + 1}, True)
            now += 30 + time
            elements = 1 << (18 + number % 6)
            wire = 20 + elements * 2 / 200e9 * 1e6
            event("cuda_runtime", "cudaLaunchKernel", 9, now, 5, {"correlation": 2 * number + 2})
            event("kernel", "ncclDevKernel_AllReduce_Sum_f16_RING_LL", 20, now + 10, wire,
                  {"device": 0, "stream": 20, "correlation": 2 * number + 2, "Collective name": "allreduce", "In msg nelems": elements,
                   "Out msg nelems": elements, "Group size": 2, "dtype": "Half", "Process Group Name": "0",
                   "Process Group Ranks": "[0, 1]", "Seq": number}, True)
            now += 30 + wire
        event("user_annotation", "ProfilerStep#1", 9, 990.0, now - 990, {})
        path = self.folder / f"rank{rank}.json"
        path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],
                                    "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "traceEvents": events}))
        return str(path)

    def test_validate_and_calibrate_read_them(self):
        prefix = str(self.folder / "job")
        command = "estimate --model llama-3.1-8b --cluster dgx-a100 --devices 2 --tp 2 --global-batch 2 --seq 512"
        self.run_ok("trace", "import", self.profile(0), self.profile(1), "--out", prefix, "--rows", prefix, "--command", command)
        for kind, rows in (("kernels", 6), ("collectives", 24), ("steps", 1)):
            with self.subTest(kind):
                answer = json.loads(self.run_ok("validate", "--data", f"{prefix}.{kind}.csv", "--json"))
                self.assertEqual(answer["overall"]["rows"], rows)
                self.assertEqual(answer["overall"]["predicted"], rows)
        cluster = str(self.folder / "mine.yaml")
        self.run_ok("calibrate", "--cluster", "dgx-a100", "--kernels", f"{prefix}.kernels.csv", "--collectives",
                    f"{prefix}.collectives.csv", "--out-cluster", cluster)
        self.assertTrue(pathlib.Path(cluster).exists())
        # The last of the guide's commands. The step was not recorded on this model: it moves, and no figure explains it.
        fit = json.loads(self.run_ok("calibrate", "--cluster", "dgx-a100", "--kernels", f"{prefix}.kernels.csv", "--collectives",
                                     f"{prefix}.collectives.csv", "--data", f"{prefix}.steps.csv", "--out-cluster", cluster, "--json"))
        self.assertEqual({kind["kind"]: kind["rows"] for kind in fit["kinds"]}, {"run": 1, "collective": 24, "kernel": 6})
        step = next(row for row in fit["rows"] if row["id"] == "step")
        self.assertLess(abs(step["after_s"] / step["measured_s"] - 1), abs(step["before_s"] / step["measured_s"] - 1))


class WrongCommand(ProgramTest):
    """Each kind of file, given to a command that reads another kind, is named with the command that reads it."""

    def test_profiles_are_named(self):
        kineto = str(ROOT / "examples/profiles/rank0.json")
        host = str(ROOT / "examples/profiles/host.json")
        job = ("--global-batch", "8", "--seq", "128")
        commands = [("estimate", "--cluster", "dgx-h100", *job, "--model"), ("estimate", "--model", "llama-3.1-8b", *job, "--cluster"),
                    ("simulate", "--cluster", "dgx-h100", "--workload"), ("simulate", "--flows"), ("validate", "--data"),
                    ("calibrate", "--data"), ("calibrate", "--cluster", "dgx-h100", "--collectives"), ("serve",), ("jobs",),
                    ("explore", "--db", str(self.folder / "x.sqlite")), ("describe",), ("estimate", "--scenario")]
        for command in commands:
            for file, reader in ((kineto, "trace stats"), (host, "trace link")):
                with self.subTest(f"{command} {file}"):
                    code, _, err = self.run_program(*command, file)
                    self.assertEqual(code, 2)
                    self.assertIn(f'"orrery {reader}"', err)

    def kinds(self):
        """Files by kind: name, what the message calls it, and the command that reads it (None: none does)."""
        made = {
            "legacy.json": ('[{"ph": "X", "name": "aten::mm", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]', "profile", "trace stats"),
            "graph.json": ('{"workload_graph": []}', "Chakra graph in JSON", "trace info"),
            "result.json": ('{"schema": "orrery.estimate/1", "step_s": 1}', "result of orrery", None),
            "config.json": ('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}', "Hugging Face", "estimate --model"),
            "system.json": ('{"scheduling-policy": "LIFO", "all-reduce-implementation": ["ring"]}', "ASTRA-sim", "simulate --system-configuration"),
            "other.json": ('{"tp": [0, 1]}', "is JSON", None),
        }
        kinds = {name: (str(self.folder / self.write(name, text)), *rest) for name, (text, *rest) in made.items()}
        kinds["kineto"] = (str(ROOT / "examples/profiles/rank0.json"), "(profile|Profile)", "trace stats")
        kinds["host"] = (str(ROOT / "examples/profiles/host.json"), "execution trace", "trace import")
        chakra = str(self.folder / "x.et")
        lines = str(self.folder / self.write("x.jsonl", json_lines(3)))
        self.assertEqual(self.run_program("trace", "convert", lines, "--out", chakra)[0], 0)
        kinds["chakra"] = (chakra, "Chakra trace", "trace info")
        kinds["json lines"] = (lines, "Chakra trace", "trace info")
        return kinds

    # Every trace command with every kind: done, or the message says what the file is and which command reads it.
    def test_every_kind_with_every_trace_command(self):
        kinds = self.kinds()
        out = ("--out", str(self.folder / "out.et"))
        host, kineto = kinds["host"][0], kinds["kineto"][0]
        chakra = {"chakra", "json lines"}
        commands = {
            ("trace", "info"): chakra, ("trace", "check"): chakra, ("trace", "print"): chakra,
            ("trace", "stats"): chakra | {"kineto", "legacy.json"}, ("trace", "convert", *out): chakra,
            ("trace", "anonymize", *out): chakra,
            ("trace", "timeline", "--out", str(self.folder / "out.json")): chakra,
            ("trace", "import", "--out", str(self.folder / "job")): {"kineto", "host"},
            ("trace", "link", "--device", kineto, "--host"): {"host"},
            ("trace", "link", "--host", host, "--device"): {"kineto"},
            ("simulate", "--cluster", "dgx-h100", "--workload"): chakra,
        }
        for command, read in commands.items():
            for kind, (file, called, reader) in kinds.items():
                with self.subTest(f"{' '.join(command[:2])} {command[-1]} {kind}"):
                    code, _, err = self.run_program(*command, file)
                    if kind in read:
                        self.assertIn(code, (0, 1), err)
                        continue
                    if kind == "legacy.json" and re.search("no device operations|no operators of the host", err):
                        continue  # it is read, and has nothing to replay or to link
                    self.assertEqual(code, 2, err)
                    self.assertRegex(err, called)
                    if reader is not None:
                        self.assertIn(f'"orrery {reader}', err)

    def test_files_of_two_kinds_are_refused_together(self):
        kinds = self.kinds()
        for command in ("stats", "diff"):
            code, _, err = self.run_program("trace", command, kinds["kineto"][0], kinds["chakra"][0])
            self.assertEqual(code, 2)
            self.assertIn("Kineto profile", err)


if __name__ == "__main__":
    unittest.main()
