"""Builds the wheel of the Python module with CMake (PEP 517), with nothing but the standard library.

ORRERY_BUILD names a folder in which the module is built already, or is to be built; default: build/wheel.
"""
import base64
import hashlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def metadata():
    about = project()
    lines = ["Metadata-Version: 2.1", f"Name: {about['name']}", f"Version: {about['version']}", f"Summary: {about['description']}",
             f"License: {about['license']['text']}", f"Requires-Python: {about['requires-python']}"]
    return "\n".join(lines) + "\n"


def tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{python}-{python}-{platform}"


def built_package():
    """The folder of the package, with the extension module in it."""
    build = pathlib.Path(os.environ.get("ORRERY_BUILD", ROOT / "build" / "wheel")).resolve()
    if not (build / "CMakeCache.txt").exists():
        subprocess.run(["cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                        "-DCMAKE_CXX_FLAGS_RELEASE=-O2", "-DORRERY_TESTS=OFF", "-DORRERY_PYTHON=ON",
                        f"-DPython3_EXECUTABLE={sys.executable}"], check=True)
    jobs = os.environ.get("ORRERY_JOBS", str(os.cpu_count()))
    subprocess.run(["cmake", "--build", str(build), "--parallel", jobs, "--target", "orrery_package"], check=True)
    return build / "python" / "orrery"


class Wheel:
    """A zip file whose RECORD has the digest of each member."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.records = []

    def add(self, name, content):
        info = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
        info.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(content)}")

    def close(self, info):
        self.records.append(f"{info}/RECORD,,")
        self.zip.writestr(f"{info}/RECORD", "\n".join(self.records) + "\n")
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    about = project()
    base = f"{about['name']}-{about['version']}"
    name = f"{base}-{tag()}.whl"
    package = built_package()
    wheel = Wheel(pathlib.Path(wheel_directory) / name)
    for file in sorted(package.iterdir()):
        if file.is_file() and file.suffix != ".pyc":
            wheel.add(f"orrery/{file.name}", file.read_bytes())
    for file in sorted((ROOT / "data").rglob("*")):
        if file.is_file():
            wheel.add(f"orrery/data/{file.relative_to(ROOT / 'data')}", file.read_bytes())
    info = f"{base}.dist-info"
    wheel.add(f"{info}/METADATA", metadata().encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: orrery\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode())
    wheel.close(info)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("wheels are built from a checkout")


def get_requires_for_build_wheel(config_settings=None):
    return []
