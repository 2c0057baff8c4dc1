"""Studies: rows for any number of threads and processes, after kills, and against orrery estimate; pages in a browser."""
import importlib.util
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

from program import HANGS_AFTER_S, PROGRAM, ProgramTest, ROOT

STUDY = """name: test
base: {model: llama-3.1-8b, cluster: dgx-a100, global_batch: 64, seq: 4096, pp: 1}
axes:
  - devices: [8, 16, 20, 32]
  - cluster.accelerator.memory: [24 GiB, 80 GiB]
  - cluster.dimensions.infiniband.bandwidth: {from: 50 Gb/s, to: 400 Gb/s, points: 4, scale: log}
  - tp: [1, 2, 4, 8, 3]
constraints: step_time_s < 20
pareto: [step_time_s, price_usd]
sensitivity: {of: [cluster.accelerator.matrix_peak, cluster.accelerator.memory]}
"""


SLOW_STUDY = """base: {model: llama-2-70b, cluster: dgx-a100, global_batch: 1024, seq: 4096}
axes:
  - devices: [256, 512, 1024]
  - cluster.dimensions.infiniband.bandwidth: [100 Gb/s, 200 Gb/s, 400 Gb/s]
plan: search
"""


HAS_RANKS = shutil.which("mpirun") and os.path.exists(os.path.join(os.path.dirname(PROGRAM), "liborrery_mpi.so"))


class ExploreTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("study.yaml", STUDY)

    def explore(self, database, *more, **settings):
        code, _, err = self.run_program("explore", "study.yaml", "--db", database, *more, **settings)
        self.assertEqual(code, 0, err)
        return self.rows(database)

    def rows(self, database):
        with sqlite3.connect(self.folder / database) as db:
            return {table: db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
                    for table in ("study", "columns", "points", "sensitivity")}

    def test_rows_do_not_depend_on_threads(self):
        one = self.explore("1.sqlite", "--threads", "1")
        self.assertEqual(len(one["points"]), 160)
        self.assertEqual(one, self.explore("2.sqlite", "--threads", "2"))
        self.assertEqual(one, self.explore("5.sqlite", "--threads", "5"))

    def start_ranks(self, ranks, *arguments):
        environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                       "OMPI_MCA_plm_rsh_agent": "/bin/false"}  # one machine: no remote shell is needed
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), PROGRAM, "explore", "study.yaml", *arguments]
        return self.start_command(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def pid_of_rank(self, rank):
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/cmdline", "rb") as command, open(f"/proc/{process}/environ", "rb") as environment:
                    is_program = command.read().split(b"\0")[0] == PROGRAM.encode()
                    if is_program and f"OMPI_COMM_WORLD_RANK={rank}".encode() in environment.read().split(b"\0") \
                            and os.readlink(f"/proc/{process}/cwd") == os.path.realpath(self.folder):
                        return int(process)
            except OSError:  # it has ended
                continue
        return None

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is absent")
    def test_without_mpi_only_one_rank_says_so(self):
        alone = shutil.copy(PROGRAM, self.folder / "orrery")  # without liborrery_mpi.so beside it
        command = ["mpirun", "--oversubscribe", "-n", "3", alone, "explore", "study.yaml", "--db", "r.sqlite"]
        process = self.start_command(command, env={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                                                   "OMPI_MCA_plm_rsh_agent": "/bin/false"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(err.decode().count("built without MPI"), 1, err)

    def kill_rank_1(self, process):
        victim = None
        while victim is None and process.poll() is None:
            time.sleep(0.02)
            victim = self.pid_of_rank(1)
        self.assertIsNotNone(victim)
        os.kill(victim, signal.SIGKILL)
        limit = time.monotonic() + HANGS_AFTER_S
        while self.pid_of_rank(0) or self.pid_of_rank(1):
            self.assertLess(time.monotonic(), limit, "the other rank has not ended")
            time.sleep(0.02)

    @unittest.skipUnless(HAS_RANKS, "mpirun or liborrery_mpi.so is absent")
    def test_a_rank_that_is_killed_ends_the_job_and_its_study_continues(self):
        self.write("study.yaml", SLOW_STUDY)
        whole = self.explore("whole.sqlite")
        # mpirun of Open MPI 4.1 can deadlock in its own end (PMIx_server_finalize), when all ranks have ended: once more.
        for attempt in range(3):
            process = self.start_ranks(2, "--db", f"r{attempt}.sqlite", "--threads", "1")
            self.kill_rank_1(process)
            try:
                process.communicate(timeout=30)
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
        else:
            self.fail("mpirun did not end, three times")
        self.assertNotEqual(process.returncode, 0)
        self.explore(f"r{attempt}.sqlite", "--resume")
        self.assertEqual(whole, self.rows(f"r{attempt}.sqlite"))

    @unittest.skipUnless(HAS_RANKS, "mpirun or liborrery_mpi.so is absent")
    def test_rows_do_not_depend_on_processes(self):
        one = self.explore("1.sqlite", "--threads", "1")
        for ranks in (2, 8):
            process = self.start_ranks(ranks, "--db", f"r{ranks}.sqlite")
            _, err = process.communicate(timeout=HANGS_AFTER_S)
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual(one, self.rows(f"r{ranks}.sqlite"))

    def test_a_killed_study_continues_to_the_same_rows(self):
        self.write("study.yaml", SLOW_STUDY)
        whole = self.explore("whole.sqlite")
        started = time.monotonic()
        self.explore("timed.sqlite")
        whole_s = time.monotonic() - started
        kills = 0
        for attempt in range(20):
            process = self.start("explore", "study.yaml", "--db", "killed.sqlite", "--threads", "1", "--resume",
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if attempt < 12:
                time.sleep(0.4 * whole_s * random.random())  # any moment; runs that continue are shorter
                process.kill()
            _, err = process.communicate(timeout=HANGS_AFTER_S)
            kills += process.returncode == -signal.SIGKILL
            if process.returncode != -signal.SIGKILL:
                break
        self.assertEqual(process.returncode, 0, err)
        self.assertGreater(kills, 0)
        self.assertEqual(whole, self.rows("killed.sqlite"))

    def test_a_changed_study_is_refused(self):
        self.explore("r.sqlite")
        self.write("study.yaml", STUDY.replace("global_batch: 64", "global_batch: 128"))
        code, _, err = self.run_program("explore", "study.yaml", "--db", "r.sqlite", "--resume")
        self.assertEqual(code, 2)
        self.assertIn("base.global_batch was 64, is 128", err)

    def test_every_point_is_a_row_with_its_reason(self):
        self.explore("r.sqlite")
        with sqlite3.connect(self.folder / "r.sqlite") as db:
            reasons = dict(db.execute("SELECT status, MAX(reason) FROM points WHERE status != 'ok' GROUP BY status"))
            self.assertEqual(db.execute("SELECT COUNT(*) FROM points WHERE devices = 20 AND status != 'failed'").fetchone()[0], 0)
            self.assertEqual(db.execute("SELECT COUNT(*) FROM points WHERE status != 'ok' AND reason IS NULL").fetchone()[0], 0)
        self.assertEqual(set(reasons), {"infeasible", "failed"})

    def test_points_equal_orrery_estimate(self):
        self.explore("r.sqlite")
        with sqlite3.connect(self.folder / "r.sqlite") as db:
            ok = db.execute("SELECT id, step_time_s, memory_B, cost_usd, plan FROM points WHERE status = 'ok'").fetchall()
        random.seed(7)
        for point, step, memory, cost, plan in random.sample(ok, 6):
            code, _, err = self.run_program("explore", "study.yaml", "--point", str(point), "--out-folder", f"p{point}")
            self.assertEqual(code, 0, err)
            code, out, err = self.run_program("estimate", "--scenario", f"p{point}/scenario.yaml", "--cluster",
                                              f"p{point}/cluster.yaml", "--json")
            self.assertEqual(code, 0, err)
            found = json.loads(out)
            self.assertEqual((found["step_time_s"], found["memory_B"]["total"], found["cost_usd_per_step"]), (step, memory, cost))
            self.assertEqual(found["plan"], json.loads(plan))

    def test_passes_sum_to_the_breakdown_and_equal_orrery_estimate(self):
        self.explore("r.sqlite")
        with sqlite3.connect(self.folder / "r.sqlite") as db:
            rows = db.execute("SELECT id, passes, breakdown, comm FROM points WHERE status = 'ok'").fetchall()
        for _, passes, breakdown, comm in rows:
            passes, breakdown, comm = json.loads(passes), json.loads(breakdown), json.loads(comm)
            self.assertEqual(list(passes), ["forward", "input_gradient", "weight_gradient", "optimizer"])
            self.assertAlmostEqual(sum(one["compute"] for one in passes.values()), breakdown["compute"] + breakdown["optimizer"])
            for group, times in comm["by_group"].items():
                self.assertAlmostEqual(sum(one["exposed_by_group"].get(group, 0) for one in passes.values()), times["exposed"])
        point, passes = rows[0][0], json.loads(rows[0][1])
        self.assertEqual(self.run_program("explore", "study.yaml", "--point", str(point), "--out-folder", "p")[0], 0)
        code, out, err = self.run_program("estimate", "--scenario", "p/scenario.yaml", "--cluster", "p/cluster.yaml", "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["passes_s"], passes)

    def test_a_search_with_expansion_finds_the_best_of_all_plans(self):
        text = """base: {{model: llama-3.1-8b, cluster: {{use: dgx-a100, accelerator.memory: 20 GiB, second_tier.memory: {tier},
       second_tier.bandwidth: 60 GB/s}}, devices: 8, global_batch: 32, seq: 4096, vpp: 1, pp: 1, cp: 1, schedule: 1f1b, sequence_parallel: true,
       tp_overlap: none, dp_overlap: true, cp_method: ring, gather_overlap: true, stack: ideal}}
expansion: {rule}
"""
        values = {"tp": [2, 4, 8], "micro_batch": [1, 2], "zero": [0, 1, 3], "recompute": ["none", "full"]}
        for tier, rule in (("200 GB", "serial"), ("200 GB", "parallel"), ("8 GB", "serial")):
            axes = "axes: [" + ", ".join(f"{{{name}: {json.dumps(list_)}}}" for name, list_ in values.items()) + "]\n"
            self.write("study.yaml", text.format(tier=tier, rule=rule) + axes)
            (self.folder / "all.sqlite").unlink(missing_ok=True)
            self.explore("all.sqlite")
            self.write("study.yaml", text.format(tier=tier, rule=rule) + f"axes: []\nplan: search\nsearch: {json.dumps(values)}\n")
            (self.folder / "best.sqlite").unlink(missing_ok=True)
            self.explore("best.sqlite")
            with sqlite3.connect(self.folder / "all.sqlite") as db:
                least, count = db.execute("SELECT MIN(step_time_s), COUNT(*) FROM points WHERE status = 'ok'").fetchone()
            with sqlite3.connect(self.folder / "best.sqlite") as db:
                found = db.execute("SELECT step_time_s, reason FROM points WHERE status = 'ok'").fetchone()
            self.assertGreater(count, 1)
            self.assertAlmostEqual(found[0], least, delta=1e-9 * least, msg=f"{tier} {rule}")

    def test_a_point_that_fits_neither_tier_has_no_time(self):
        text = """base: {{model: {{use: madmax/dlrm_a, recommender.tables.0.rows: 3116000}}, cluster: dgx-a100, devices: 16, global_batch: 65536,
       stack: ideal}}
expansion: serial
axes: [{{cluster.second_tier.memory: [0 GB, 1000 GB]}}]
{plan}
"""
        for plan in ("plan: given", "plan: search"):
            self.write("study.yaml", text.format(plan=plan))
            (self.folder / "t.sqlite").unlink(missing_ok=True)
            self.explore("t.sqlite")
            with sqlite3.connect(self.folder / "t.sqlite") as db:
                none, some = db.execute("SELECT status, step_time_s, cost_usd, reason FROM points ORDER BY id").fetchall()
            self.assertEqual(none[:3], ("infeasible", None, None))
            self.assertTrue(none[3])
            self.assertEqual(some[0], "ok", some)
            self.assertGreater(some[1], 0)

    def expansion(self, rule, axes):
        self.write("study.yaml", f"""expansion: {rule}
base: {{model: llama-2-70b, cluster: {{use: dgx-a100, second_tier.memory: 1 TB, second_tier.memory_bandwidth: 0 B/s}}, devices: 64,
       global_batch: 64, seq: 4096, tp: 8, pp: 1, vpp: 1, micro_batch: 1, zero: 1, recompute: full, sequence_parallel: true}}
axes: {axes}
""")
        (self.folder / "e.sqlite").unlink(missing_ok=True)
        self.explore("e.sqlite")
        with sqlite3.connect(self.folder / "e.sqlite") as db:
            return db.execute("SELECT step_time_s, second_tier_B, memory_B, reason FROM points ORDER BY id").fetchall()

    def test_a_second_tier_is_as_fast_as_both_memories_together(self):
        """Against device memory that is large enough: equal where both tiers have the same rate, slower below it."""
        rates = [20, 50, 100, 400, 1000]
        small = "{cluster.accelerator.memory: [40 GiB]}, {cluster.second_tier.bandwidth: [" + ", ".join(f"{r} GB/s" for r in rates) + "]}"
        serial = self.expansion("serial", f"[{small}]")
        parallel = self.expansion("parallel", f"[{small}]")
        whole = self.expansion("serial", "[{cluster.accelerator.memory: [1 TB]}]")[0]
        self.assertEqual((whole[1], whole[3]), (0, None))  # it fits: nothing is in the second tier
        for rule, rows in (("serial", serial), ("parallel", parallel)):
            times = [row[0] for row in rows]
            self.assertEqual(times, sorted(times, reverse=True))
            self.assertGreater(times[0], times[-1])
            for time_s, second, first, reason in rows:
                if rule == "serial":  # in parallel, both tiers together can be faster than the first alone
                    self.assertGreater(time_s, whole[0])
                self.assertAlmostEqual(second + first, whole[2], delta=1e-6 * whole[2])  # nothing is lost or counted twice
                self.assertIn("in the second tier", reason)
        for one, other in zip(serial, parallel):
            self.assertLessEqual(other[0], one[0])
        # The rate that kernels reach on an A100: 2,039 GB/s x the efficiency of the catalogue.
        _, text, _ = self.run_program("describe", "a100-sxm-80gb")
        efficiency = next(float(line.split()[1]) for line in text.splitlines() if line.startswith("memory_efficiency:"))
        equal = self.expansion("serial", "[{cluster.accelerator.memory: [40 GiB]}, {cluster.second_tier.bandwidth: "
                                         f"[{2039 * efficiency:.6f} GB/s]}}]")[0]
        self.assertAlmostEqual(equal[0], whole[0], delta=1e-6 * whole[0])

    def test_more_of_a_second_tier_is_never_slower(self):
        capacities = [0, 16, 32, 64, 128, 256, 512]
        axes = "[{plan: [MP8_DP128, MP16_DP64, MP32_DP32]}, {cluster.second_tier.memory: [" + ", ".join(f"{c} GiB" for c in capacities) + "]}]"
        self.write("study.yaml", f"""base: {{model: megatron-1t, cluster: {{use: dgx-a100, second_tier.bandwidth: 100 GB/s}}, devices: 1024,
       stack: {{use: ideal, pads_heads: true}}, precision: fp16, global_batch: 1024, seq: 2048, micro_batch: 1, recompute: full, zero: 2}}
expansion: serial
axes: {axes}
""")
        self.explore("c.sqlite")
        with sqlite3.connect(self.folder / "c.sqlite") as db:
            for plan in ("MP8_DP128", "MP16_DP64", "MP32_DP32"):
                times = [row[0] for row in db.execute("SELECT step_time_s FROM points WHERE axis_plan = ? AND status = 'ok' ORDER BY id", (plan,))]
                self.assertEqual(times, sorted(times, reverse=True), plan)
                self.assertGreater(len(times), 1)

    def test_a_threshold_is_where_the_winner_changes(self):
        axes = """[{{cluster.second_tier.memory: [512 GB]}}]
base: {{model: megatron-1t, cluster: dgx-a100, devices: 1024, stack: {{use: megatron-deepspeed, pads_heads: true}},
       precision: fp16, global_batch: 1024, seq: 2048, micro_batch: 1, recompute: full, zero: 2}}
expansion: serial
"""
        threshold = """threshold: {{path: cluster.second_tier.bandwidth, from: 1 GB/s, to: 2000 GB/s, tolerance: 1 %,
            first: {{plan: MP8_DP128}}, second: {{plan: {}}}}}
"""
        self.write("study.yaml", ("axes: " + axes + threshold).format("MP64_DP16"))
        self.explore("t.sqlite")
        with sqlite3.connect(self.folder / "t.sqlite") as db:
            value, reason = db.execute("SELECT threshold, reason FROM points").fetchone()
        self.assertIn("the first plan wins from the threshold on", reason)
        for factor, first_wins in ((0.98, False), (1.0, True), (1.5, True)):
            times = []
            for plan in ("MP8_DP128", "MP64_DP16"):
                self.write("study.yaml", ("axes: [{{plan: [{}]}}, {{cluster.second_tier.memory: [512 GB]}}, "
                                          "{{cluster.second_tier.bandwidth: [{} B/s]}}]\n" + axes[axes.index("base"):]).format(plan, factor * value))
                (self.folder / "p.sqlite").unlink(missing_ok=True)
                self.explore("p.sqlite")
                with sqlite3.connect(self.folder / "p.sqlite") as db:
                    times.append(db.execute("SELECT step_time_s FROM points").fetchone()[0])
            self.assertEqual(times[0] < times[1], first_wins, (factor, times))
        self.write("study.yaml", ("axes: " + axes + threshold).format("MP8_DP128"))
        self.explore("same.sqlite")
        with sqlite3.connect(self.folder / "same.sqlite") as db:
            self.assertIn("no threshold: the second plan wins", db.execute("SELECT reason FROM points").fetchone()[0])

    def test_mistakes_are_one_line_with_their_place(self):
        def error(change, *arguments):
            self.write("study.yaml", STUDY if change is None else STUDY.replace(*change))
            code, out, err = self.run_program("explore", "study.yaml", *arguments)
            self.assertEqual((code, out), (2, ""), err)
            return err

        new = ("--db", "n.sqlite")
        self.assertIn("did you mean \"accelerator\"?", error(("cluster.accelerator.memory", "cluster.acelerator.memory"), *new))
        self.assertIn("study.yaml:5", error(("24 GiB", "24 GB/s"), *new))
        self.assertIn("study.yaml:4", error(("[8, 16, 20, 32]", "[]"), *new))
        self.assertIn("unknown cluster", error(("dgx-a100", "dgx-a101"), *new))
        self.assertIn("global_batch", error(("global_batch: 64, ", ""), *new))
        self.assertIn("the study has", error(("points: 4", "points: 900000"), *new))
        self.assertIn("study.yaml:6:84 /axes/2/cluster.dimensions.infiniband.bandwidth/points: points: \"1000000000000\" is not a number from 2",
                      error(("points: 4", "points: 1000000000000"), *new))
        million = "axes:\n  - cluster.accelerator.price_usd: {from: 1, to: 1000000, points: 1000000}"
        self.assertIn("the study has 1.6e+08 points; at most 10000000", error(("axes:", million), *new))
        self.assertIn("study.yaml:", error(("constraints: step_time_s < 20", "where: tp > 8"), *new))
        self.assertIn("study.yaml:", error(("constraints:", "derive: {tp: 2}\nconstraints:"), *new))  # tp is an axis, too
        self.assertIn("--db", error(None))
        self.assertIn("unable to open", error(None, "--db", "/proc/r.sqlite"))
        self.assertIn("unable to open", error(None, "--db", "nowhere/r.sqlite"))
        self.write("foreign.sqlite", "not a database, a text of some length\n" * 20)
        self.assertIn("is not a database", error(None, "--db", "foreign.sqlite", "--resume"))
        self.assertIn("exists", error(None, "--db", "foreign.sqlite"))
        with sqlite3.connect(self.folder / "other.sqlite") as db:
            db.execute("CREATE TABLE t (a)")
        self.assertIn("another program", error(None, "--db", "other.sqlite", "--resume"))
        self.explore("new.sqlite")
        with sqlite3.connect(self.folder / "new.sqlite") as db:
            db.execute("PRAGMA user_version = 99")
        self.assertIn("version 99", error(None, "--db", "new.sqlite", "--resume"))


@unittest.skipUnless(importlib.util.find_spec("selenium") and shutil.which("chromedriver") and shutil.which("chromium"),
                     "python3-selenium, chromium or chromium-driver is absent")
class PageTest(ProgramTest):
    def browser(self, width):
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
        options = Options()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--window-size={width},900"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.addCleanup(driver.quit)
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                               {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
        return driver

    def test_a_page_of_ten_thousand_points_is_small_and_opens_soon(self):
        self.write("study.yaml", """base: {model: llama-3.1-8b, cluster: dgx-h100, devices: 256, global_batch: 256, seq: 8192, micro_batch: 1, recompute: full,
       zero: 1, vpp: 1}
axes:
  - cluster.accelerator.memory_bandwidth: {from: 2 TB/s, to: 8 TB/s, points: 25}
  - cluster.dimensions.infiniband.bandwidth: {from: 10 GB/s, to: 100 GB/s, points: 25}
  - cluster.accelerator.memory: {from: 40 GiB, to: 192 GiB, points: 4}
  - plan: [{tp: 1, pp: 1}, {tp: 2, pp: 1}, {tp: 4, pp: 1}, {tp: 8, pp: 1}]
""")
        self.assertEqual(self.run_program("explore", "study.yaml", "--db", "r.sqlite")[0], 0)
        self.assertEqual(self.run_program("report", "r.sqlite", "--out", "r.html")[0], 0)
        self.assertLess(os.path.getsize(self.folder / "r.html"), 8e6)
        page = self.browser(1280)
        page.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        page.get(f"file://{self.folder}/r.html")
        self.assertEqual(page.execute_script("return document.body.dataset.ready"), "true")
        self.assertIn("10000 of 10000 points", page.find_element("id", "state").text)
        times = {one["name"]: one["value"] for one in page.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]}
        self.assertLess(times["TaskDuration"], 2.0)  # processor time of the page's main thread, seconds

    def test_charts_are_drawn_and_a_filter_selects(self):
        self.write("study.yaml", STUDY)
        self.assertEqual(self.run_program("explore", "study.yaml", "--db", "r.sqlite")[0], 0)
        self.assertEqual(self.run_program("report", "r.sqlite", "--out", "r.html")[0], 0)
        for width in (1280, 400):
            page = self.browser(width)
            page.get(f"file://{self.folder}/r.html")
            self.assertEqual(page.execute_script("return document.body.dataset.ready"), "true")
            self.assertEqual(page.get_log("browser"), [])
            requests = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
            urls = [one["params"]["request"]["url"] for one in requests if one["method"] == "Network.requestWillBeSent"]
            self.assertEqual([url for url in urls if not url.startswith(("file:", "data:"))], [])
            drawn = """return [...document.querySelectorAll('canvas')].map(c => {
                const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return p.some(v => v > 0); })"""
            self.assertEqual(page.execute_script(drawn), [True] * 5)
            self.assertLessEqual(page.execute_script("return document.documentElement.scrollWidth"), width)
            state = page.find_element("id", "state")
            self.assertIn("160 of 160 points", state.text)
            page.find_element("css selector", "input[data-column=status]").send_keys("ok")
            with sqlite3.connect(self.folder / "r.sqlite") as db:
                ok = db.execute("SELECT COUNT(*) FROM points WHERE status = 'ok'").fetchone()[0]
            self.assertIn(f"{ok} of 160 points", state.text)
            tables = page.execute_script("return document.querySelectorAll('details table tbody tr').length")
            self.assertGreater(tables, 10)

    def test_a_result_that_an_axis_has_is_shown_once(self):
        self.write("study.yaml", """base: {model: llama-3.1-8b, cluster: dgx-h100, global_batch: 256, seq: 8192}
axes: [{devices: [64, 128]}, {tp: [2, 4]}]
objective: devices
pareto: [devices, step_time_s]
""")
        self.assertEqual(self.run_program("explore", "study.yaml", "--db", "r.sqlite")[0], 0)
        self.assertEqual(self.run_program("report", "r.sqlite", "--out", "r.html")[0], 0)
        page = self.browser(1280)
        page.get(f"file://{self.folder}/r.html")
        self.assertEqual(page.get_log("browser"), [])
        lists = page.execute_script("return [...document.querySelectorAll('select')].map(s => [...s.options].map(o => o.text))")
        self.assertTrue(any("devices" in texts for texts in lists))
        for texts in lists:
            self.assertEqual(len(texts), len(set(texts)), texts)
        chosen = page.execute_script("return [...document.querySelectorAll('select')].map(s => s.selectedOptions[0].text)")
        self.assertEqual(chosen[:2], ["devices", "step time [s]"])
        self.assertIn("least devices", page.find_element("css selector", ".counts").text)

    def test_campaigns_and_jobs_are_drawn(self):
        job = ("campaign", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "64", "--global-batch", "128",
               "--seq", "8192", "--tokens", "1T", "--usd-per-device-hour", "2", "--price-date", "2026-11", "--json")
        for name, more in (("today", ()), ("slower restart", ("--restart", "20min"))):
            code, out, err = self.run_program(*job, *more)
            self.assertEqual((code, err), (0, ""))
            self.write(f"{name}.json", out)
        self.write("cluster.yaml", """servers: 8
policy: backfill
arrivals: {process: poisson, interarrival: 50 s, count: 60}
kinds:
  - {name: wide, sequential: 600 s, widths: [6]}
  - {name: narrow, sequential: 100 s, widths: [1, 2]}
""")
        code, out, err = self.run_program("jobs", "cluster.yaml", "--json")
        self.assertEqual((code, err), (0, ""))
        self.write("cluster.json", out)
        files = ("today.json", "slower restart.json", "cluster.json")
        self.assertEqual(self.run_program("report", *files, "--out", "runs.html")[0], 0)
        for width in (1280, 400):
            page = self.browser(width)
            page.get(f"file://{self.folder}/runs.html")
            self.assertEqual(page.get_log("browser"), [])
            self.assertEqual(page.execute_script("return document.body.dataset.ready"), "true")
            # The bar, useful time against size, the jobs: painted, in more than one colour.
            colours = """return ['time', 'size', 'gantt-0'].map(id => { const c = document.getElementById(id);
                const p = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);
                return new Set(p).size; })"""
            self.assertGreater(min(page.execute_script(colours)), 3)
            self.assertLessEqual(page.execute_script("return document.documentElement.scrollWidth"), width)
            text = page.find_element("id", "page").text
            for words in ("today", "slower restart", "Useful time against size", "policy backfill", "useful time"):
                self.assertIn(words, text)
            shares = "return [...document.querySelectorAll('#time-data tbody tr')].map(r => r.children[1].textContent)"
            total = sum(float(cell.removesuffix(" %")) for cell in page.execute_script(shares))
            self.assertAlmostEqual(total, 100, delta=0.1)
            rows = page.execute_script("return document.querySelectorAll('#gantt-0-data tbody tr').length")
            self.assertEqual(rows, 60)

    def test_a_page_needs_results_that_it_can_draw(self):
        self.write("other.json", '{"schema": "orrery.estimate/1"}')
        self.write("runs.sqlite", "")
        for files, words in ((("other.json",), "orrery.estimate/1"), (("other.json", "runs.sqlite"), "orrery.estimate/1"),
                             (("runs.sqlite", "other.json"), "one database"), (("missing.json",), "missing.json")):
            code, out, err = self.run_program("report", *files, "--out", "no.html")
            self.assertEqual((code, out), (2, ""))
            self.assertIn(words, err)


class PageNumbersTest(ProgramTest):
    def test_numbers_of_the_page_are_those_of_the_database(self):
        self.write("study.yaml", STUDY)
        self.assertEqual(self.run_program("explore", "study.yaml", "--db", "r.sqlite")[0], 0)
        self.assertEqual(self.run_program("report", "r.sqlite", "--out", "r.html")[0], 0)
        text = (self.folder / "r.html").read_text()
        data = json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])
        with sqlite3.connect(self.folder / "r.sqlite") as db:
            db.row_factory = sqlite3.Row
            rows = db.execute("SELECT * FROM points ORDER BY id").fetchall()
        self.assertEqual(data["count"], len(rows))
        digits = lambda value: None if value is None else float(f"{value:.10g}")  # the page's precision
        compared = 0
        for column in data["columns"]:
            if column["name"] in ("plan", "reason"):  # texts for people
                continue
            for i, row in enumerate(rows):
                shown, stored = column["values"][i], row[column["name"]]
                if "dictionary" in column:
                    shown = None if shown == -1 else column["dictionary"][shown]
                    self.assertEqual(shown, stored)
                else:
                    self.assertEqual(shown, digits(stored), (column["name"], i))
                compared += shown is not None
        self.assertGreater(compared, 1000)
        at = {"step time by cause": lambda row, name: json.loads(row["breakdown"]).get(name, 0),
              "memory by class": lambda row, name: json.loads(row["memory"]).get(name, 0)}
        for kind, value in at.items():
            for part in data["stacks"][kind]:
                for i, row in enumerate(rows):
                    if row["breakdown"]:
                        self.assertEqual(part["values"][i], digits(value(row, part["name"])))
        passes = {part["name"]: part["values"] for part in data["stacks"]["passes, without recomputation and bubbles"]}
        for i, row in enumerate(rows):
            if row["passes"]:
                self.assertEqual(passes["weight gradient compute"][i], digits(json.loads(row["passes"])["weight_gradient"]["compute"]))


if __name__ == "__main__":
    unittest.main()
