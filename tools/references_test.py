"""Shipped measurements and references: their size, their words, and what is rebuilt of them."""
import csv
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import astra_sim_cases as cases  # noqa: E402
import astra_sim_collect as collect  # noqa: E402
import measurements  # noqa: E402

DATA = cases.ROOT / "data"
BUDGET = 1_500_000


class Shipped(unittest.TestCase):
    def test_the_data_folder_is_within_its_budget(self):
        size = sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file())
        self.assertLess(size, BUDGET)

    def test_tables_have_no_empty_column(self):
        for name in measurements.TABLES:
            rows = measurements.tables.lines(DATA / "measurements" / name)
            for column in rows[0]:
                self.assertTrue(any(row[column] for row in rows), f"{name}: {column}")

    def test_every_setup_has_rows_and_every_row_its_setup(self):
        for path in sorted((DATA / "measurements" / "setups").glob("*.csv")):
            with open(path, newline="", encoding="utf-8") as stream:
                defined = [row["setup_row"] for row in csv.DictReader(stream)]
            with open(DATA / "measurements" / path.name, newline="", encoding="utf-8") as stream:
                used = {row["setup_row"] for row in csv.DictReader(stream)}
            self.assertEqual(len(defined), len(set(defined)), path.name)
            self.assertEqual(set(defined), used, path.name)

    def test_superseded_rows_are_those_that_a_newer_release_repeats(self):
        for name in measurements.TABLES:
            if name == "serving.csv":
                continue  # superseded runs are not in it
            rows = measurements.tables.read([DATA / "measurements" / name])
            newest = {row.cells["id"] for row in measurements.tables.newest(rows)}
            self.assertEqual({row.cells["id"] for row in rows if not row.cells.get("unscored")}, newest)


class Measurements(unittest.TestCase):
    def test_numbers_are_as_short_as_they_can_be(self):
        self.assertEqual([measurements.number(text) for text in ("8.0", "0.160603", "1e3", "31.0")], ["8", "0.160603", "1000", "31"])

    def test_guessed_algorithms_are_blank(self):
        texts = ("Ring (NVLS off)", "default (NVLSTree likely)", "Ring/LL <=1MiB, NVLS >=2MiB", "NVLSTree forced", "")
        self.assertEqual([measurements.algorithm(text) for text in texts], ["ring", "", "", "nvls", ""])

    def test_setups_and_rows_are_the_table(self):
        header, lines = ["id", "gpu", "size", "net"], [["a", "A100", "8", "IB"], ["b", "H100", "8", "IB"], ["c", "A100", "16", "IB"]]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.csv"
            head, rows, setup_head, setups = measurements.split(header, lines, {"id", "size"})
            measurements.write(path, head, rows)
            measurements.write(path.parent / "setups" / "t.csv", setup_head, setups)
            self.assertEqual(setups, [[1, "A100", "IB"], [2, "H100", "IB"]])
            self.assertEqual(measurements.tables.lines(path), [dict(zip(header, line)) for line in lines])

    def test_citations_of_serving_have_their_commit_in_the_source(self):
        sources = measurements.Sources()
        cited = sources.cite_served("aic_silicon", "github:ai-dynamo/aiconfigurator a/b.csv@095f58a51 line 2050")
        self.assertEqual(cited, "aic_silicon line 2050")
        self.assertEqual(sources.rows[0][2], "https://github.com/ai-dynamo/aiconfigurator/blob/095f58a51/a/b.csv")
        text = "github:mlcommons/inference_results_v5.1@965182b closed/AMD/results/8xMI300X/llama2-70b-99.9/Server (ID 5.1-0001, AMD)"
        self.assertEqual(sources.cite_served("mlperf_inference_v5.1", text), "mlperf_inference_v5.1 AMD/8xMI300X/llama2-70b-99.9/Server")

    def test_a_citation_is_a_key_and_a_place_in_the_source(self):
        sources = measurements.Sources()
        text = "github:VIA-Research/vTrain:data/ground_truth_multi.csv@f8dda8473a48b373b1d25f51f52d685bff5150c5 row 5"
        self.assertEqual(sources.cite("vtrain_multi", text), "vtrain_multi row 5")
        self.assertEqual(sources.cite("vtrain_multi", text.replace("row 5", "row 7")), "vtrain_multi row 7")
        self.assertEqual(len(sources.rows), 1)
        self.assertEqual(sources.cite("mlperf_gpt3", "github:mlcommons/training_results_v4.0:N/r.txt@6fe954378e ; config c.sh"),
                         "mlperf-v4.0 N/r.txt")


class AstraSim(unittest.TestCase):
    def test_words_become_configurations(self):
        self.assertEqual(cases.network_text("Ring 8 50 500 / Switch 4 100 2000"),
                         "topology: [ Ring, Switch ]\nnpus_count: [ 8, 4 ]\nbandwidth: [ 50, 100 ]\nlatency: [ 500, 2000 ]\n")
        system = cases.system_of("ring,direct splits=16 -mem", str)
        self.assertEqual(system["preferred-dataset-splits"], 16)
        self.assertEqual(system["all-gather-implementation"], ["ring", "direct"])
        self.assertNotIn("local-mem-bw", system)
        self.assertEqual(cases.groups_of("1:0-2 2:5+7"), {"1": [0, 1, 2], "2": [5, 7]})
        self.assertEqual(cases.cycles("64744x2 100"), [64744, 64744, 100])

    def test_a_graph_is_read_back_as_it_was_described(self):
        texts = ("comp 5; comp 7 cpu 1", "4x comp 10 after -1", "load 64; comp 10 after -1; store 128 after -1,-2",
                 "send +1 4096 tag 3; recv +2 4096 tag 3 after -1; all_gather 64 group 2 dims 10",
                 "comp 5 ops 1000 bytes 2000; all_reduce 8 dur 9")
        for text in texts:
            with tempfile.TemporaryDirectory() as folder:
                cases.graph_files([("*", text)], pathlib.Path(folder) / "w", 3)
                for rank in range(3):
                    self.assertEqual(collect.graph_text(pathlib.Path(folder) / f"w.{rank}.et", rank, 3), text)

    def test_every_case_can_be_written(self):
        with tempfile.TemporaryDirectory() as folder:
            inputs = cases.Inputs(folder)
            rows = cases.rows_of(cases.REFERENCES / "cases.csv")
            for row in rows:
                if cases.ranks_of_network(row["network"]) <= 64:
                    inputs.arguments(row)
                self.assertEqual(len(cases.cycles(row["finish"])), cases.ranks_of_network(row["network"]), row["case"])
        self.assertEqual(len(rows), 540)


if __name__ == "__main__":
    unittest.main()
