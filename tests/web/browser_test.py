"""The page in a browser, as a person uses it: with the mouse, with the keyboard alone, on a narrow screen."""
import json
import pathlib
import subprocess
import time
import unittest

from server import HANGS_AFTER_S, PROGRAM, StudyTest, WebTest

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

    def test_plans_side_by_side(self):
        self.open("view=estimate&model=llama-3.1-8b&cluster=dgx-h100&devices=64&global-batch=64&seq=8192&tp=1&task=pretrain")
        self.change(lambda: self.by_id("keep").click())
        self.fill("tp", "8")
        self.change(lambda: self.by_id("keep").click())
        self.assertIn("against plan 1", self.view())
        self.assertEqual(len(self.page.find_elements(By.XPATH, "//button[starts-with(text(), 'Use plan')]")), 2)

    def test_the_timeline_is_drawn(self):
        self.open("view=pipeline&model=llama-3.1-8b&cluster=dgx-h100&devices=64&global-batch=64&seq=8192&pp=4&task=pretrain")
        canvas = self.wait_for(lambda: self.page.find_elements(By.CSS_SELECTOR, "canvas.gantt"))[0]
        colours = lambda: self.page.execute_script("""
            const c = arguments[0], d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, found = new Set();
            for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) found.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
            return [...found];""", canvas)
        self.wait_for(lambda: {0x0072b2, 0xe69f00, 0xd55e00} <= set(colours()))

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
        for _ in range(5):
            if focused().get_attribute("id") == "search":
                break
            focused().send_keys(Keys.TAB)
        focused().send_keys(Keys.ENTER)
        self.wait_for(lambda: self.page.find_elements(By.CSS_SELECTOR, "#view tbody tr"))

    def test_every_field_has_a_label_and_every_chart_a_text(self):
        self.open()
        without = self.page.execute_script("""
            return [...document.querySelectorAll("input:not([type=file]), select, textarea")].filter((f) => !f.labels.length).map((f) => f.id);""")
        self.assertEqual(without, [])
        charts = self.page.find_elements(By.TAG_NAME, "canvas")
        self.assertGreater(len(charts), 1)
        for chart in charts:
            self.assertTrue(chart.get_attribute("aria-label"))

    def test_a_narrow_screen_needs_no_sideways_scrolling(self):
        self.page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False})
        for view in ("estimate", "plan", "compare", "whatif"):
            self.open(f"view={view}&model=llama-3.1-8b&cluster=dgx-h100&devices=64&global-batch=64&seq=8192&task=pretrain")
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
        self.page.switch_to.default_content()
        frame = self.page.find_element(By.CSS_SELECTOR, "iframe.study")
        self.wait_for(lambda: frame.size["height"] > 1500)
        self.by_id("study-again").click()
        self.assertTrue(self.by_id("tab-study").is_displayed())


if __name__ == "__main__":
    unittest.main()
