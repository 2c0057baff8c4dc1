"""Profiles of PyTorch: public files and made jobs with exact truth. Skipped where the shared data are absent."""
import json
import pathlib
import tarfile
import unittest

from program import ROOT, ProgramTest

SHARED = ROOT.parent / "shared" / "data" / "traces"
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


class WrongCommand(ProgramTest):
    """Each JSON of a profile, given to a command that reads another file, is named with the command that reads it."""

    def test_profiles_are_named(self):
        kineto = str(ROOT / "examples/profiles/rank0.json")
        host = str(ROOT / "examples/profiles/host.json")
        job = ("--global-batch", "8", "--seq", "128")
        commands = [("trace", name) for name in ("info", "check", "print")]
        commands += [("trace", name, "--out", str(self.folder / "x.et")) for name in ("convert", "anonymize")]
        commands += [("estimate", "--cluster", "dgx-h100", *job, "--model"), ("estimate", "--model", "llama-3.1-8b", *job, "--cluster"),
                     ("simulate", "--cluster", "dgx-h100", "--workload"), ("simulate", "--flows"), ("validate", "--data"),
                     ("calibrate", "--data"), ("calibrate", "--cluster", "dgx-h100", "--collectives"), ("serve",), ("jobs",),
                     ("explore", "--db", str(self.folder / "x.sqlite")), ("describe",), ("estimate", "--scenario")]
        for command in commands:
            for file, reader in ((kineto, "trace stats"), (host, "trace link")):
                with self.subTest(f"{command} {file}"):
                    code, _, err = self.run_program(*command, file)
                    self.assertEqual(code, 2)
                    self.assertIn(f'"orrery {reader}"', err)


if __name__ == "__main__":
    unittest.main()
