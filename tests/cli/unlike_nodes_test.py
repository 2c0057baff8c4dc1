"""Every command that takes a cluster, on nodes of two kinds: its output depends on the slow nodes, or it refuses the cluster in one line.

A command that forgets the slow nodes would print the figures of the fast ones. Each has a row here; the last test fails for a command without one.
"""
import json
import re
import sqlite3
import subprocess
import unittest

from program import PROGRAM, ROOT, ProgramTest

DIMENSIONS = """dimensions:
  - {name: nvlink, wiring: switched, size: 4, bandwidth: 300 GB/s, link: nvlink3}
  - {name: infiniband, wiring: rails, bandwidth: 200 Gb/s, link: infiniband-hdr}
second_tier: {memory: 512 GB, bandwidth: 100 GB/s}
"""
# The second of two nodes has the accelerator of the first, with a part of its figures.
CLUSTER = """nodes:
  - {{count: 1, accelerator: h100-sxm}}
  - {{count: 1, accelerator: {{use: h100-sxm, memory_bandwidth: {0} GB/s, matrix_peak: {{bf16: {1} TFLOP/s, fp16: {1} TFLOP/s, tf32: {1} TFLOP/s}}, memory: {2} GiB,
     tdp_watts: {3}}}}}
"""
TRAIN = ["--model=llama-3.2-1b", "--seq=1024", "--global-batch=16"]
SERVE = ["--model=llama-3.2-1b", "--task=inference", "--prompt=256", "--generate=16", "--batch=16"]
PLAN = ["--tp=4", "--pp=2", "--micro-batch=1", "--recompute=none"]
ON = ["--cluster=CLUSTER"]
GRAPHS = ["simulate", "--workload=g"]
MODELLED = {
    "estimate": ["estimate", *TRAIN, *PLAN, *ON],
    "estimate, inference": ["estimate", *SERVE, "--tp=4", "--pp=2", *ON],
    "estimate, replicas of inference": ["estimate", *SERVE, "--tp=4", *ON],
    "estimate --against": ["estimate", *TRAIN, *PLAN, *ON, "--against=tp=2 dp=2"],
    "plan": ["plan", *TRAIN, *ON],
    "plan, inference": ["plan", *SERVE, *ON],
    "plan --what-if": ["plan", *TRAIN, *ON, "--what-if"],
    "generate": ["generate", *TRAIN, *PLAN, *ON, "--out=OUT", "--granularity=block"],
    "simulate": ["simulate", *TRAIN, *PLAN, *ON, "--granularity=block"],
    "simulate, inference": ["simulate", *SERVE, "--tp=4", "--pp=2", *ON, "--granularity=block"],
    "simulate --memory": ["simulate", *TRAIN, *PLAN, *ON, "--granularity=block", "--memory"],
    "simulate --roofline": ["simulate", *TRAIN, *PLAN, *ON, "--roofline"],
    "simulate --energy": ["simulate", *TRAIN, *PLAN, *ON, "--granularity=block", "--energy"],
    "simulate --workload": [*GRAPHS, *ON],
    "simulate --copies": ["simulate", "--workload=half", "--copies=2", *ON],
    "simulate --jobs": ["simulate", "--jobs=jobs.yaml"],
    "campaign": ["campaign", *TRAIN, *PLAN, *ON, "--tokens=10B", "--no-what-if"],
    "collective": ["collective", "--op=all_reduce", *ON, "--devices=8", "--size=1GiB"],
}
REFUSED = {
    "serve": ["serve", "--model=llama-3.2-1b", *ON, "--devices=4", "--rate=1"],
    "serve, plan": ["plan", "--task=serve", "--model=llama-3.2-1b", *ON, "--devices=4", "--rate=1", "--slo=ttft_p99=2s"],
    "generate --classes": ["generate", *TRAIN, *PLAN, *ON, "--out=g", "--classes"],
    "calibrate": ["calibrate", *ON, "--collectives=nccl.txt"],
    "jobs": ["jobs", "arrivals.yaml"],
    "estimate --expansion": ["estimate", *TRAIN, *PLAN, *ON, "--expansion=serial"],
    "plan --expansion": ["plan", *TRAIN, *ON, "--expansion=serial"],
}
# Cluster of rows to compare, or of an entry's name only.
WITHOUT_CLUSTER = {"validate"}


def graph(name, flops):
    nodes = ['{"schema":"orrery.trace-nodes/1","version":"0.0.4"}']
    nodes += [f'{{"id":1,"name":"n1","type":"COMP_NODE","attr":[{{"name":"num_ops","int64_val":{flops}}},'
              f'{{"name":"tensor_size","int64_val":1000000}}]}}']
    return name, "".join(line + "\n" for line in nodes)


