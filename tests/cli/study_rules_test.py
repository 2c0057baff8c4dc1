"""Studies: which value is best, what a point is as a scenario, and what a study may not say twice."""
import json
import sqlite3
import unittest

from program import ProgramTest

BASE = "base: {model: llama-3.1-8b, cluster: dgx-a100, global_batch: 64, seq: 4096, pp: 1}\n"
AXES = "axes: [{devices: [8, 16, 32]}, {tp: [1, 2, 4, 8]}]\n"


class StudyRulesTest(ProgramTest):
    def explore(self, text, *more):
        self.write("study.yaml", text)
        (self.folder / "r.sqlite").unlink(missing_ok=True)
        code, out, err = self.run_program("explore", "study.yaml", "--db", "r.sqlite", *more)
        self.assertEqual(code, 0, err)
        return out

    def select(self, what):
        with sqlite3.connect(self.folder / "r.sqlite") as db:
            return db.execute(f"SELECT {what} FROM points WHERE status = 'ok' ORDER BY id").fetchall()

    def refused(self, text):
        self.write("study.yaml", text)
        code, out, err = self.run_program("explore", "study.yaml", "--db", "refused.sqlite")
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertIn("study.yaml:", err)
        return err

    def test_the_best_value_of_a_rate_is_its_largest_one(self):
        for column, pick, word in (("tokens_per_s", max, "most"), ("samples_per_s", max, "most"), ("mfu", max, "most"),
                                   ("step_time_s", min, "least"), ("cost_usd", min, "least")):
            out = self.explore(BASE + AXES + f"objective: {column}\n")
            rows = self.select(f"id, {column}")
            self.assertGreater(len({value for _, value in rows}), 1)
            best = pick(value for _, value in rows)
            self.assertIn(f"{word} {column}: point {next(i for i, value in rows if value == best)}\n", out)
        self.assertEqual(self.run_program("report", "r.sqlite", "--out", "r.html")[0], 0)
        data = json.loads((self.folder / "r.html").read_text().split('<script type="application/json" id="data">')[1].split("</script>")[0])
        self.assertEqual({one["name"] for one in data["columns"] if one.get("more")}, {"tokens_per_s", "samples_per_s", "mfu"})

    def test_a_page_does_not_overwrite_its_results(self):
        self.explore(BASE + AXES)
        before = (self.folder / "r.sqlite").read_bytes()
        (self.folder / "link.sqlite").symlink_to(self.folder / "r.sqlite")
        for name in ("r.sqlite", "./r.sqlite", "link.sqlite"):
            code, out, err = self.run_program("report", "r.sqlite", "--out", name)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            self.assertIn("--out", err)
        self.assertEqual((self.folder / "r.sqlite").read_bytes(), before)

    def estimate_of(self, point):
        code, _, err = self.run_program("explore", "study.yaml", "--point", str(point), "--out-folder", f"p{point}")
        self.assertEqual(code, 0, err)
        parts = [part for name in ("cluster", "model", "stack") if (self.folder / f"p{point}/{name}.yaml").exists()
                 for part in (f"--{name}", f"p{point}/{name}.yaml")]
        code, out, error = self.run_program("estimate", "--scenario", f"p{point}/scenario.yaml", *parts, "--json")
        self.assertEqual(code, 0, error)
        return json.loads(out), err

    def test_a_searched_point_is_a_scenario_with_its_plan(self):
        self.explore(BASE.replace(", pp: 1", "") + """axes:
  - devices: [16, 32]
  - cluster.dimensions.infiniband.bandwidth: [100 Gb/s, 200 Gb/s]
plan: search
""")
        rows = self.select("id, step_time_s, plan")
        self.assertEqual(len(rows), 4)
        for point, step, plan in rows:
            found, note = self.estimate_of(point)
            self.assertEqual((found["step_time_s"], found["plan"], note), (step, json.loads(plan), ""))

    def test_a_searched_point_of_mad_max_is_a_scenario_with_its_strategy(self):
        self.explore("base: {model: madmax/dlrm_a, cluster: madmax/zionex_128, semantics: mad-max, global_batch: 65536}\n"
                     "axes: [{devices: [128]}]\nplan: search\n")
        point, step = self.select("id, step_time_s")[0]
        self.assertEqual(self.estimate_of(point)[0]["step_time_s"], step)

    def test_the_point_of_a_threshold_is_the_plan_that_its_row_shows(self):
        self.explore(BASE.replace("pp: 1", "devices: 64, stack: ideal") + """axes: [{global_batch: [64]}]
threshold:
  {path: cluster.dimensions.infiniband.bandwidth, from: 1 GB/s, to: 400 GB/s, first: {plan: MP1_DP64}, second: {plan: MP8_DP8}}
""")
        point, step, value = self.select("id, step_time_s, threshold")[0]
        self.assertIsNotNone(value)
        self.assertEqual(self.estimate_of(point)[0]["step_time_s"], step)

    def test_a_point_is_not_read_from_a_database(self):
        self.write("study.yaml", BASE + AXES)
        code, _, err = self.run_program("explore", "study.yaml", "--point", "0", "--db", "r.sqlite")
        self.assertEqual(code, 2)
        self.assertIn("--db: has no effect with --point", err)

    def test_a_sensitivity_is_of_a_number(self):
        for path, words in (("cluster.name", '"dgx-a100" is not a number or a quantity'), ("model", "is not a number or a quantity")):
            err = self.refused(BASE + AXES + f"sensitivity: {{of: [global_batch, {path}]}}\n")
            self.assertRegex(err, r"study\.yaml:\d+:\d+ /sensitivity/of/1: sensitivity of " + path)
            self.assertIn(words, err)
        self.write("study.yaml", BASE + "axes: [{devices: [64]}]\nsensitivity: {of: [pp, cluster.accelerator.memory_bandwidth]}\n")
        code, out, err = self.run_program("explore", "study.yaml", "--db", "s.sqlite")
        self.assertEqual(code, 0, err)
        self.assertIn("pp x 1.1: step time not computed: 1.1 times 1 is not a whole number", out)
        self.assertRegex(out, r"memory_bandwidth x 1.1: step time -\d")

    def test_clusters_of_several_kinds_of_nodes_are_not_studied(self):
        self.write("two.yaml", """nodes:
  - {count: 1, accelerator: h100-sxm}
  - {count: 3, accelerator: a100-sxm-80gb}
dimensions:
  - {name: nvlink, wiring: switched, size: 8, bandwidth: 300 GB/s, link: nvlink3}
  - {name: infiniband, wiring: rails, bandwidth: 200 Gb/s, link: infiniband-hdr}
""")
        self.write("study.yaml", "base: {model: llama-3.1-8b, cluster: two.yaml, global_batch: 64, seq: 4096, tp: 8}\n"
                                 "axes: [{devices: [8, 32]}]\n")
        self.assertEqual(self.run_program("explore", "study.yaml", "--db", "r.sqlite")[0], 1)
        with sqlite3.connect(self.folder / "r.sqlite") as db:
            rows = db.execute("SELECT status, reason FROM points ORDER BY id").fetchall()
        self.assertEqual(len(rows), 2)
        for status, reason in rows:
            self.assertNotEqual(status, "ok")
            self.assertIn("a study needs nodes of one kind", reason)

    def test_a_sampler_of_lists_has_a_combination_once(self):
        self.explore(BASE + "axes: [{devices: [64, 128]}, {global_batch: [512, 1024]}]\nsampler: {kind: sobol, points: 50}\n")
        points = self.select("devices, global_batch")
        self.assertEqual(sorted(points), [(64, 512), (64, 1024), (128, 512), (128, 1024)])

    def test_two_parts_of_a_study_do_not_set_the_same_path(self):
        for axes, words in (
                ("axes: [{tp: [1, 2]}, {plan: [MP8_DP8]}]", 'axis "tp" and axis "plan" both set "tp"'),
                ("axes: [{choice: a, of: {x: {tp: 1}, y: {tp: 2}}}, {tp: [4]}]", 'both set "tp"'),
                ("axes: [{choice: a, of: {x: {tp: 1, plan: MP8_DP8}}}]", 'axis "a" sets "tp" twice'),
                ("axes: [{plan: [MP8_DP8]}]\nderive: {tp: 2 + 2}", 'axis "plan" and derive both set "tp"'),
                ("axes: [{devices: [64]}, {tp: [1, 2]}]\nplan: search\nsearch: {tp: [4]}", 'search has values of "tp", which axis "tp" sets'),
                ("axes: [{devices: [64]}]\nplan: search\nsearch: {pp: [4]}", 'search has values of "pp", which base sets'),
                ("axes: [{cluster.accelerator.memory: [40 GiB]}, {cluster.accelerator: [h100-sxm]}]",
                 'replaces "cluster.accelerator", and with it "cluster.accelerator.memory"')):
            self.assertIn(words, self.refused(BASE + axes + "\n"))
        threshold = "threshold: {{path: {}, from: 1 GB/s, to: 90 GB/s, first: {{tp: 8}}, second: {{tp: 4}}}}\n"
        link = "cluster.dimensions.infiniband.bandwidth"
        self.assertIn('axis "tp" and a plan of threshold both set "tp"', self.refused(BASE + "axes: [{devices: [64]}, {tp: [1]}]\n" + threshold.format(link)))
        self.assertIn("and threshold both set", self.refused(BASE + f"axes: [{{devices: [64]}}, {{{link}: [9 GB/s]}}]\n" + threshold.format(link)))
        # A machine, and a change of one of its parts, in either order.
        self.explore(BASE + "axes: [{cluster.accelerator.memory: [60 GiB]}, {cluster: [dgx-a100, dgx-h100]}, {devices: [64]}]\n")
        self.assertEqual(len(self.select("id")), 2)

    def test_a_constant_has_a_name_of_its_own(self):
        for name, words in (("tp", "a column of the study"), ("step_time_s", "a result"), ("global_batch", "a field of base")):
            err = self.refused(BASE + AXES + f"let: {{{name}: 4}}\n")
            self.assertIn(f'let: "{name}" is also {words}', err)

    def test_formulas_do_not_mix_units(self):
        for line, words in (("constraints: ['cost_usd < 20 MW']", '"<" has USD on one side and W on the other'),
                            ("constraints: [power_W < 1 TB]", "W on one side and B"),
                            ("constraints: [step_time_s < 40 GB/s]", "s on one side and B/s"),
                            ("constraints: [2 * step_time_s * power_W < 3 s + 4 s]", "J on one side and s"),
                            ("constraints: [step_time_s]", '"step_time_s" is not a condition'),
                            ("where: [tp]", '"tp" is not a condition'),
                            ("where: [tp > 1 and 3]", '"and" needs conditions'),
                            ("let: {limit: 1 MW}\nconstraints: [cost_usd < limit]", "USD on one side and W"),
                            ("let: {bad: 1 GB + 2 s}", "B on one side and s"),
                            ("figures: {a: power_W, b: a + step_time_s}", "W on one side and s"),
                            ("figures: {a: memory_B in s}", "is in B, not in s")):
            self.assertIn(words, self.refused(BASE + AXES + line + "\n"))
        self.explore(BASE + AXES + """let: {limit: 1 MW, is_small: 1 < 2}
where: [is_small, tp <= 8 and not devices > 99]
constraints: [power_W < limit, step_time_s < 100, energy_J / step_time_s < 2 * limit, memory_B / 1 s < 4 TB/s, price_usd < 1e9]
figures: {watt_hours: energy_J / 3600, time: memory_B / 40 GB/s in s, root: sqrt(memory_B * memory_B) + 1 GB}
""")

    def test_a_range_has_at_least_two_points(self):
        self.assertIn("points", self.refused(BASE + "axes: [{devices: [8]}, {cluster.accelerator.memory: {from: 10 GiB, to: 100 GiB, points: 1}}]\n"))

    def test_a_threshold_has_a_unit(self):
        out = self.explore(BASE.replace("pp: 1", "devices: 64, stack: ideal") + """axes: [{global_batch: [64]}]
threshold:
  {path: cluster.dimensions.infiniband.bandwidth, from: 1 GB/s, to: 400 GB/s, first: {plan: MP1_DP64}, second: {plan: MP8_DP8}}
""")
        self.assertRegex(out, r"  threshold [0-9.]+ [GM]B/s: ")


if __name__ == "__main__":
    unittest.main()
