"""Profiles of PyTorch: public files and made jobs with exact truth. Skipped where the shared data are absent."""
import json
import pathlib
import tarfile
import unittest

from program import ROOT, ProgramTest

SHARED = ROOT.parent / "shared" / "data" / "traces"
OWN_KEYS = ("top_kernels", "top_operators")
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


if __name__ == "__main__":
    unittest.main()
