"""The interface answers what the command line prints, and refuses what it must not do."""
import concurrent.futures
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from server import HANGS_AFTER_S, JOB, LONG_JOB, PROGRAM, ROOT, StudyTest, WebTest, children_of, flags


def printed(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=HANGS_AFTER_S)


class Answers(WebTest):
    def test_an_estimate_is_that_of_the_command_line_byte_for_byte(self):
        _, _, text = self.request("POST", "/api/estimate", json.dumps(JOB))
        self.assertEqual(text, printed("estimate", *flags(JOB), "--json").stdout)

    def test_a_search_finds_the_plans_of_the_command_line(self):
        status, answer = self.post("plan", {**JOB, "tp": [1, 2], "top": 3})
        expected = json.loads(printed("plan", *flags(JOB), "--tp=1,2", "--top=3", "--json").stdout)
        self.assertEqual(status, 200)
        self.assertEqual(answer["best"], expected["best"])
        self.assertEqual(len(answer["best"]), 3)

    def test_a_deployment_is_that_of_the_command_line(self):
        job = {"task": "serve", "model": "llama-3.1-8b", "cluster": "dgx-h100", "devices": 2, "isl": 1024, "osl": 128, "tp": [1, 2],
               "pp": 1, "max-batched-tokens": 2048, "pools": "aggregated", "slo": "ttft_p99=2s tpot_p99=50ms"}
        command = flags({**job, "tp": "1,2"})
        status, answer = self.post("plan", job)
        expected = json.loads(printed("plan", *command, "--json").stdout)
        for document in (answer, expected):
            document.pop("wall_s")
        self.assertEqual((status, answer), (200, expected))
        status, answer = self.post("plan", {**job, "emit": "vllm"})
        self.assertEqual((status, answer["text"]), (200, printed("plan", *command, "--emit=vllm").stdout))
        # Each task has its own flags.
        self.assertIn("unknown flag", self.post("plan", {**job, "global-batch": 64})[1]["error"])
        self.assertIn("unknown flag", self.post("plan", {**JOB, "isl": 64})[1]["error"])
        for change in ({"trace": "/etc/passwd"}, {"engine": "/etc/passwd"}, {"SCENARIO": "/etc/passwd"}, {"emit": "/etc/passwd"}):
            status, answer = self.post("plan", {**job, **change})
            self.assertEqual(status, 400, change)
            self.assertNotIn("root:", answer["error"])

    def test_another_plan_and_how_it_differs(self):
        status, answer = self.post("estimate", {**JOB, "tp": 1, "against": "tp=8 micro-batch=auto"})
        expected = json.loads(printed("estimate", *flags(JOB), "--tp=1", "--against=tp=8 micro-batch=auto", "--json").stdout)
        self.assertEqual((status, answer), (200, expected))
        _, other = self.post("estimate", {**JOB, "tp": 8})
        self.assertEqual(answer["against"]["step_time_s"], other["step_time_s"])
        self.assertEqual(answer["step_time_s"], self.post("estimate", {**JOB, "tp": 1})[1]["step_time_s"])

    def test_serving_and_campaigns_are_those_of_the_command_line(self):
        engine = {"model": "llama-3.1-8b", "cluster": "dgx-h100", "tp": 1, "rate": 4, "requests": 200}
        campaign = {**JOB, "tokens": "1T"}
        for command, job in (("serve", engine), ("campaign", campaign)):
            with self.subTest(command):
                status, answer = self.post(command, job)
                expected = json.loads(printed(command, *flags(job), "--json").stdout)
                for document in (answer, expected):
                    document.pop("wall_s", None)
                self.assertEqual((status, answer), (200, expected))
                self.assertEqual(answer["schema"], f"orrery.{command}/1")

    def test_switches_are_true_or_false(self):
        on, off = (self.post("estimate", {**JOB, "tp": 8, "sequence-parallel": value})[1] for value in (True, False))
        self.assertTrue(on["plan"]["sequence_parallel"])
        self.assertFalse(off["plan"]["sequence_parallel"])
        status, answer = self.post("estimate", {**JOB, "sequence-parallel": 3})
        self.assertEqual((status, answer["error"]), (400, "--sequence-parallel: must be true or false"))

    def test_bad_input_is_refused_in_the_words_of_the_command_line(self):
        for change in ({"devices": 63}, {"model": "lama-3.1-8b"}, {"tp": 3}, {"seq": "many"}, {"global-batc": 64}):
            with self.subTest(change):
                job = {**JOB, **change}
                status, answer = self.post("estimate", job)
                self.assertEqual(status, 400)
                lines = printed("estimate", *flags(job)).stderr.splitlines()
                errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
                self.assertEqual(answer["error"].splitlines(), errors)

    def test_nothing_fits_is_an_answer(self):
        status, answer = self.post("plan", {**JOB, "model": "llama-3.1-405b", "devices": 8})
        self.assertEqual(status, 200)
        self.assertEqual(answer["best"], [])

    def test_a_changed_cluster_is_a_document(self):
        _, described = self.post("describe", {"name": "dgx-h100"})
        cluster = described["entry"]
        _, before = self.post("estimate", {**JOB, "tp": 8, "pp": 8, "cluster": cluster})
        cluster["dimensions"][1]["bandwidth"] = "40 Gb/s"
        _, after = self.post("estimate", {**JOB, "tp": 8, "pp": 8, "cluster": cluster})
        _, named = self.post("estimate", {**JOB, "tp": 8, "pp": 8})
        self.assertEqual(before["step_time_s"], named["step_time_s"])
        self.assertGreater(after["step_time_s"], before["step_time_s"])

    def test_a_config_json_is_a_document(self):
        fixture = ROOT / "tests/fixtures/hf/llama-2-70b/config.json"
        status, answer = self.post("estimate", {**JOB, "model": json.loads(fixture.read_text())})
        self.assertEqual(status, 200, answer)
        status, answer = self.post("estimate", {**JOB, "model": {"model_type": "llama", "hidden_size": "wide"}})
        self.assertEqual(status, 400)
        self.assertIn("model.json", answer["error"])

    def test_a_launch_configuration_is_text(self):
        status, answer = self.post("estimate", {**JOB, "emit": "megatron"})
        self.assertEqual((status, answer["text"]), (200, printed("estimate", *flags(JOB), "--emit=megatron").stdout))

    def test_a_simulation_has_its_timeline(self):
        status, answer = self.post("simulate", {**JOB, "pp": 8, "timeline": True})
        self.assertEqual(status, 200)
        events = answer["timeline"] if isinstance(answer["timeline"], list) else answer["timeline"]["traceEvents"]
        last = max(event["ts"] + event["dur"] for event in events if event["ph"] == "X")
        self.assertAlmostEqual(last * 1e3, answer["makespan_ns"], delta=1.0)

    def test_kernels_of_a_timeline_say_their_micro_batch(self):
        """Every chunk of a stage runs every micro-batch forward and backward, forward first, and after the chunk before it."""
        job = {**JOB, "devices": 8, "pp": 4, "tp": 1, "micro-batch": 1}
        for schedule, chunks, micro_batches in (("1f1b", 1, 32), ("interleaved", 2, 32), ("zero-bubble", 1, 32), ("gpipe", 1, 32), ("dualpipe", 2, 32)):
            more = {"vpp": 2} if schedule == "interleaved" else {}
            _, answer = self.post("simulate", {**job, "schedule": schedule, **more, "timeline": True})
            trace = answer["timeline"] if isinstance(answer["timeline"], list) else answer["timeline"]["traceEvents"]
            runs = {}  # (rank, pass, chunk, micro-batch): [start, end]
            for e in trace:
                if e["ph"] == "X" and "micro_batch" in e["args"] and e["name"].split(".")[0] in ("forward", "backward"):
                    key = (e["pid"], e["name"].split(".")[0], e["args"]["chunk"], e["args"]["micro_batch"])
                    start, end = runs.get(key, (e["ts"], 0.0))
                    runs[key] = (min(start, e["ts"]), max(end, e["ts"] + e["dur"]))
            ranks = sorted({rank for rank, *_ in runs})
            self.assertEqual(len(ranks), 4, schedule)
            per_chunk = micro_batches // 2 if schedule == "dualpipe" else micro_batches
            for rank in ranks:
                for chunk in range(chunks):
                    first = chunk * per_chunk if schedule == "dualpipe" else 0
                    found = {m for r, p, c, m in runs if (r, p, c) == (rank, "forward", chunk)}
                    self.assertEqual(found, set(range(first, first + per_chunk)), (schedule, rank, chunk))
                    for m in found:
                        self.assertLessEqual(runs[rank, "forward", chunk, m][1], runs[rank, "backward", chunk, m][0] + 1e-3)
            for a, b in zip(ranks, ranks[1:]):
                for m in range(per_chunk):
                    self.assertLessEqual(runs[a, "forward", 0, m][1], runs[b, "forward", 0, m][0] + 1e-3, (schedule, m))

    def test_progress_comes_line_by_line(self):
        headers = {"Accept": "application/x-ndjson"}
        _, _, text = self.request("POST", "/api/plan", json.dumps({**JOB, "top": 1}), headers)
        lines = [json.loads(line) for line in text.splitlines()]
        self.assertEqual(lines[-1]["status"], 200)
        self.assertEqual(len(lines[-1]["answer"]["best"]), 1)
        for line in lines[:-1]:
            self.assertLessEqual(line["progress"]["done"], line["progress"]["all"])

    def test_the_chart_library_is_served(self):
        status, headers, text = self.request("GET", "/chart.min.js")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/javascript"))
        self.assertIn("Chart", text)

    def test_the_commands_and_their_flags_are_listed(self):
        _, _, text = self.request("GET", "/api")
        listed = json.loads(text)["commands"]
        self.assertIn("slo", [flag["name"] for command in listed if command.get("task") == "serve" for flag in command["flags"]])
        commands = {command["name"]: command for command in listed if "task" not in command}
        self.assertTrue({"estimate", "plan", "simulate", "collective", "list", "describe"} <= set(commands))
        self.assertNotIn("generate", commands)
        self.assertIn("global-batch", [flag["name"] for flag in commands["estimate"]["flags"]])


