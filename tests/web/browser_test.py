"""The page in a browser, as a person uses it: with the mouse, with the keyboard alone, on a narrow screen."""
import json
import pathlib
import shlex
import subprocess
import time
import unittest

from server import HANGS_AFTER_S, LONG_JOB, PROGRAM, ROOT, StudyTest, WebTest, children_of

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import Select
except ImportError:
    webdriver = None

CHROMIUM = pathlib.Path("/usr/bin/chromium")
JOB = "model=llama-3.1-8b&cluster=dgx-h100&devices=64&global-batch=64&seq=8192&task=pretrain"
VIEWS = ("estimate", "plan", "serve", "compare", "pipeline", "whatif")


needs_browser = unittest.skipIf(webdriver is None or not CHROMIUM.exists(),
                                "needs the packages chromium-driver and python3-selenium")


class InBrowser:
    """What the tests of a page share."""

    def setUp(self):
        options = Options()
        options.binary_location = str(CHROMIUM)
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.page = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.addCleanup(self.page.quit)

    def tearDown(self):
        self.assertEqual([line for line in self.page.get_log("browser") if line["level"] in ("SEVERE", "WARNING")], [])

    def open(self, state=""):
        self.page.get("about:blank")  # else the page that is there would be ready already
        self.page.get(self.url + (f"#{state}" if state else ""))
        self.wait_for(lambda: self.page.execute_script("return document.body.dataset.ready"))

    def wait_for(self, condition):
        end = time.monotonic() + HANGS_AFTER_S
        while True:
            found = condition()
            if found:
                return found
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def change(self, act):
        """Acts, and waits for the answer to it."""
        before = self.page.execute_script("return document.body.dataset.ready")
        act()
        self.wait_for(lambda: self.page.execute_script("return document.body.dataset.ready") != before)

    def by_id(self, name):
        return self.page.find_element(By.ID, name)

    def fill(self, name, text):
        def act():
            field = self.by_id(f"flag-{name}")
            field.clear()
            field.send_keys(text)
        self.change(act)

    def view(self):
        return self.by_id("view").text

    def command_line(self):
        return self.by_id("command-line").get_attribute("value")

    def file(self, name, text):
        path = pathlib.Path(self.folder.name, name)
        path.write_text(text)
        self.addCleanup(path.unlink)
        return path


