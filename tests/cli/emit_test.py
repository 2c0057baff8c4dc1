"""Scripts of `plan --task serve --emit`, run by a shell with servers that only say how they were started."""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from program import PROGRAM  # noqa: E402

SLO = "ttft_p99=3s tpot_p99=60ms"
SERVER = '#!/bin/sh\necho "$(basename "$0")|${CUDA_VISIBLE_DEVICES}${HIP_VISIBLE_DEVICES}|$*" >>"$LOG"\n'
Started = collections.namedtuple("Started", "command devices arguments")


def emitted(server, *flags):
    flags = ["--isl", "1024", "--osl", "128", "--slo", SLO, "--emit", server, *flags]
    done = subprocess.run([PROGRAM, "plan", "--task", "serve", *flags], check=True, capture_output=True, text=True)
    return done.stdout


def started(script, node=0, hosts="a"):
    """What a script starts on a node."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        for name in ("python3", "vllm", "nginx"):
            (place / name).write_text(SERVER)
            (place / name).chmod(0o755)
        log = place / "log"
        log.touch()
        subprocess.run(["sh", "-c", script, "script", str(node)], check=True, cwd=folder,
                       env={"PATH": f"{folder}:/usr/bin:/bin", "LOG": str(log), "MODEL": "m", "HOSTS": hosts, "VLLM_SOURCE": "/v"})
        found = [Started(*line.split("|", 2)) for line in log.read_text().splitlines()]
        config = place / "nginx.conf"
        return found, config.read_text() if config.exists() else ""


def is_engine(one):
    return any(word in f"{one.command} {one.arguments}" for word in ("sglang.launch_server", "vllm serve", "dynamo.vllm"))


class Scripts(unittest.TestCase):
    def expect_every_accelerator_once(self, found, accelerators):
        engines = [one for one in found if is_engine(one)]
        devices = [number for one in engines for number in one.devices.split(",")]
        self.assertEqual(sorted(map(int, devices)), list(range(accelerators)))
        ports = [re.search(r"--port (\d+)", one.arguments).group(1) for one in engines if "--port" in one.arguments]
        self.assertEqual(len(ports), len(set(ports)))
        return engines, ports

    def test_pools_of_sglang_and_their_router(self):
        script = emitted("sglang", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "4", "--pools", "disaggregated")
        found, _ = started(script)
        engines, ports = self.expect_every_accelerator_once(found, 4)
        router, = [one.arguments for one in found if "launch_router" in one.arguments]
        self.assertEqual(sorted(re.findall(r"http://a:(\d+)", router)), sorted(ports))
        for one in engines:
            if "--disaggregation-mode prefill" in one.arguments:
                bootstrap = re.search(r"bootstrap-port (\d+)", one.arguments).group(1)
                port = re.search(r"--port (\d+)", one.arguments).group(1)
                self.assertIn(f"http://a:{port} {bootstrap}", router)

    def test_engines_of_vllm_on_two_nodes_behind_nginx(self):
        script = emitted("vllm", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "16", "--pools", "aggregated",
                         "--tp", "2", "--pp", "1")
        first, config = started(script, 0, "a b")
        second, none = started(script, 1, "a b")
        _, ports = self.expect_every_accelerator_once(first, 8)
        _, others = self.expect_every_accelerator_once(second, 8)
        self.assertEqual(sorted(re.findall(r"server a:(\d+);", config)), sorted(ports))
        self.assertEqual(sorted(re.findall(r"server b:(\d+);", config)), sorted(others))
        self.assertEqual(none, "")
        self.assertEqual([one.command for one in first if one.command == "nginx"], ["nginx"])

    def test_pools_of_vllm_and_their_proxy(self):
        script = emitted("vllm", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "4", "--pools", "disaggregated")
        found, _ = started(script)
        _, ports = self.expect_every_accelerator_once(found, 4)
        proxy, = [one.arguments for one in found if "toy_proxy_server" in one.arguments]
        named = re.findall(r"--(?:prefiller|decoder)-ports ([\d ]+)", proxy)
        self.assertEqual(sorted(" ".join(named).split()), sorted(ports))

    def test_an_engine_on_two_nodes(self):
        script = emitted("sglang", "--model", "deepseek-r1", "--precision", "fp8", "--cluster", "dgx-h100", "--devices", "16",
                         "--pools", "aggregated", "--tp", "16", "--pp", "1", "--attention-dp", "1", "--ep", "1")
        for node in (0, 1):
            found, _ = started(script, node, "a b")
            self.expect_every_accelerator_once(found, 8)
            self.assertEqual(len(found), 1)  # one engine: nothing to distribute
            self.assertIn(f"--nnodes 2 --node-rank {node} --dist-init-addr a:32000", found[0].arguments)

    def test_workers_of_dynamo(self):
        script = emitted("dynamo", "--model", "llama-3.1-8b", "--cluster", "mi300x-node", "--devices", "4", "--pools", "disaggregated")
        found, _ = started(script)
        engines, _ = self.expect_every_accelerator_once(found, 4)
        self.assertIn("HIP_VISIBLE_DEVICES", script)
        for role in ("prefill", "decode"):
            self.assertTrue(any(f"--disaggregation-mode {role}" in one.arguments for one in engines))
        self.assertTrue(any("dynamo.frontend" in one.arguments for one in found))


if __name__ == "__main__":
    unittest.main()