class UnlikeNodesTest(ProgramTest):
    def on_clusters(self, arguments):
        """Output with slow second nodes, and with slower ones, each of them as cluster.yaml."""
        found = []
        for figures in ((1600, 400, 80, 600), (20, 100, 60, 500)):
            self.write("cluster.yaml", CLUSTER.format(*figures) + DIMENSIONS)
            folder = f"out{len(found)}"
            (self.folder / folder).mkdir(exist_ok=True)
            words = [word.replace("CLUSTER", "cluster.yaml").replace("OUT", f"{folder}/g") for word in arguments]
            found.append(self.run_program(*words))
            if "generate" in words and found[-1][0] == 0:
                times = [(path.name, path.read_bytes()) for path in sorted((self.folder / folder).iterdir())]
                found[-1] = (0, str(times), found[-1][2])
        return found

    def write_files(self):
        for folder, ranks in (("g", 8), ("half", 4)):
            (self.folder / folder).mkdir()
            for rank in range(ranks):
                self.write(*graph(f"{folder}/w.{rank}.jsonl", 1_000_000_000_000))
        plan = " ".join(["--devices=8", *TRAIN, *PLAN])
        self.write("jobs.yaml", f"cluster: cluster.yaml\njobs:\n  - {{name: a, plan: {plan}}}\n")
        self.write("study.yaml", "base: {model: llama-3.2-1b, cluster: cluster.yaml, devices: 8, global_batch: 16}\naxes: [{seq: [1024]}]\n")
        text = (ROOT / "examples/jobs/plans.yaml").read_text()
        self.write("arrivals.yaml", re.sub(r"--cluster[ =]\S+", f"--cluster {self.folder}/cluster.yaml", text))
        self.write("nccl.txt", (ROOT / "examples/calibrate/nccl.txt").read_text())

    def test_figures_depend_on_the_slow_nodes(self):
        self.write_files()
        for name, arguments in MODELLED.items():
            with self.subTest(name):
                slow, slower = self.on_clusters(arguments)
                self.assertEqual((slow[0], slower[0]), (0, 0), slow[2] + slower[2])
                self.assertNotEqual(slow[1], slower[1])

    def test_ranks_have_the_peaks_and_the_memory_of_their_own_node(self):
        self.write("cluster.yaml", CLUSTER.format(1600, 400, 60, 600) + DIMENSIONS)
        code, out, err = self.run_program("simulate", *TRAIN, *PLAN, "--cluster=cluster.yaml", "--memory", "--roofline", "--json")
        self.assertEqual(code, 0, err)
        found = json.loads(out)
        usable = {ranks["first_rank"]: ranks["capacity_B"] for ranks in found["memory"]["classes"]}
        self.assertAlmostEqual(usable[4] / usable[0], 60 / 80)
        peaks = {ranks["first_rank"]: (ranks["peak_flops"], ranks["memory_Bps"]) for ranks in found["roofline"]["classes"]}
        self.assertEqual(peaks[0][0], 989.4e12)
        self.assertEqual([round(peak) for peak in peaks[4]], [400e12, 1600e9])
        self.assertNotIn("capacity_B", found["memory"])

    def test_all_nodes_run_one_software(self):
        self.write("cluster.yaml", "nodes: [{count: 1, accelerator: h100-sxm}, {count: 1, accelerator: gaudi2}]\n" + DIMENSIONS)
        code, out, err = self.run_program("estimate", *SERVE, "--tp=4", "--cluster=cluster.yaml")
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertIn("vllm on h100-sxm and vllm-gaudi on gaudi2", err)
        self.assertEqual(self.run_program("estimate", *SERVE, "--tp=4", "--cluster=cluster.yaml", "--stack=ideal")[0], 0)

    def test_what_does_not_fit_is_said_of_the_nodes_that_are_too_small(self):
        self.write("cluster.yaml", CLUSTER.format(1600, 400, 2, 600) + DIMENSIONS)
        code, _, err = self.run_program("generate", *TRAIN, "--dp=8", "--cluster=cluster.yaml", "--granularity=block", "--out=g")
        self.assertEqual(code, 0, err)
        self.assertRegex(err, r"GiB a device of 1\.\d GiB")
        code, _, err = self.run_program("plan", "--model=llama-3.1-8b", "--seq=1024", "--global-batch=8", "--cluster=cluster.yaml")
        self.assertEqual(code, 1)
        self.assertIn("fits in the memory of h100-sxm", err)

    def test_others_refuse_the_cluster_in_one_line(self):
        self.write_files()
        for name, arguments in REFUSED.items():
            with self.subTest(name):
                for code, out, err in self.on_clusters(arguments):
                    self.assertEqual((code, out, err.count("\n")), (2, "", 1), out + err)
                    self.assertIn("nodes", err)

    def test_points_of_studies_refuse_the_cluster(self):
        self.write_files()
        self.write("cluster.yaml", CLUSTER.format(1600, 400, 80, 600) + DIMENSIONS)
        code, _, err = self.run_program("explore", "study.yaml", "--db", "study.sqlite")
        self.assertEqual((code, err), (1, ""))
        with sqlite3.connect(self.folder / "study.sqlite") as db:
            (status, reason), = db.execute("SELECT status, reason FROM points").fetchall()
        self.assertEqual(status, "failed")
        self.assertIn("nodes of one kind", reason)

    def test_every_command_with_a_cluster_has_a_row(self):
        overview = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
        commands = re.findall(r"^  ([a-z]+)  +[A-Z]", overview, re.MULTILINE)
        self.assertGreater(len(commands), 10)
        tried = {arguments[0] for rows in (MODELLED, REFUSED) for arguments in rows.values()}
        for command in commands:
            usage = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True, check=True).stdout
            if "--cluster" in usage and command not in WITHOUT_CLUSTER:
                self.assertIn(command, tried)


if __name__ == "__main__":
    unittest.main()
