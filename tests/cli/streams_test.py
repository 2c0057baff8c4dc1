"""Standard output and standard error that are pipes, terminals, full or closed."""
import os
import resource
import subprocess
import unittest

from program import PROGRAM, ROOT, ProgramTest, Terminal, astra_sim, json_lines

JOB = ["--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "8", "--global-batch", "8", "--seq", "2048"]
# A command of each kind, with its own way to an answer.
COMMANDS = {
    "overview": [],
    "help": ["plan", "--help"],
    "list": ["list", "models"],
    "describe": ["describe", "h100-sxm"],
    "completion": ["completion", "bash"],
    "estimate": ["estimate", *JOB],
    "estimate --json": ["estimate", *JOB, "--json"],
    "plan": ["plan", *JOB, "--threads", "1"],
    "simulate": astra_sim(),
    "collective": ["collective", "--op", "all_reduce", "--size", "1MiB", "--cluster", "dgx-h100"],
    "trace info": ["trace", "info", str(ROOT / "examples/traces/step.0.et")],
    "trace print": ["trace", "print", str(ROOT / "examples/traces/step.0.et")],
    "trace stats": ["trace", "stats", "--json", str(ROOT / "examples/traces/step.0.et")],
}


class ClosedPipes(ProgramTest):
    def test_a_reader_that_has_left_ends_every_command_silently(self):
        for name, command in COMMANDS.items():
            with self.subTest(name):
                read_end, write_end = os.pipe()
                os.close(read_end)
                code, _, err = self.run_program(*command, stdout=write_end)
                os.close(write_end)
                self.assertEqual((code, err), (0, ""))

    # More than a pipe holds, so that the program is still writing when the reader leaves.
    def test_a_reader_of_the_first_line_ends_a_long_output_silently(self):
        self.write("long.jsonl", json_lines(50_000))
        process = self.start("trace", "print", "long.jsonl", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b'{"id":1,"name":"n1","type":"COMP_NODE","duration_micros":5}\n')
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(process.wait(), 0)

    # The same in a shell whose pipelines fail when a part of them does.
    def test_head_in_a_shell_with_pipefail(self):
        self.write("long.jsonl", json_lines(50_000))
        script = f'set -o pipefail; "{PROGRAM}" trace print long.jsonl | head -1'
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr, done.stdout.count("\n")), (0, "", 1))


class ClosedDescriptors(ProgramTest):
    # Without care, the first file that the program opens becomes its standard output or error, and text goes into it.
    def test_a_file_that_is_written_is_not_taken_for_a_closed_stream(self):
        self.write("in.jsonl", '{"id":1,"name":"a","type":"COMP_NODE"}\n')
        for closed in ("1>&-", "2>&-", "0<&- 1>&- 2>&-"):
            with self.subTest(closed):
                script = f'"{PROGRAM}" trace timeline in.jsonl --out t.json {closed}'
                self.assertEqual(subprocess.run(["bash", "-c", script], cwd=self.folder).returncode, 0)
                written = (self.folder / "t.json").read_text()
                self.assertTrue(written.startswith('{"displayTimeUnit"') and written.endswith("}}\n"), written)

    def test_an_answer_that_cannot_be_printed_is_an_error(self):
        done = subprocess.run(["bash", "-c", f'"{PROGRAM}" list models >&-'], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (3, "error: standard output: Bad file descriptor\n"))


