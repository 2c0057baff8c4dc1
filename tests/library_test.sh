#!/usr/bin/env bash
# Installs the library into an empty prefix, builds examples/library against it as any other project would, and compares
# the number that it prints with the program's.
#
#   library_test.sh BUILD_FOLDER
set -euo pipefail
build="$1"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --component development --prefix "$folder/prefix" >/dev/null
cp -r "$root/examples/library" "$folder/source"
cmake -S "$folder/source" -B "$folder/build" -G Ninja -DCMAKE_PREFIX_PATH="$folder/prefix" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
cmake --build "$folder/build" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
printed="$("$folder/build/step_time" "$root/data")"
expected="$("$build/orrery" estimate --model llama-3.1-8b --cluster dgx-h100 --devices 64 --global-batch 64 --seq 8192 --json |
  python3 -c 'import json, sys; print("%.6f s per step" % json.load(sys.stdin)["step_time_s"])')"
[[ "$printed" == "$expected" ]] || { echo "library: $printed; program: $expected"; exit 1; }
# Names of other namespaces, and of the packages inside, stay inside.
others="$(nm --dynamic --defined-only --demangle "$folder"/prefix/lib*/liborrery.so "$folder"/prefix/lib*/*/liborrery.so 2>/dev/null |
  grep -vE 'orrery::|A orrery|^$|^/' || true)"
[[ -z "$others" ]] || { echo "exported, but not of the library:"; echo "$others" | head; exit 1; }
echo "$printed"
