#!/usr/bin/env bash
# Installs the Python module from the checkout into a fresh virtual environment, without network, and uses it.
#
#   install_test.sh PYTHON BUILD_FOLDER
set -euo pipefail
python="$1" build="$2"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$python" -m venv --system-site-packages "$folder/venv"
ORRERY_BUILD="$build" "$folder/venv/bin/pip" install --quiet --no-index --no-deps "$root" 2>&1
cd "$folder" # not in the checkout
"$folder/venv/bin/python" - <<'PYTHON'
import orrery
step = orrery.estimate(model="llama-3.1-8b", cluster="dgx-h100", devices=64, global_batch=64, seq=8192)
assert "venv" in orrery.__file__, orrery.__file__
print(f"{step.step_time_s:.4f} s per step")
PYTHON
# The examples of the README and of the guide.
cp "$root/examples/traces/step.0.et" workload.0.et
for page in README.md docs/guide/python.md; do
  sed -n '/^```python$/,/^```$/{/^```/d;p}' "$root/$page" >example.py
  [[ -s example.py ]] || { echo "$page has no example"; exit 1; }
  "$folder/venv/bin/python" example.py
done
"$folder/venv/bin/pip" uninstall --quiet --yes orrery
! "$folder/venv/bin/python" -c "import orrery" 2>/dev/null
