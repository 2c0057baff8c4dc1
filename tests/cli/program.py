"""Runs the program for the tests of this folder. ORRERY_PROGRAM names it.

Nothing here depends on how fast the machine is: where a test must act while the program runs, the program waits for it
at a named pipe, or the test waits for what the program writes. The one limit, for a program that hangs, is generous.
"""
import errno
import os
import pathlib
import pty
import select
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("ORRERY_PROGRAM", str(ROOT / "build/release/orrery"))
HANGS_AFTER_S = 240
INTERRUPTING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def json_lines(nodes):
    """A trace: a chain of nodes."""
    lines = ['{"schema":"orrery.trace-nodes/1","version":"0.0.4"}', '{"id":1,"name":"n1","type":"COMP_NODE","duration_micros":5}']
    lines += [f'{{"id":{i},"name":"n{i}","type":"COMP_NODE","data_deps":[{i - 1}],"duration_micros":5}}' for i in range(2, nodes + 1)]
    return "".join(line + "\n" for line in lines)


def astra_sim(workload=ROOT / "examples/astra-sim/pipeline"):
    """A job of simulate on a machine of four ranks."""
    folder = ROOT / "examples/astra-sim"
    return ["simulate", f"--workload-configuration={workload}", f"--system-configuration={folder}/system.json",
            f"--network-configuration={folder}/network.yml", f"--remote-memory-configuration={folder}/memory.json"]


class ProgramTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def long_search(self):
        """Arguments of a search of minutes: a published problem with more axes. Its progress starts after two seconds."""
        space = (ROOT / "examples/spaces/p-b.yaml").read_text()
        published = "optimizer_sharding: [true, false]"
        self.assertIn(published, space)
        more = "zero: [0, 1, 2, 3]\n  schedule: [gpipe, 1f1b, interleaved, zero-bubble]\n  embedding_as_layer: [true, false]"
        self.write("long.yaml", space.replace(published, more))
        return ["plan", "--space", "long.yaml", "--exhaustive", "--threads", "1"]

    def fifo(self, name):
        os.mkfifo(self.folder / name)
        return name

    def files(self):
        return sorted(path.name for path in self.folder.iterdir() if not path.is_fifo())

    def start(self, *arguments, **more):
        return self.start_command([PROGRAM, *arguments], **more)

    def start_command(self, command, ignored=(), **more):
        """The signals that this folder sends have their default effect, even if the tests run in the background."""
        before = more.pop("preexec_fn", lambda: None)

        def prepare():
            for number in INTERRUPTING:
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
            before()

        environment = {**os.environ, **more.pop("env", {})}
        process = subprocess.Popen(command, cwd=self.folder, env=environment, preexec_fn=prepare, **more)
        self.addCleanup(self.stop, process)
        return process

    def wait_for(self, process, found):
        """Until found(), while the program runs; what it returned."""
        while not (result := found()):
            self.assertIsNone(process.poll(), "the program ended before the test could act")
            time.sleep(0.01)
        return result

    def feed(self, process, pipe, text=""):
        """The writing end of a named pipe that the program has opened and reads; `text` is written."""
        def opened():
            try:
                return os.open(self.folder / pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:  # no reader yet
                    raise
                return None

        end = self.wait_for(process, opened)
        os.set_blocking(end, True)
        stream = os.fdopen(end, "w")
        self.addCleanup(stream.close)
        stream.write(text)
        stream.flush()
        return stream

    def stop(self, process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def run_program(self, *arguments, **more):
        """Exit code, standard output, standard error."""
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **more}
        process = self.start(*arguments, **more)
        out, err = process.communicate(timeout=HANGS_AFTER_S)
        return process.returncode, (out or b"").decode(), (err or b"").decode()


class Terminal:
    """A pseudo-terminal; give `far` to the program, then close it."""

    def __init__(self, test):
        self.near, self.far = pty.openpty()
        self.open = {self.near, self.far}
        test.addCleanup(lambda: [os.close(end) for end in self.open])
        self.text = ""

    def program_has_it(self):
        os.close(self.far)
        self.open.discard(self.far)

    def read_until(self, found):
        """Reads until found(text), or until the program has closed its end; whether it was found."""
        while not found(self.text):
            ready, _, _ = select.select([self.near], [], [], HANGS_AFTER_S)
            try:
                read = os.read(self.near, 1 << 16) if ready else b""
            except OSError:  # what Linux says when the other end is closed
                read = b""
            if not read:
                return False
            self.text += read.decode(errors="replace")
        return True

    def read_all(self):
        self.read_until(lambda _: False)
        return self.text
