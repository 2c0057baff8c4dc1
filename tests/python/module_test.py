"""The Python module answers what the command line prints."""
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import unittest

import numpy

import orrery

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("ORRERY_PROGRAM", str(ROOT / "build/release/orrery"))
HANGS_AFTER_S = 240
JOB = {"model": "llama-3.1-8b", "cluster": "dgx-h100", "devices": 64, "global_batch": 64, "seq": 8192}


def printed(command, job, *more):
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in job.items()]
    return subprocess.run([PROGRAM, command, *flags, *more], capture_output=True, text=True, timeout=HANGS_AFTER_S)


class Commands(unittest.TestCase):
    def test_an_estimate_is_that_of_the_command_line(self):
        step = orrery.estimate(**JOB)
        self.assertEqual(step.to_dict(), json.loads(printed("estimate", JOB, "--json").stdout))
        self.assertEqual(step.plan.tp, step["plan"]["tp"])
        self.assertGreater(step.memory_B.total, 0)

    def test_a_search_with_lists_and_switches(self):
        search = orrery.plan(**JOB, tp=[1, 2], sequence_parallel=False, top=3)
        expected = json.loads(printed("plan", JOB, "--tp=1,2", "--no-sequence-parallel", "--top=3", "--json").stdout)
        self.assertEqual([plan.to_dict() for plan in search.best], expected["best"])

    def test_a_changed_cluster(self):
        cluster = orrery.describe("dgx-h100")
        before = orrery.estimate(**{**JOB, "cluster": cluster}, tp=8, pp=8)
        cluster["dimensions"][1]["bandwidth"] = "40 Gb/s"
        after = orrery.estimate(**{**JOB, "cluster": cluster}, tp=8, pp=8)
        self.assertEqual(before.step_time_s, orrery.estimate(**JOB, tp=8, pp=8).step_time_s)
        self.assertGreater(after.step_time_s, before.step_time_s)

    def test_errors_have_the_message_and_the_place_of_the_command_line(self):
        for change in ({"devices": 63}, {"model": "lama-3.1-8b"}, {"seq": "many"}, {"global_batc": 1}):
            with self.subTest(change), self.assertRaises(orrery.Error) as caught:
                orrery.estimate(**{**JOB, **change})
            lines = printed("estimate", {**JOB, **change}).stderr.splitlines()
            self.assertEqual(str(caught.exception).splitlines(), [line.removeprefix("error: ") for line in lines])
            self.assertTrue(all("message" in error for error in caught.exception.errors))

    def test_other_commands(self):
        self.assertGreater(orrery.simulate(**JOB, pp=4).makespan_ns, 0)
        rows = orrery.collective(op="all_reduce", size="1MiB:1GiB:x2", cluster="dgx-h100", devices=64)
        self.assertIn("rows", rows.to_dict())
        self.assertIn("dgx-h100", [entry.name for entry in orrery.list_entries("clusters")])
        self.assertTrue(orrery.estimate(**JOB, emit="megatron").startswith("#!"))

    def test_results_do_not_change_and_name_their_fields(self):
        step = orrery.estimate(**JOB)
        with self.assertRaises(AttributeError):
            step.step_time_s = 1
        with self.assertRaisesRegex(AttributeError, "step_time_s"):
            step.step_tim

    def test_notebooks_show_bars_and_tables(self):
        self.assertIn("<svg", orrery.estimate(**JOB)._repr_html_())
        self.assertIn("<table>", orrery.plan(**JOB, top=2)._repr_html_())

    def test_every_flag_has_a_description(self):
        for line in ("global_batch:", "tp:", "seq:"):
            self.assertIn(line, orrery.estimate.__doc__)
        stubs = (pathlib.Path(orrery.__file__).parent / "__init__.pyi").read_text()
        compile(stubs, "__init__.pyi", "exec")
        self.assertIn("def estimate(", stubs)


class Threads(unittest.TestCase):
    def test_other_threads_run_while_a_search_runs(self):
        ticks = []
        done = threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)
        other = threading.Thread(target=tick)
        other.start()
        start = time.monotonic()
        orrery.plan(**JOB, exhaustive=True)
        end = time.monotonic()
        done.set()
        other.join()
        self.assertGreater(sum(start < t < end for t in ticks), 2)

    def test_several_threads_get_the_same_answers(self):
        expected = orrery.estimate(**JOB).to_dict()
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(orrery.estimate(**JOB).to_dict())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [expected] * 8)

    def test_an_interrupt_ends_a_search(self):
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(1000):
                orrery.plan(model="deepseek-v3", cluster="dgx-h100", devices=2048, global_batch=15360, seq=4096, exhaustive=True)

    def test_an_interrupt_ends_the_count_of_a_large_space(self):
        # Its points are counted for seconds before the first plan is priced.
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            orrery.plan(model="deepseek-v3", cluster="dgx-h100", devices=2048, global_batch=15360, seq=4096, precision="fp8", space="wide", top=1)
        self.assertLess(time.monotonic() - start, 20)

    def test_a_deployment_has_its_own_flags(self):
        search = orrery.plan(task="serve", model="llama-3.1-8b", cluster="dgx-h100", devices=2, isl=512, osl=64, tp=[1], pp=1,
                             max_batched_tokens=2048, pools="aggregated", slo="ttft_p99=2s tpot_p99=50ms", explain=True)
        self.assertGreater(search.best[0].goodput_rps_at_slo, 0)
        self.assertEqual(orrery.estimate(**JOB, tp=1, against="tp=8").against.plan.tp, 8)


class Traces(unittest.TestCase):
    def test_columns_are_the_nodes_of_the_file(self):
        file = next((ROOT / "examples/traces").rglob("*.et"))
        columns = orrery.read_trace(file)
        lines = subprocess.run([PROGRAM, "trace", "print", str(file)], capture_output=True, text=True, timeout=HANGS_AFTER_S).stdout.splitlines()
        nodes = [node for node in map(json.loads, lines) if "id" in node]
        self.assertEqual(columns["id"].tolist(), [node["id"] for node in nodes])
        self.assertEqual(columns["name"].tolist(), [node["name"] for node in nodes])
        self.assertEqual(columns["type"].tolist(), [node["type"] for node in nodes])
        for i, node in enumerate(nodes):
            parents = columns["data_deps"][columns["data_begin"][i]:columns["data_begin"][i + 1]]
            self.assertEqual(parents.tolist(), node.get("data_deps", []))
        self.assertEqual(columns["duration_ns"].dtype, numpy.uint64)

    def test_a_file_that_is_no_trace(self):
        with self.assertRaisesRegex(orrery.Error, "absent.et"):
            orrery.read_trace("absent.et")


if __name__ == "__main__":
    unittest.main()
