"""Serving on public traces of requests. Skipped where the shared data are absent."""
import json
import lzma
import unittest

from program import ROOT, ProgramTest

SHARED = ROOT.parent / "shared" / "data" / "serving"


def block_ids(text):
    """The hashes of "0-13 17": runs are written with a dash."""
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def leading_hits(trace):
    """Part of all blocks that an unlimited cache has: leading ids that an earlier prompt had."""
    seen, hits, blocks = set(), 0, 0
    for line in trace.splitlines()[1:]:
        _, _, _, ids = line.split(",")
        ids = list(block_ids(ids))
        hits += next((i for i, block in enumerate(ids) if block not in seen), len(ids))
        blocks += len(ids)
        seen.update(ids)
    return hits / blocks


@unittest.skipUnless(SHARED.exists(), "needs ../shared/data/serving")
class PublicTraces(ProgramTest):
    def test_prefix_hits_of_an_unlimited_cache(self):
        """The published rates, 36.6 and 64.0 %, count leading ids, the last of a prompt included."""
        for name, published in (("conversation", 0.366), ("synthetic", 0.640)):
            with self.subTest(name):
                text = lzma.open(SHARED / f"mooncake_{name}.csv.xz", "rt").read()
                trace = self.folder / f"{name}.csv"
                trace.write_text(text)
                # Slow arrivals: a prompt is in the cache before the next one comes.
                code, out, err = self.run_program(
                    "serve", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--trace", str(trace), "--trace-speed", "0.01",
                    "--blocks", "1000000000", "--json")
                self.assertEqual(code, 0, err)
                rate = json.loads(out)["prefix_block_hit_rate"]
                self.assertAlmostEqual(rate, leading_hits(text), delta=2e-4)
                self.assertAlmostEqual(rate, published, delta=5e-4)


if __name__ == "__main__":
    unittest.main()
