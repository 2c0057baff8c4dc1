import unittest

import bench


class Bench(unittest.TestCase):
    baselines = {"tolerance": 0.02, "instructions": {"a": 1000}}

    def test_more_instructions_than_tolerated_is_a_failure(self):
        self.assertEqual(bench.verdict("a", 1020, self.baselines)[1], False)
        self.assertEqual(bench.verdict("a", 1021, self.baselines)[1], True)

    def test_fewer_is_reported_and_new_is_no_failure(self):
        line, failed = bench.verdict("a", 900, self.baselines)
        self.assertIn("better", line)
        self.assertFalse(failed)
        self.assertFalse(bench.verdict("b", 1, self.baselines)[1])


if __name__ == "__main__":
    unittest.main()
