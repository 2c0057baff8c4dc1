#!/usr/bin/env python3
"""Pictures that commands make, on one page: docs/gallery.md and docs/gallery/.

  tools/gallery.py --program build/release/orrery              compares the drawings with what the commands draw now
  tools/gallery.py --program build/release/orrery --update     writes them, and screenshots of the two pages (needs
                                                               the packages chromium-driver and python3-selenium)
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/gallery"

# Name of the picture, what it shows, the command that draws it into FILE.
DRAWINGS = (
    ("fat-tree.svg", "A fat tree of two levels, half as many links upwards as downwards: every switch and cable",
     "orrery describe examples/networks/fat-tree.yaml --draw FILE"),
    ("campaign.svg", "Where the days of a training campaign go, and how the useful part falls with the size of the machine",
     "orrery campaign --scenario examples/campaigns/llama-3-405b.yaml --picture FILE"),
    ("jobs.svg", "Jobs that arrive at one cluster, on the servers that they get",
     "orrery jobs examples/jobs/plans.yaml --gantt FILE"),
    ("serving.svg", "TTFT, TPOT and goodput of a deployment against its load", "orrery serve examples/serving/chat.yaml --sweep --picture FILE"),
    ("serving-run.svg", "A deployment over time, whose engines follow the load",
     "orrery serve examples/serving/chat.yaml --replicas 4 --autoscale-min 1 --autoscale-target 8 --picture FILE"),
)
JOB = "model=llama-3.1-8b&cluster=dgx-h100&devices=64&global-batch=64&seq=8192&pp=4&task=pretrain"
# Name, what it shows, the command, and the part of the address.
SCREENSHOTS = (
    ("estimate.png", "The page of `orrery web`: a job, and where its time and its memory go", "orrery web --open",
     f"#view=estimate&{JOB}"),
    ("front.png", "A search on three numbers of devices: cost against step time, with the front", "orrery web --open",
     f"#view=plan&{JOB}&device-counts=16,32,64&ui.plan.x=cost&ui.plan.y=time&ui.plan.searched=1".replace("&pp=4", "")),
    ("serving.png", "Deployments of an inference engine within a service level", "orrery web --open",
     "#view=serve&model=llama-3.1-8b&cluster=dgx-h100&serve.devices=4&serve.isl=1024&serve.osl=128&serve.tp=1,2&serve.pp=1"
     "&serve.slo=ttft_p99%3D2s+tpot_p99%3D50ms&ui.serve.searched=1"),
    ("timeline.png", "The same job as it runs: pipeline stages, micro-batches, communication", "orrery web --open",
     f"#view=pipeline&{JOB}"),
    ("study.png", "A study of nine clusters: front, maps, sensitivities",
     "orrery explore examples/studies/first.yaml --db first.sqlite && orrery web --study first.sqlite --open",
     f"#view=study&{JOB}"),
)


def drawn(program, command, name):
    """What the command draws."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, name)
        words = [str(file) if word == "FILE" else word for word in command.split()]
        subprocess.run([program, *words[1:]], cwd=ROOT, check=True, capture_output=True)
        return file.read_text()


def screenshots(program):
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1100"):
        options.add_argument(flag)
    with tempfile.TemporaryDirectory() as folder:
        database = pathlib.Path(folder, "first.sqlite")
        subprocess.run([program, "explore", ROOT / "examples/studies/first.yaml", "--db", database], check=True, capture_output=True)
        server = subprocess.Popen([program, "web", "--port", "0", "--study", database], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        try:
            url = server.stdout.readline().strip()
            for name, _, _, address in SCREENSHOTS:
                browser.get("about:blank")
                browser.get(url + address)
                if "study" in address:
                    frame = WebDriverWait(browser, 60).until(lambda b: b.find_element("css selector", "iframe.study"))
                    browser.switch_to.frame(frame)
                WebDriverWait(browser, 60).until(lambda b: b.find_elements("css selector", "canvas"))
                browser.switch_to.default_content()
                browser.execute_async_script("setTimeout(arguments[0], 500)")  # charts are drawn after their boxes
                browser.save_screenshot(str(FOLDER / name))
        finally:
            browser.quit()
            server.terminate()
            server.wait()


def page():
    lines = ["# Gallery", "", "What commands draw. `tools/gallery.py` writes this page.", ""]
    for name, what, command in DRAWINGS:
        shown = command.replace("FILE", name)
        lines += [f"## {what}", "", "```", shown, "```", "", f"![{what}](gallery/{name})", ""]
    for name, what, command, _ in SCREENSHOTS:
        lines += [f"## {what}", "", "```", command, "```", "", f"![{what}](gallery/{name})", ""]
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    files = {FOLDER / name: drawn(program, command, name) for name, _, command in DRAWINGS}
    files[ROOT / "docs/gallery.md"] = page()
    if arguments.update:
        FOLDER.mkdir(exist_ok=True)
        for file, text in files.items():
            file.write_text(text)
        screenshots(program)
        return 0
    differ = [file.relative_to(ROOT) for file, text in files.items() if not file.exists() or file.read_text() != text]
    for file in differ:
        print(f"{file}: differs from what its command draws; tools/gallery.py --update rewrites it")
    print(f"gallery: {len(files)} files, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
