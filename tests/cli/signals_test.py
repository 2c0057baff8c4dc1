"""What is left when the program is stopped: no file that looks whole and is not, and the exit code of the signal (130
for Ctrl-C, as shells count)."""
import os
import signal
import subprocess
import unittest

from program import INTERRUPTING, PROGRAM, ProgramTest, Terminal, ROOT, astra_sim, json_lines


class Signals(ProgramTest):
    def wait_for(self, process, found):
        """Until found(), while the program runs."""
        while not found():
            self.assertIsNone(process.poll(), "the program ended before the test could stop it")
            os.sched_yield()

    def interrupted(self, arguments, number, kept=()):
        """Starts the program with `input.jsonl`, a named pipe, and stops it in the middle of reading it."""
        process = self.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with open(self.folder / "input.jsonl", "w") as pipe:  # returns once the program has opened the pipe
            pipe.write(json_lines(1000))
            pipe.flush()
            self.wait_for(process, lambda: all(name in self.files() for name in kept))
            process.send_signal(number)
            self.assertEqual(process.wait(), -number)
        self.assertEqual(process.stdout.read(), b"")

    def test_a_timeline_that_is_begun_is_removed(self):
        self.fifo("input.jsonl")
        for number in INTERRUPTING:
            with self.subTest(signal=number.name):
                self.interrupted(["trace", "timeline", "input.jsonl", "--out", "t.json"], number, kept=["t.json.partial"])
                self.assertEqual(self.files(), [])

    def test_a_file_that_was_there_stays_as_it_was(self):
        self.fifo("input.jsonl")
        self.write("t.json", "before")
        self.interrupted(["trace", "timeline", "input.jsonl", "--out", "t.json"], signal.SIGINT, kept=["t.json.partial"])
        self.assertEqual(self.files(), ["t.json"])
        self.assertEqual((self.folder / "t.json").read_text(), "before")

    def test_a_conversion_leaves_nothing(self):
        self.fifo("input.jsonl")
        for out in ("o.et", "o.dot", "o.jsonl.gz"):
            with self.subTest(out=out):
                self.interrupted(["trace", "convert", "input.jsonl", "--out", out], signal.SIGINT)
                self.assertEqual(self.files(), [])

    def test_of_a_text_workload_whole_files_stay_and_no_partial_one(self):
        self.write("w.txt", "DATA\n1\nlayer -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 1024 1\n")
        process = self.start("trace", "convert", "w.txt", "--dimensions", "100000", "--out", "w", stderr=subprocess.DEVNULL)
        self.wait_for(process, lambda: (self.folder / "w.2.et").exists())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), -signal.SIGINT)
        names = [name for name in self.files() if name != "w.txt"]
        self.assertEqual([name for name in names if not name.endswith(".et")], [])
        sizes = {(self.folder / name).stat().st_size for name in names}
        self.assertEqual(len(sizes), 1, "ranks of this workload are the same: every file is whole")

    def test_a_simulation_leaves_nothing(self):
        pipe = self.fifo("memory.json")
        process = self.start(*astra_sim(pipe), "--timeline", "t.json", "--tables", "tables", stdout=subprocess.PIPE)
        with open(self.folder / pipe, "w"):
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(), -signal.SIGINT)
        self.assertEqual(process.stdout.read(), b"")
        self.assertEqual(self.files(), [])

    def test_a_long_search_is_stopped_with_130_and_prints_no_part_of_an_answer(self):
        terminal = Terminal(self)
        # The search runs for minutes; the line of its progress says that it is in the middle.
        process = self.start(
            "plan", "--space", str(ROOT / "examples/spaces/p-b.yaml"), "--exhaustive", "--threads", "1", "--json",
            stdout=subprocess.PIPE, stderr=terminal.far)
        terminal.program_has_it()
        self.assertTrue(terminal.read_until(lambda text: "%" in text), terminal.text)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), -signal.SIGINT)
        self.assertEqual(process.stdout.read(), b"")

    def test_a_shell_sees_130(self):
        self.fifo("input.jsonl")
        script = f'"{PROGRAM}" trace info input.jsonl; echo "exit $?"'
        # The shell is not interactive: the signal goes to the program only.
        shell = subprocess.Popen(["bash", "-c", script], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop, shell)
        with open(self.folder / "input.jsonl", "w"):
            children = open(f"/proc/{shell.pid}/task/{shell.pid}/children").read().split()
            self.assertEqual(len(children), 1)
            os.kill(int(children[0]), signal.SIGINT)
            out, _ = shell.communicate()
        self.assertEqual(out, b"exit 130\n")


if __name__ == "__main__":
    unittest.main()