class Terminals(ProgramTest):
    def on_terminal(self, *arguments, env):
        terminal = Terminal(self)
        process = self.start(*arguments, stdout=terminal.far, stderr=subprocess.PIPE, env=env)
        terminal.program_has_it()
        text = terminal.read_all()
        self.assertEqual((process.wait(), process.stderr.read()), (0, b""))
        return text

    def test_colours_are_for_terminals_that_show_them(self):
        broken = [str(ROOT / f"examples/traces/step.{rank}.et") for rank in (0, 1)]
        info = ["trace", "info", *broken]
        self.assertIn("\x1b[1m", self.on_terminal(*info, env={"TERM": "xterm", "NO_COLOR": ""}))
        plain = self.run_program(*info, env={"TERM": "xterm", "NO_COLOR": ""})[1]
        self.assertNotIn("\x1b", plain)
        for env in ({"TERM": "dumb", "NO_COLOR": ""}, {"TERM": "", "NO_COLOR": ""}, {"TERM": "xterm", "NO_COLOR": "1"}):
            self.assertEqual(self.on_terminal(*info, env=env).replace("\r\n", "\n"), plain, env)

    def test_progress_is_shown_on_a_terminal(self):
        terminal = Terminal(self)
        process = self.start(*self.long_search(), stdout=subprocess.DEVNULL, stderr=terminal.far)
        terminal.program_has_it()
        self.assertTrue(terminal.read_until(lambda text: "points, " in text))
        self.assertRegex(terminal.text, r"^\r[\d,]+ of [\d,]+ points, \d+ %\x1b\[K")
        process.kill()

    # A search that started earlier and writes errors to a file has had its two seconds when the other shows progress.
    # In a log there are whole lines, every ten seconds, and no control characters.
    def test_progress_in_a_file_is_lines(self):
        errors = self.folder / "errors"
        with open(errors, "w") as file:
            quiet = self.start(*self.long_search(), stdout=subprocess.DEVNULL, stderr=file)
        terminal = Terminal(self)
        shown = self.start(*self.long_search(), stdout=subprocess.DEVNULL, stderr=terminal.far)
        terminal.program_has_it()
        self.assertTrue(terminal.read_until(lambda text: text.count("%") > 3))
        self.assertIsNone(quiet.poll())
        self.assertRegex(errors.read_text(), r"^([\d,]+ of [\d,]+ points, \d+ %\n)*$")
        for process in (quiet, shown):
            process.kill()


class FullDisks(ProgramTest):
    def test_every_command_says_that_its_answer_could_not_be_printed(self):
        for name, command in COMMANDS.items():
            with self.subTest(name), open("/dev/full", "w") as full:
                code, _, err = self.run_program(*command, stdout=full)
                self.assertEqual((code, err), (3, "error: standard output: No space left on device\n"))

    def test_a_file_that_cannot_be_written_is_named(self):
        self.write("in.jsonl", json_lines(3))
        for name in ("t.json", "o.et", "o.jsonl.gz", "o.dot"):
            (self.folder / name).symlink_to("/dev/full")
        for command, name in ((["trace", "timeline", "in.jsonl"], "t.json"), (["trace", "convert", "in.jsonl"], "o.et"),
                              (["trace", "convert", "in.jsonl"], "o.jsonl.gz"), (["trace", "convert", "in.jsonl"], "o.dot"),
                              (["trace", "anonymize", "in.jsonl"], "o.et")):
            with self.subTest(command=command, out=name):
                code, out, err = self.run_program(*command, "--out", name)
                self.assertEqual((code, out, err), (2, "", f"error: {name}: cannot be written: No space left on device\n"))
        simulate = astra_sim()
        code, _, err = self.run_program(*simulate, "--timeline", "/dev/full")
        self.assertEqual((code, err), (2, "error: --timeline: /dev/full cannot be written: No space left on device\n"))

    # A disk that fills up in the middle of a file, as a limit on the size of files.
    def test_nothing_is_left_of_a_file_that_did_not_fit(self):
        self.write("in.jsonl", json_lines(20_000))

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

        for out in ("o.et", "o.jsonl", "o.dot"):
            with self.subTest(out):
                code, _, err = self.run_program("trace", "convert", "in.jsonl", "--out", out, preexec_fn=limited)
                self.assertEqual((code, err), (2, f"error: {out}: cannot be written: File too large\n"))
                self.assertEqual(self.files(), ["in.jsonl"])

    def test_nothing_is_left_of_a_generated_job_that_did_not_fit(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

        code, _, err = self.run_program("generate", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "8",
                                        "--global-batch", "64", "--seq", "4096", "--out", "run", preexec_fn=limited)
        self.assertEqual((code, err), (2, "error: run.0.et: cannot be written: File too large\n"))
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    unittest.main()