@needs_browser
class Page(InBrowser, WebTest):
    def test_from_a_model_to_the_command(self):
        self.open()
        self.fill("model", "llama-2-13b")
        self.fill("global-batch", "64")
        self.fill("seq", "4096")
        self.assertIn("Step time", self.view())
        self.change(lambda: self.by_id("tab-plan").click())
        self.by_id("search").click()
        rows = self.wait_for(lambda: self.page.find_elements(By.CSS_SELECTOR, "#view tbody tr"))
        best = rows[0].find_elements(By.TAG_NAME, "td")[0].text
        self.change(lambda: rows[0].find_element(By.TAG_NAME, "button").click())
        self.assertIn(best, self.view())
        command = self.command_line()
        self.assertIn("--model llama-2-13b", command)
        self.assertIn("--tp ", command)
        # The command prints the number of the page.
        printed = subprocess.run([PROGRAM, *command.split()[1:], "--json"], capture_output=True, text=True, timeout=HANGS_AFTER_S)
        step = json.loads(printed.stdout)["step_time_s"]
        shown = self.page.find_element(By.CSS_SELECTOR, ".numbers dd").text.split()[0]
        self.assertAlmostEqual(float(shown), step if step >= 1 else step * 1e3, delta=0.006 * float(shown))
        scenario = self.file("job.yaml", self.by_id("scenario").get_attribute("value"))
        again = subprocess.run([PROGRAM, "estimate", "--scenario", scenario, "--json"], capture_output=True, text=True, timeout=HANGS_AFTER_S)
        self.assertEqual(again.stdout, printed.stdout)
        self.by_id("command-line").find_element(By.XPATH, "../button").click()
        self.wait_for(lambda: self.page.find_elements(By.XPATH, "//button[text()='Copied']"))

    def test_an_address_shows_the_same_page(self):
        self.open()
        self.fill("devices", "128")
        address, view, command = self.page.current_url, self.view(), self.command_line()
        self.page.get("about:blank")
        self.page.get(address)
        self.wait_for(lambda: self.page.execute_script("return document.body.dataset.ready"))
        self.assertEqual((self.view(), self.command_line()), (view, command))

    def test_a_slider_changes_the_bar(self):
        self.open("view=whatif&model=llama-3.1-8b&cluster=dgx-h100&devices=64&global-batch=64&seq=8192&tp=8&task=pretrain")
        slider = self.by_id("factor-dimensions.0.bandwidth")
        self.change(lambda: slider.send_keys(Keys.HOME))
        text = self.by_id("what-if-answer").text
        self.assertRegex(text, r"changed: \+[0-9.]+ %")
        self.assertIn("my-cluster.yaml", self.command_line())
        self.change(lambda: self.page.find_element(By.XPATH, "//button[text()='All as they are']").click())
        devices = self.by_id("factor-devices")
        self.change(lambda: devices.send_keys(Keys.ARROW_RIGHT))
        self.assertIn("--devices 128", self.command_line())
        self.assertRegex(self.by_id("what-if-answer").text, r"changed: -[0-9.]+ %")

    def test_figures_in_place_with_units(self):
        self.open()
        before = self.view()
        self.by_id("figures").find_element(By.TAG_NAME, "summary").click()
        field = self.by_id("figure-accelerator.memory")
        self.change(lambda: field.send_keys("40 GiB"))
        self.assertNotEqual(self.view(), before)
        self.change(lambda: field.send_keys(" per chip"))
        self.assertIn("memory", self.by_id("error").text)
        self.change(lambda: self.by_id("figures-reset").click())
        self.assertEqual(self.view(), before)
        # The browser notes the refused request itself.
        self.page.get_log("browser")

    def printed(self):
        """What the command line of the page prints with --json."""
        command = shlex.split(self.command_line())
        done = subprocess.run([PROGRAM, *command[1:], "--json"], capture_output=True, text=True, timeout=HANGS_AFTER_S)
        return json.loads(done.stdout)

    def test_plans_side_by_side_with_the_difference_of_the_command_line(self):
        self.open(f"view=estimate&{JOB}&tp=1")
        self.change(lambda: self.by_id("keep").click())
        self.change(lambda: self.by_id("tab-estimate").click())
        self.fill("tp", "8")
        self.change(lambda: self.by_id("keep").click())
        self.assertIn("against plan 1", self.view())
        self.assertEqual(len(self.page.find_elements(By.XPATH, "//button[starts-with(text(), 'Use plan')]")), 2)
        self.assertIn("--against tp=8", self.command_line())
        shown = [item.text for item in self.page.find_elements(By.CSS_SELECTOR, "#view ul.notes li")]
        self.assertEqual(shown, self.printed()["against"]["difference"])
        self.assertIn("tp 8 instead of 1", shown[0])
        # The other way round, from the address.
        self.change(lambda: self.page.find_element(By.XPATH, "//button[text()='Compare with plan 2']").click())
        self.open(self.page.current_url.split("#")[1])
        shown = [item.text for item in self.page.find_elements(By.CSS_SELECTOR, "#view ul.notes li")]
        self.assertEqual(shown, self.printed()["against"]["difference"])
        self.assertIn("tp 1 instead of 8", shown[0])

    def search_results(self):
        return self.wait_for(lambda: self.page.find_elements(By.CSS_SELECTOR, "#view tbody tr"))

    def front(self):
        return self.by_id("pareto-count").text

    def test_two_measures_of_the_plans_are_chosen(self):
        self.open(f"view=plan&{JOB}&device-counts=16,32,64&space=default&ui.plan.searched=1")
        self.search_results()  # the address of a search starts it
        self.assertIn("--device-counts 16,32,64", self.command_line())
        self.assertNotIn("--devices ", self.command_line())
        measures = [option.get_attribute("value") for option in Select(self.by_id("pareto-x")).options]
        self.assertEqual(measures, ["time", "memory", "devices", "cost", "energy"])
        before = self.front()
        Select(self.by_id("pareto-x")).select_by_value("cost")
        Select(self.by_id("pareto-y")).select_by_value("time")
        # More devices are faster and cost more: the best plan of each number of devices is on this front.
        count = int(self.front().split()[0])
        self.assertGreaterEqual(count, 2)
        self.assertIn("ui.plan.x=cost", self.page.current_url)
        after = self.front()
        self.page.find_element(By.XPATH, "//th/button[text()='memory']").click()
        self.by_id("plan-filter").send_keys("tp 1")
        shown = [row.text for row in self.search_results()]
        self.open(self.page.current_url.split("#")[1])
        self.assertEqual([row.text for row in self.search_results()], shown)
        self.assertEqual(self.front(), after)
        self.assertIsNotNone(before)

    def test_the_front_has_what_no_other_row_beats(self):
        self.open()
        counts = self.page.execute_async_script("""
            const done = arguments[0];
            import("./pareto.js").then(({front}) => {
              let seed = 7;
              const random = () => (seed = (seed * 16807) % 2147483647) % 12;
              const result = [];
              for (const more of [false, true]) for (let n = 1; n < 60; ++n) {
                const rows = Array.from({length: n}, () => ({a: random(), b: random()}));
                const sign = more ? -1 : 1;
                const beats = (p, q) => p.a <= q.a && sign * p.b <= sign * q.b && (p.a < q.a || sign * p.b < sign * q.b);
                const slow = rows.filter((q) => !rows.some((p) => beats(p, q)));
                const fast = front(rows, {value: (r) => r.a}, {value: (r) => r.b, more});
                result.push(slow.length === fast.length && slow.every((r) => fast.includes(r)));
              }
              done(result);
            });""")
        self.assertEqual(counts, [True] * 118)

    def test_a_fleet_that_serves(self):
        self.open("view=serve&model=llama-3.1-8b&cluster=dgx-h100&serve.devices=2&serve.isl=1024&serve.osl=128&serve.tp=1,2"
                  "&serve.pp=1&serve.max-batched-tokens=2048&serve.pools=aggregated&serve.slo=ttft_p99%3D2s+tpot_p99%3D50ms")
        self.assertIn("--task serve", self.command_line())
        self.assertIn("--slo 'ttft_p99=2s tpot_p99=50ms'", self.command_line())
        self.by_id("search").click()
        rows = self.search_results()
        printed = self.printed()
        self.assertEqual(len(rows), len(printed["best"]))
        scenario = self.file("serve.yaml", self.by_id("scenario").get_attribute("value"))
        again = subprocess.run([PROGRAM, "plan", "--task", "serve", scenario, "--tp=1,2", "--pp=1", "--max-batched-tokens=2048", "--pools=aggregated",
                                "--top=30", "--json"], capture_output=True, text=True, timeout=HANGS_AFTER_S)
        self.assertEqual(json.loads(again.stdout)["best"], printed["best"])
        self.assertIn(printed["best"][0]["deployment"], rows[0].text)
        for line in printed["explanation"]:
            self.assertIn(line, self.view())
        self.by_id("launcher").find_element(By.TAG_NAME, "summary").click()
        self.wait_for(lambda: "serve" in self.by_id("emit-text").get_attribute("value"))
        script = subprocess.run([PROGRAM, *shlex.split(self.command_line())[1:], "--emit", Select(self.by_id("emit-tool")).first_selected_option.text],
                                capture_output=True, text=True, timeout=HANGS_AFTER_S).stdout
        self.assertEqual(self.by_id("emit-text").get_attribute("value"), script)
        self.fill("slo", "ttft_p99=1ns")
        self.by_id("search").click()
        self.wait_for(lambda: self.page.find_elements(By.CSS_SELECTOR, "#view .worse"))

    def children(self):
        return children_of(self.process)

    def test_a_search_is_cancelled_and_ends_with_its_page(self):
        long = "view=plan&task=pretrain&space=wide&" + "&".join(f"{name}={value}" for name, value in LONG_JOB.items() if name not in ("exhaustive", "space"))
        self.open(long)
        self.by_id("search").click()
        self.wait_for(lambda: self.children() == 1)
        self.by_id("cancel").click()
        self.wait_for(lambda: self.children() == 0)
        self.assertIn("cancelled", self.view())
        self.by_id("search").click()
        self.wait_for(lambda: self.children() == 1)
        self.page.get("about:blank")
        self.wait_for(lambda: self.children() == 0)

    def test_a_config_json_is_dropped(self):
        self.open()
        config = (ROOT / "tests/fixtures/hf/llama-2-70b/config.json").read_text()
        drop = """
            const data = new DataTransfer();
            data.items.add(new File([arguments[0]], "config.json", {type: "application/json"}));
            document.getElementById("work").dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));"""
        self.change(lambda: self.page.execute_script(drop, config))
        self.assertIn("--model config.json", self.command_line())
        self.assertIn("model: config.json (llama)", self.by_id("work").text)
        self.assertIn("Step time", self.view())
        address, view = self.page.current_url, self.view()
        self.open(address.split("#")[1])
        self.assertEqual(self.view(), view)
        self.page.execute_script(drop, "[1]")
        self.wait_for(lambda: "config.json: it is no JSON object" in self.by_id("error").text)

    def test_the_timeline_is_drawn(self):
        self.open("view=pipeline&model=llama-3.1-8b&cluster=dgx-h100&devices=64&global-batch=64&seq=8192&pp=4&task=pretrain")
        canvas = self.wait_for(lambda: self.page.find_elements(By.CSS_SELECTOR, "canvas.gantt"))[0]
        colours = lambda: self.page.execute_script("""
            const c = arguments[0], d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, found = new Set();
            for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) found.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
            return [...found];""", canvas)
        self.wait_for(lambda: {0x0072b2, 0xe69f00, 0xd55e00} <= set(colours()))
        self.assertRegex(canvas.get_attribute("aria-label"), "micro-batches 1 to [0-9]")
        larger = JOB.replace("global-batch=64", "global-batch=256")
        for schedule, words in (("vpp=2&schedule=interleaved", "Lighter blocks are of later chunks"), ("schedule=dualpipe", "Lighter blocks are of later chunks")):
            self.open(f"view=pipeline&{larger}&pp=4&micro-batch=1&{schedule}")
            self.wait_for(lambda: self.page.find_elements(By.CSS_SELECTOR, "canvas.gantt[aria-label*='micro-batches 1 to']"))
            self.wait_for(lambda: words in self.view())
        self.open(f"view=pipeline&{JOB}&pp=4&vpp=1")
        self.wait_for(lambda: self.page.find_elements(By.CSS_SELECTOR, "canvas.gantt[aria-label*='micro-batches 1 to 4']"))

    def test_a_timeline_file_is_drawn(self):
        self.open("view=pipeline&model=llama-3.1-8b&cluster=dgx-h100&devices=8&global-batch=8&seq=2048&task=pretrain")
        timeline = {"traceEvents": [
            {"ph": "M", "name": "thread_name", "pid": 3, "tid": 7, "args": {"name": "stream 7"}},
            {"ph": "X", "name": "gemm", "pid": 3, "tid": 7, "ts": 1000, "dur": 200.25},
            {"ph": "X", "name": "ncclDevKernel_AllReduce", "pid": 3, "tid": 9, "ts": 1100, "dur": 400}]}
        good = self.file("job.json", json.dumps(timeline))
        self.by_id("timeline-file").send_keys(str(good))
        self.wait_for(lambda: "job.json" in self.view())
        canvas = self.page.find_element(By.CSS_SELECTOR, "canvas.gantt")
        self.assertIn("Timeline of 2 rows over 500 us", canvas.get_attribute("aria-label"))
        self.by_id("timeline-file").send_keys(str(self.file("bad.json", "{]")))
        self.wait_for(lambda: "bad.json: not a timeline" in self.view())
        self.by_id("timeline-file").send_keys(str(self.file("other.json", "{}")))
        self.wait_for(lambda: "has no events with a duration" in self.view())
        self.page.find_element(By.XPATH, "//button[text()='Back to the simulation']").click()
        self.wait_for(lambda: "one rank of each pipeline stage" in self.view())

    def test_with_the_keyboard_alone(self):
        self.open()
        body = self.page.find_element(By.TAG_NAME, "body")
        body.send_keys(Keys.TAB, Keys.TAB)
        focused = lambda: self.page.switch_to.active_element
        self.assertEqual(focused().get_attribute("id"), "flag-model")
        focused().send_keys(Keys.TAB, Keys.TAB, Keys.END)
        self.assertEqual(focused().get_attribute("id"), "flag-global-batch")
        self.change(lambda: focused().send_keys("0"))
        self.assertIn("--global-batch 5120", self.command_line())
        for _ in range(60):
            if focused().get_attribute("role") == "tab":
                break
            focused().send_keys(Keys.TAB)
        self.assertEqual(focused().get_attribute("id"), "tab-estimate")
        self.change(lambda: focused().send_keys(Keys.ARROW_RIGHT))
        self.assertEqual(focused().get_attribute("id"), "tab-plan")
        self.tab_to(lambda: focused().get_attribute("id") == "search")
        focused().send_keys(Keys.ENTER)
        self.wait_for(lambda: self.page.find_elements(By.CSS_SELECTOR, "#view tbody tr"))
        # From the results to Use, and from the estimate of that plan to the copy of its command.
        self.tab_to(lambda: focused().text == "Use")
        self.change(lambda: focused().send_keys(Keys.ENTER))
        self.assertIn("--tp ", self.command_line())
        self.tab_to(lambda: focused().get_attribute("data-copy") == "command-line")
        focused().send_keys(Keys.SPACE)
        self.wait_for(lambda: focused().text == "Copied")
        # A slider, by arrows.
        self.open(f"view=whatif&{JOB}&tp=8")
        self.tab_to(lambda: focused().get_attribute("id") == "factor-accelerator.memory_bandwidth")
        self.change(lambda: focused().send_keys(Keys.ARROW_RIGHT))
        self.assertIn("my-cluster.yaml", self.command_line())
        # The timeline, by + and arrows.
        self.open(f"view=pipeline&{JOB}&pp=4")
        self.wait_for(lambda: self.page.find_elements(By.CSS_SELECTOR, "canvas.gantt"))
        self.tab_to(lambda: focused().tag_name == "canvas")
        before = focused().screenshot_as_png
        focused().send_keys("+")
        self.wait_for(lambda: focused().screenshot_as_png != before)

    def tab_to(self, arrived):
        for _ in range(400):
            if arrived():
                return
            self.page.switch_to.active_element.send_keys(Keys.TAB)
        self.fail("no such element can be reached with Tab")

    def test_every_field_has_a_label_and_every_chart_a_text(self):
        for view in VIEWS:
            self.open(f"view={view}&{JOB}&ui.plan.searched=1&tp=1,2" if view == "plan" else f"view={view}&{JOB}")
            if view == "plan":
                self.search_results()
            without = self.page.execute_script("""
                return [...document.querySelectorAll("input:not([type=file]), select, textarea")].filter((f) => !f.labels.length).map((f) => f.id);""")
            self.assertEqual(without, [], view)
            nameless = self.page.execute_script("""
                return [...document.querySelectorAll("button, a, summary")].filter((b) => !b.textContent.trim()).map((b) => b.outerHTML);""")
            self.assertEqual(nameless, [], view)
            self.wait_for(lambda: len(self.names_of_charts()) >= {"estimate": 2, "plan": 1}.get(view, 0))
            self.assertNotIn("", self.names_of_charts())

    def names_of_charts(self):
        return self.page.execute_script("return [...document.querySelectorAll('canvas')].map((c) => c.getAttribute('aria-label') ?? '');")

    def test_text_has_contrast_in_the_light_and_in_the_dark(self):
        # WCAG 2.1, 1.4.3: 4.5 to 1.
        contrasts = """
            const style = getComputedStyle(document.documentElement);
            const light = (name) => {
              const hex = style.getPropertyValue(name).trim().slice(1);
              const [r, g, b] = [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
              return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
            return ["--text", "--dim", "--accent", "--good", "--bad"].flatMap((t) => ["--ground", "--panel"].map((g) => [t, g, ratio(t, g)]));"""
        grounds = []
        for scheme in ("light", "dark"):
            self.page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            self.open(f"view=estimate&{JOB}")
            grounds.append(self.page.execute_script("return getComputedStyle(document.body).backgroundColor"))
            for text, ground, ratio in self.page.execute_script(contrasts):
                self.assertGreaterEqual(ratio, 4.5, (scheme, text, ground))
        self.assertNotEqual(*grounds)

    def test_a_narrow_screen_needs_no_sideways_scrolling(self):
        self.page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False})
        for view in VIEWS:
            self.open(f"view={view}&{JOB}&ui.plan.searched=1&tp=1,2" if view == "plan" else f"view={view}&{JOB}")
            if view == "plan":
                self.search_results()
            self.assertLessEqual(self.page.execute_script("return document.documentElement.scrollWidth"), 400, view)

    def test_inference_has_its_own_fields(self):
        self.open()
        self.change(lambda: Select(self.by_id("flag-task")).select_by_value("inference"))
        self.assertFalse(self.by_id("flag-seq").is_displayed())
        for name, text in (("prompt", "2048"), ("generate", "256"), ("batch", "64")):
            self.fill(name, text)
        self.assertIn("Batch of requests", self.view())
        self.page.get_log("browser")  # requests without prompt and batch were refused


@needs_browser
class StudyPage(InBrowser, StudyTest):
    def test_the_charts_of_the_study(self):
        self.open("view=study")
        self.page.switch_to.frame(self.wait_for(lambda: self.page.find_elements(By.CSS_SELECTOR, "iframe.study"))[0])
        charts = self.wait_for(lambda: self.page.find_elements(By.TAG_NAME, "canvas"))
        self.assertGreater(len(charts), 1)
        self.assertIn("first", self.page.find_element(By.TAG_NAME, "h1").text)
        lists = self.page.execute_script("return [...document.querySelectorAll('select')].map(s => [...s.options].map(o => o.text))")
        self.assertTrue(any("devices" in texts for texts in lists))
        for texts in lists:  # devices are an axis and a result
            self.assertEqual(len(texts), len(set(texts)), texts)
        self.page.switch_to.default_content()
        frame = self.page.find_element(By.CSS_SELECTOR, "iframe.study")
        self.wait_for(lambda: frame.size["height"] > 1500)
        self.by_id("study-again").click()
        self.assertTrue(self.by_id("tab-study").is_displayed())


if __name__ == "__main__":
    unittest.main()