class Safety(WebTest):
    def test_a_foreign_host_is_refused(self):
        for host in ("evil.example", f"evil.example:{self.port}", "127.0.0.1", f"localhost.evil.example:{self.port}", ""):
            with self.subTest(host):
                self.assertEqual(self.request("GET", "/", headers={"Host": host})[0], 403)
        for host in ("localhost", "127.0.0.1"):
            self.assertEqual(self.request("GET", "/", headers={"Host": f"{host}:{self.port}"})[0], 200)

    def test_a_foreign_origin_is_refused(self):
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                        {"Origin": f"http://localhost.evil.example:{self.port}"}):
            with self.subTest(headers):
                self.assertEqual(self.post("estimate", JOB, headers)[0], 403)
        own = {"Origin": f"http://127.0.0.1:{self.port}", "Sec-Fetch-Site": "same-origin"}
        self.assertEqual(self.post("estimate", JOB, own)[0], 200)

    def test_files_of_the_machine_are_not_read(self):
        model = str(ROOT / "examples")
        for change in ({"model": "/etc/passwd"}, {"cluster": "../dgx-h100.yaml"}, {"model": model}, {"model": "x.yaml"},
                       {"model": "madmax/../../../etc/passwd"}, {"scenario": "/etc/passwd"}, {"set": "model=/etc/passwd"},
                       {"cluster": {"name": "c", "accelerator": "/tmp/a.yaml"}}, {"stack": "./x.yaml"}):
            with self.subTest(change):
                status, answer = self.post("estimate", {**JOB, **change})
                self.assertEqual(status, 400, answer)
                self.assertNotIn("root:", answer["error"])
        engine = {"model": "llama-3.1-8b", "cluster": "dgx-h100", "rate": 4, "requests": 10}
        for change in ({"trace": "/etc/passwd"}, {"engine": "/etc/passwd"}, {"prefill-cluster": "./x.yaml"}, {"requests-out": "/tmp/x"}, {"requests": "x.csv"},
                       {"file": "/etc/passwd"}, {"scenario": "/etc/passwd"}):
            with self.subTest(change):
                status, answer = self.post("serve", {**engine, **change})
                self.assertEqual(status, 400, answer)
                self.assertNotIn("root:", answer["error"])
        self.assertEqual(self.post("campaign", {**JOB, "tokens": "1T", "log": "/etc/passwd"})[0], 400)
        self.assertEqual(self.post("plan", {**JOB, "space": "/etc/passwd"})[0], 400)
        self.assertEqual(self.post("describe", {"name": "/etc/passwd"})[0], 400)
        self.assertEqual(self.post("describe", {"name": "--help"})[0], 400)
        self.assertEqual(self.post("validate", {"data": ["/etc/passwd"]})[0], 400)
        self.assertEqual(self.post("validate", {"out": "/tmp/x.csv"})[0], 400)

    def test_only_the_files_of_the_page_are_served(self):
        for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/apps/web/app.js", "/.git/config", "//etc/passwd", "/app.js/../../x"):
            with self.subTest(path):
                self.assertIn(self.request("GET", path)[0], (400, 404))
        self.assertEqual(self.request("GET", "/app.js")[0], 200)

    def test_methods_and_paths_that_are_not_there(self):
        for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS"):
            status, headers, text = self.request(method, "/api/estimate", "{}" if method in ("PUT", "PATCH") else None)
            self.assertEqual((status, headers["Allow"]), (405, "POST"), method)
            self.assertEqual(json.loads(text)["error"], "/api/estimate takes POST with a JSON object of flags")
        self.assertEqual(self.request("POST", "/api/generate", "{}")[0], 404)
        self.assertEqual(self.request("PUT", "/api/nothing", "{}")[0], 404)
        self.assertEqual(self.request("POST", "/api/nothing", "{}")[0], 404)

    def test_a_key_given_twice_is_refused(self):
        body = json.dumps(JOB)
        for twice, key in ((body[:-1] + ', "devices": 128}', "devices"), (body[:-1] + ', "cluster": {"name": "a", "name": "b"}}', None),
                           ('{"model": {"name": "a", "layers": 2, "layers": 3}}', "layers")):
            status, _, text = self.request("POST", "/api/estimate", twice)
            self.assertEqual(status, 400)
            self.assertIn(f'the request has "{key}" twice in one object' if key else "twice in one object", json.loads(text)["error"])
        same_names = {**JOB, "cluster": {"use": "dgx-h100", "name": "a", "accelerator": {"name": "b"}}}
        self.assertNotIn("twice", self.post("estimate", same_names)[1].get("error", ""))

    def test_a_bad_launcher_is_one_line_without_prefix(self):
        status, answer = self.post("estimate", {**JOB, "emit": "megatrom"})
        lines = printed("estimate", *flags(JOB), "--emit=megatrom").stderr.splitlines()
        self.assertEqual(status, 400)
        self.assertEqual(["error: " + answer["error"]], [line for line in lines if line.startswith("error: ")])
        self.assertTrue(answer["error"].startswith("--emit: "), answer)

    def test_requests_that_are_no_flags(self):
        for body in ("", "[]", "3", "{", '{"model": ', "\xff", "[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000):
            with self.subTest(body[:20]):
                status, _, text = self.request("POST", "/api/estimate", body.encode("latin-1"))
                self.assertEqual(status, 400)
                self.assertIn("error", json.loads(text))

    def test_a_request_of_more_than_a_mebibyte_is_refused(self):
        self.assertEqual(self.request("POST", "/api/estimate", '{"model": "' + "x" * (1 << 20) + '"}')[0], 413)

    def test_a_body_means_the_same_whatever_type_it_claims(self):
        """curl -d says that JSON is a form, for which the library's own limit is 8 KiB."""
        body = json.dumps(JOB) + " " * 9000
        plain = self.request("POST", "/api/estimate", body, {"Content-Type": "application/json"})
        form = self.request("POST", "/api/estimate", body, {"Content-Type": "application/x-www-form-urlencoded"})
        self.assertEqual((plain[0], plain[2]), (200, form[2]))
        large = '{"model": "' + "x" * (1 << 20) + '"}'
        for kind in ("application/x-www-form-urlencoded", "application/json", "text/plain"):
            self.assertEqual(self.request("POST", "/api/estimate", large, {"Content-Type": kind})[0], 413)
        parts = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n"
        self.assertEqual(self.request("POST", "/api/estimate", parts, {"Content-Type": "multipart/form-data; boundary=x"})[0], 400)

    def test_a_value_with_dashes_stays_a_value(self):
        status, answer = self.post("estimate", {**JOB, "precision": "--help"})
        self.assertEqual(status, 400)
        self.assertIn("precision", answer["error"])

    def test_the_page_may_load_nothing_from_elsewhere(self):
        _, headers, text = self.request("GET", "/")
        self.assertIn("default-src 'self'", headers["Content-Security-Policy"])
        self.assertNotIn("http://", text)
        self.assertNotIn("https://", text)


class Endurance(WebTest):
    def test_a_thousand_requests_at_once(self):
        with concurrent.futures.ThreadPoolExecutor(200) as threads:
            statuses = list(threads.map(lambda _: self.post("estimate", {**JOB, "tp": 8, "pp": 1})[0], range(1000)))
        self.assertEqual(statuses, [200] * 1000)

    def test_slow_and_broken_clients_do_not_hold_up_others(self):
        clients = []
        for i in range(300):
            client = socket.create_connection(("127.0.0.1", self.port), timeout=HANGS_AFTER_S)
            client.sendall([b"POST /api/estimate HTTP/1.1\r\nContent-Le", b"", b"\x16\x03\x01\x00\xff", b"GET / HT"][i % 4])
            clients.append(client)
        self.assertEqual(self.post("estimate", JOB)[0], 200)
        for client in clients:
            client.close()
        self.assertEqual(self.post("estimate", JOB)[0], 200)

    def test_headers_without_end_are_cut_off(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=HANGS_AFTER_S) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            client.sendall(b"GET / HTTP/1.1\r\n")
            sent = 0
            with self.assertRaises(ConnectionError):
                while sent < 1 << 30:
                    sent += client.send(b"X-Filler: " + b"x" * 4000 + b"\r\n")
        held = int(pathlib.Path("/proc/sys/net/ipv4/tcp_rmem").read_text().split()[2])  # at most, by the server's socket
        self.assertLess(sent, (2 << 20) + held)
        self.assertEqual(self.post("estimate", JOB)[0], 200)

    def test_a_connection_serves_several_requests(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGS_AFTER_S)
        self.addCleanup(connection.close)
        first = None
        for _ in range(3):
            connection.request("POST", "/api/list", json.dumps({"kind": "models"}))
            self.assertIn("llama-3.1-8b", connection.getresponse().read().decode())
            first = first or connection.sock
            self.assertIs(connection.sock, first)

    def children(self):
        return children_of(self.process)

    def wait_for(self, condition):
        end = time.monotonic() + HANGS_AFTER_S
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_a_search_ends_when_its_client_leaves(self):
        body = json.dumps(LONG_JOB).encode()
        client = socket.create_connection(("127.0.0.1", self.port), timeout=HANGS_AFTER_S)
        client.sendall(f"POST /api/plan HTTP/1.1\r\nHost: localhost:{self.port}\r\nAccept: application/x-ndjson\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.wait_for(lambda: self.children() == 1)
        client.close()
        self.wait_for(lambda: self.children() == 0)

    def test_nothing_stays_in_the_temporary_folder(self):
        self.post("estimate", JOB)
        self.wait_for(lambda: not os.listdir(self.folder.name))


class Study(StudyTest):
    def test_the_page_is_that_of_report(self):
        page = pathlib.Path(self.results.name, "page.html")
        subprocess.run([PROGRAM, "report", self.database, "--out", page], check=True)
        status, headers, text = self.request("GET", "/study")
        self.assertEqual((status, text), (200, page.read_text()))
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertEqual(json.loads(self.request("GET", "/api")[2])["study"], "results.db")

    def test_a_database_that_is_gone_is_an_error(self):
        other = self.database.with_suffix(".gone")
        self.database.rename(other)
        try:
            status, _, text = self.request("GET", "/study")
        finally:
            other.rename(self.database)
        self.assertEqual(status, 500)
        self.assertIn("results.db", json.loads(text)["error"])


class Token(WebTest):
    arguments = ("--address", "0.0.0.0", "--token", "0123456789abcdef")

    def test_each_request_needs_the_token(self):
        self.assertEqual(self.request("GET", "/")[0], 403)
        self.assertEqual(self.post("estimate", JOB, {"Authorization": "Bearer 0123456789abcdeX"})[0], 403)
        self.assertEqual(self.post("estimate", JOB, {"Authorization": "Bearer 0123456789abcdef"})[0], 200)
        status, headers, _ = self.request("GET", "/?token=0123456789abcdef")
        self.assertEqual(status, 200)
        cookie = headers["Set-Cookie"].split(";")[0]
        self.assertEqual(self.post("estimate", JOB, {"Cookie": cookie})[0], 200)


class CommandLine(unittest.TestCase):
    def refused(self, *arguments):
        done = printed("web", *arguments)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        return done.stderr

    def test_wrong_flags(self):
        self.assertIn("--token with at least 16 characters is needed", self.refused("--address", "0.0.0.0"))
        self.assertIn("between 0 and 65535", self.refused("--port", "http"))
        self.assertIn("between 0 and 65535", self.refused("--port", "70000"))

    def test_a_study_that_is_none(self):
        self.assertIn("no-such.db", self.refused("--study", "no-such.db"))

    def started(self, *arguments, **environment):
        """A server and its address."""
        process = subprocess.Popen([PROGRAM, "web", "--port", "0", *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, env={**os.environ, **environment}, cwd=ROOT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, process.stdout.readline().strip()

    def test_a_build_without_the_server_names_the_command_that_builds_it(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(PROGRAM, folder)
            done = subprocess.run([alone, "web"], capture_output=True, text=True, timeout=HANGS_AFTER_S)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f'error: the server of this page, "{folder}/orrery-web", is missing; '
                         '"./dev build release orrery-web" builds it\n')

    def test_an_installed_program_finds_the_server_under_libexec(self):
        with tempfile.TemporaryDirectory() as folder:
            places = {"orrery": pathlib.Path(folder, "bin"), "orrery-web": pathlib.Path(folder, "libexec/orrery")}
            for name, place in places.items():
                place.mkdir(parents=True)
                shutil.copy(pathlib.Path(PROGRAM).with_name(name), place)
            process = subprocess.Popen([places["orrery"] / "orrery", "web", "--port", "0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
            try:
                self.assertTrue(process.stdout.readline().startswith("http://localhost:"))
            finally:
                process.kill()
                process.wait()
                process.stdout.close()

    def test_signals_end_the_server_as_they_end_other_commands(self):
        for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process, url = self.started()
            time.sleep(0.1)
            process.send_signal(ending)
            self.assertEqual(process.wait(HANGS_AFTER_S), -ending, url)

    def test_other_users_do_not_see_the_token_in_the_list_of_processes(self):
        process, url = self.started("--token", "0123456789abcdef")
        self.assertIn("0123456789abcdef", url)
        self.assertNotIn(b"0123456789abcdef", pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes())

    def test_a_catalogue_may_be_a_relative_path(self):
        _, url = self.started(ORRERY_DATA="data")
        port = int(url.split(":")[2].split("/")[0])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGS_AFTER_S)
        self.addCleanup(connection.close)
        connection.request("POST", "/api/list", json.dumps({"kind": "models"}))
        self.assertIn("llama-3.1-8b", connection.getresponse().read().decode())

    def test_a_closed_or_full_output_is_as_for_other_commands(self):
        done = subprocess.run(f"{PROGRAM} web --port 0 > /dev/full", shell=True, capture_output=True, text=True, timeout=HANGS_AFTER_S)
        self.assertEqual((done.returncode, done.stderr), (3, "error: standard output: No space left on device\n"))

    def test_the_server_is_started_by_the_command_only(self):
        server = pathlib.Path(PROGRAM).with_name("orrery-web")
        for arguments in ([], ["0"], ["99"], ["--help"]):
            done = subprocess.run([server, *arguments], capture_output=True, text=True, timeout=HANGS_AFTER_S, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)

    def test_a_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            self.assertIn("cannot be used", self.refused("--port", str(other.getsockname()[1])))


if __name__ == "__main__":
    unittest.main()
