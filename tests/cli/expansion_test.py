"""Memory expansion on the command line: `estimate` and `plan` with it, and points of the shipped studies."""
import json
import random
import shutil
import sqlite3
import unittest

from program import ROOT, ProgramTest

CLASSES = ["weights", "gradients", "optimizer", "activations", "kv_cache", "tables"]
# 64 A100 of 40 GiB: the plan needs 61 GiB, of which 32 are gradients, 16 weights and 12 state.
JOB = ["--model=llama-2-70b", "--cluster=cluster.yaml", "--devices=64", "--global-batch=64", "--seq=4096", "--tp=8", "--pp=1", "--micro-batch=1",
       "--zero=1", "--recompute=full"]
CLUSTER = """base: {model: llama-2-70b, devices: 64, global_batch: 64,
       cluster: {use: dgx-a100, accelerator.memory: 40 GiB, second_tier.memory: 512 GB, second_tier.bandwidth: 100 GB/s}}
axes: [{seq: [4096]}]
"""


class ExpansionTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("study.yaml", CLUSTER)
        self.assertEqual(self.run_program("explore", "study.yaml", "--point", "0", "--out-folder", ".")[0], 0)

    def json_of(self, *arguments):
        code, out, err = self.run_program(*arguments, "--json")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def refused(self, *arguments):
        code, out, err = self.run_program(*arguments)
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        return err

    def estimate_of(self, study, point):
        """Of the scenario that --point writes."""
        folder = f"p{point}"
        code, _, err = self.run_program("explore", study, "--point", str(point), "--out-folder", folder)
        self.assertEqual((code, err), (0, ""))
        parts = [f"--{name}={folder}/{name}.yaml" for name in ("cluster", "model", "stack") if (self.folder / folder / f"{name}.yaml").exists()]
        found = self.json_of("estimate", "--scenario", f"{folder}/scenario.yaml", *parts)
        shutil.rmtree(self.folder / folder)
        return found

    def test_points_of_the_shipped_studies_equal_orrery_estimate(self):
        random.seed(19)
        for name, count in (("recommender", 5), ("threshold", 2), ("expansion", 6)):
            study = str(ROOT / f"examples/studies/comet/{name}.yaml")
            code, _, err = self.run_program("explore", study, "--db", f"{name}.sqlite")
            self.assertEqual(code, 0, err)
            with sqlite3.connect(self.folder / f"{name}.sqlite") as db:
                rows = db.execute("SELECT id, step_time_s, second_tier_B, memory_B, model_states_B, plan FROM points WHERE status = 'ok' "
                                  "AND second_tier_B > 0").fetchall()
            self.assertGreaterEqual(len(rows), count)
            for point, step, second, first, states, plan in random.sample(rows, count):
                found = self.estimate_of(study, point)
                there = found["expansion"]["second_tier_B"]
                self.assertEqual((found["step_time_s"], found["memory_B"]["offloaded"], found["memory_B"]["total"], found["plan"]),
                                 (step, second, first, json.loads(plan)), (name, point))
                self.assertAlmostEqual(sum(there.values()) / second, 1.0, delta=1e-9)
                held = sum(found["memory_B"][part] for part in ("weights", "gradients", "optimizer"))
                moved = sum(there[part] for part in ("weights", "gradients", "optimizer", "tables"))
                self.assertAlmostEqual((held + moved) / states, 1.0, delta=1e-9)

    def test_what_does_not_fit_is_in_the_second_tier(self):
        without = self.json_of("estimate", *JOB)
        self.assertFalse(without["feasible"])
        self.assertNotIn("expansion", without)
        found = self.json_of("estimate", *JOB, "--expansion=serial")
        self.assertTrue(found["feasible"])
        there = found["expansion"]["second_tier_B"]
        self.assertEqual((found["expansion"]["rule"], list(there)), ("serial", CLASSES))
        self.assertAlmostEqual(found["memory_B"]["total"] + sum(there.values()), without["memory_B"]["total"], delta=1.0)
        self.assertAlmostEqual(found["memory_B"]["total"], found["memory_B"]["capacity"], delta=1.0)
        self.assertGreater(found["step_time_s"], without["step_time_s"])
        # Both tiers at the same time are not slower than one after the other.
        self.assertLessEqual(self.json_of("estimate", *JOB, "--expansion=parallel")["step_time_s"], found["step_time_s"])
        text = self.run_program("estimate", *JOB, "--expansion=serial")[1]
        self.assertIn("expansion serial: ", text)
        self.assertIn("second tier", text)

    def test_a_plan_that_fits_is_the_same_with_expansion(self):
        plain = [*JOB[:1], "--cluster=dgx-a100", *JOB[2:]]
        one, other = self.json_of("estimate", *plain), self.json_of("estimate", *plain, "--expansion=serial")
        self.assertEqual(one["step_time_s"], other["step_time_s"])
        self.assertNotIn("expansion", other)

    def test_only_classes_that_may_are_there(self):
        every = self.json_of("estimate", *JOB, "--expansion=serial")["step_time_s"]
        for classes in ("optimizer,weights", "gradients", "activations,weights,gradients"):
            found = self.json_of("estimate", *JOB, "--expansion=serial", "--expansion-classes", classes)
            there = {name for name, held in found["expansion"]["second_tier_B"].items() if held > 0}
            self.assertLessEqual(there, set(classes.split(",")))
            self.assertGreaterEqual(found["step_time_s"], every * (1 - 1e-9))
        none = self.json_of("estimate", *JOB, "--expansion=serial", "--expansion-classes=optimizer")
        self.assertFalse(none["feasible"])  # 12 GiB, and 23 must move

    def test_a_plan_of_the_search_costs_what_estimate_says(self):
        job = [one for one in JOB if not one.startswith(("--micro-batch", "--zero", "--recompute"))]
        found = self.json_of("plan", *job, "--expansion=serial", "--top=2", "--variants")["best"]
        self.assertEqual(len(found), 2)
        times = [one["step_time_s"] for one in found]
        self.assertEqual(times, sorted(times))
        self.assertLessEqual(times[0], self.json_of("estimate", *JOB, "--expansion=serial")["step_time_s"])
        best = found[0]["plan"]
        self.write("plan.yaml", "".join(f"{name}: {json.dumps(value)}\n" for name, value in best.items() if name != "micro_batches" and value != ""))
        job = [one for one in JOB if one.startswith(("--model", "--cluster", "--devices", "--global-batch", "--seq"))]
        self.assertEqual(self.json_of("estimate", *job, "--scenario=plan.yaml", "--expansion=serial")["step_time_s"], times[0])

    def test_mistakes_are_one_line(self):
        for arguments, words in (
                (["--expansion=both"], "--expansion"),
                (["--expansion-classes=weights"], "--expansion-classes: needs --expansion serial or parallel"),
                (["--expansion=serial", "--expansion-classes=optimiser"], "did you mean optimizer?"),
                (["--expansion=serial", "--offload=weights"], "--offload: "),
                (["--expansion=serial", "--semantics=mad-max", "--model=madmax/dlrm_a", "--cluster=madmax/zionex_128"],
                 "--expansion: is valid with --semantics physical only; mad-max has one memory per device")):
            job = ["--global-batch=65536"] if "--semantics=mad-max" in arguments else JOB
            self.assertIn(words, self.refused("estimate", *job, *arguments))
        self.assertIn("--expansion: is valid with estimate, plan and studies only", self.refused("simulate", *JOB, "--expansion=serial"))
        self.assertIn("--objective: is not valid with --expansion", self.refused("plan", *JOB, "--expansion=serial", "--objective=cost"))


if __name__ == "__main__":
    unittest.main()
