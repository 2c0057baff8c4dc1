"""What is left when the program is interrupted: no file that looks whole and is not, and the exit code of the signal (130
for Ctrl-C, as shells count)."""
import os
import shutil
import signal
import subprocess
import unittest

from program import INTERRUPTING, PROGRAM, ROOT, ProgramTest, Terminal, astra_sim, json_lines

TIMELINE = ["trace", "timeline", "input.jsonl", "--out", "t.json"]


class Signals(ProgramTest):
    def interrupted(self, arguments, number, begun=()):
        """Starts the program with `input.jsonl`, a named pipe, and interrupts it in the middle of reading it, when the
        files `begun` exist."""
        process = self.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with self.feed(process, "input.jsonl", json_lines(1000)):
            self.wait_for(process, lambda: set(begun) <= set(self.files()))
            process.send_signal(number)
            self.assertEqual(process.wait(), -number)
        self.assertEqual(process.stdout.read(), b"")

    def test_a_timeline_that_is_begun_is_removed(self):
        self.fifo("input.jsonl")
        for number in INTERRUPTING:
            with self.subTest(signal=number.name):
                self.interrupted(TIMELINE, number, begun=["t.json.partial"])
                self.assertEqual(self.files(), [])

    def test_a_file_that_was_there_stays_as_it_was(self):
        self.fifo("input.jsonl")
        self.write("t.json", "before")
        self.interrupted(TIMELINE, signal.SIGINT, begun=["t.json.partial"])
        self.assertEqual(self.files(), ["t.json"])
        self.assertEqual((self.folder / "t.json").read_text(), "before")

    # As under nohup: the command finishes after the terminal is gone.
    def test_a_signal_that_is_ignored_stays_ignored(self):
        self.fifo("input.jsonl")
        process = self.start(*TIMELINE, ignored=[signal.SIGHUP], stderr=subprocess.DEVNULL)
        pipe = self.feed(process, "input.jsonl", json_lines(1000))
        self.wait_for(process, lambda: "t.json.partial" in self.files())
        process.send_signal(signal.SIGHUP)
        pipe.close()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(self.files(), ["t.json"])

    def test_a_conversion_leaves_nothing(self):
        self.fifo("input.jsonl")
        for out in ("o.et", "o.dot", "o.jsonl.gz"):
            with self.subTest(out=out):
                self.interrupted(["trace", "convert", "input.jsonl", "--out", out], signal.SIGINT)
                self.assertEqual(self.files(), [])

    def test_of_a_text_workload_whole_files_stay_and_no_partial_one(self):
        self.write("w.txt", "DATA\n1\nlayer -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 1024 1\n")
        process = self.start("trace", "convert", "w.txt", "--dimensions", "50000", "--out", "w", stderr=subprocess.DEVNULL)
        self.wait_for(process, (self.folder / "w.2.et").exists)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), -signal.SIGINT)
        names = [name for name in self.files() if name != "w.txt"]
        self.assertEqual([name for name in names if not name.endswith(".et")], [])
        sizes = {(self.folder / name).stat().st_size for name in names}
        self.assertEqual(len(sizes), 1, "the ranks of this workload are identical, so whole files have one size")

    def test_a_simulation_leaves_nothing(self):
        for rank in range(3):
            shutil.copy(ROOT / f"examples/astra-sim/pipeline.{rank}.et", self.folder / f"w.{rank}.et")
        before = self.files()
        self.fifo("w.3.et")
        process = self.start(*astra_sim(workload="w"), "--timeline", "t.json", "--tables", "tables", stdout=subprocess.PIPE)
        with self.feed(process, "w.3.et"):
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(), -signal.SIGINT)
        self.assertEqual(process.stdout.read(), b"")
        self.assertEqual(self.files(), before)

    def test_a_generated_job_leaves_nothing(self):
        for number in INTERRUPTING:
            with self.subTest(signal=number.name):
                process = self.start("generate", "--model", "llama-3.1-405b", "--cluster", "dgx-h100", "--devices", "16384",
                                     "--global-batch", "16384", "--seq", "8192", "--tp", "8", "--pp", "16", "--out", "run",
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                self.wait_for(process, (self.folder / "run.partial" / "run.2.et").exists)
                process.send_signal(number)
                self.assertEqual(process.wait(), -number)
                self.assertEqual(process.stdout.read(), b"")
                self.assertEqual(self.files(), [])

    # The line of its progress says that a search, which would take minutes, is in the middle.
    def test_a_long_search_prints_no_part_of_an_answer(self):
        terminal = Terminal(self)
        process = self.start(*self.long_search(), "--json", stdout=subprocess.PIPE, stderr=terminal.far)
        terminal.program_has_it()
        self.assertTrue(terminal.read_until(lambda text: "%" in text), terminal.text)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), -signal.SIGINT)
        self.assertEqual(process.stdout.read(), b"")

    def test_a_shell_sees_130(self):
        self.fifo("input.jsonl")
        shell = self.start_command(["bash", "-c", f'"{PROGRAM}" trace info input.jsonl; echo "exit $?"'],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.feed(shell, "input.jsonl")
        with open(f"/proc/{shell.pid}/task/{shell.pid}/children") as file:
            children = file.read().split()
        self.assertEqual(len(children), 1)
        os.kill(int(children[0]), signal.SIGINT)  # the shell is not interactive and goes on
        self.assertEqual(shell.communicate()[0], b"exit 130\n")


if __name__ == "__main__":
    unittest.main()
