"""Runs `orrery web` for the tests of this folder. ORRERY_PROGRAM names the program."""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("ORRERY_PROGRAM", str(ROOT / "build/release/orrery"))
HANGS_AFTER_S = 240
JOB = {"model": "llama-3.1-8b", "cluster": "dgx-h100", "devices": 64, "global-batch": 64, "seq": 8192}
LONG_JOB = {"model": "deepseek-v3", "cluster": "dgx-h100", "devices": 2048, "global-batch": 15360, "seq": 4096,
            "precision": "fp8", "exhaustive": True, "space": "wide"}


def flags(job):
    """The job as arguments of the command line."""
    return [f"--{name}={value}" for name, value in job.items()]


def children_of(process):
    """The number of commands that a server is running."""
    path = f"/proc/{process.pid}/task"
    return sum(len(pathlib.Path(path, task, "children").read_text().split()) for task in os.listdir(path))


class WebTest(unittest.TestCase):
    """One server for the tests of a class, on a port of its own."""

    arguments = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        environment = {**os.environ, "TMPDIR": cls.folder.name}
        cls.process = subprocess.Popen([PROGRAM, "web", "--port", "0", *cls.arguments], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True, env=environment)
        cls.url = cls.process.stdout.readline().strip()
        cls.port = int(cls.url.split(":")[2].split("/")[0])

    @classmethod
    def tearDownClass(cls):
        cls.process.send_signal(signal.SIGTERM)
        cls.process.wait(HANGS_AFTER_S)
        cls.process.stdout.close()
        cls.folder.cleanup()

    def request(self, method, path, body=None, headers=None):
        """Status, headers and text of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGS_AFTER_S)
        self.addCleanup(connection.close)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()

    def post(self, command, job, headers=None):
        """Status and document of the answer."""
        status, _, text = self.request("POST", f"/api/{command}", json.dumps(job), headers)
        return status, json.loads(text)


class StudyTest(WebTest):
    """A server that shows the results of a small study."""

    @classmethod
    def setUpClass(cls):
        cls.results = tempfile.TemporaryDirectory()
        cls.database = pathlib.Path(cls.results.name, "results.db")
        subprocess.run([PROGRAM, "explore", ROOT / "examples/studies/first.yaml", "--db", cls.database], check=True,
                       capture_output=True)
        cls.arguments = ("--study", cls.database)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.results.cleanup()
