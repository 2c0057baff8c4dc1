#!/usr/bin/env bash
# Runs a command in a fresh clone of this repository inside a minimal Debian 12 with nothing but git and sudo, as an
# ordinary user: what a newcomer sees.
#
#   tools/clean_room.sh [--keep] [COMMAND…]      the default command is ./dev demo
#   tools/clean_room.sh [--keep] --packages      installs build/packages/*.deb (./dev package) in a Debian without a
#                                                clone, uses program, library and Python module, and removes them
#
# Needs root, debootstrap and a machine whose apt knows a Debian 12 mirror: that mirror and apt's proxy are used inside.
# What is committed is cloned, not the working tree. --keep leaves the tree behind and says where.
set -euo pipefail

readonly release=bookworm
repository="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

die() { printf 'clean_room: %s\n' "$*" >&2; exit 2; }
step() { printf '\n==> clean room: %s\n' "$*" >&2; }

# The host's mirrors of this release, its updates and its security fixes, as lines "URI SUITE COMPONENT".
mirrors() {
  # shellcheck disable=SC2016  # apt's placeholders, not the shell's
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    sed -n "s/^Debian \(.* $release\(-updates\|-security\)\? .*\)/\1/p" | sort -u
}

build_root() {
  local mirror
  mirror="$(mirrors | awk -v suite="$release" '$2 == suite { print $1; exit }')"
  [[ "$mirror" ]] || die "apt of this machine knows no mirror of Debian $release"
  step "debootstrap $release into $root"
  debootstrap --variant=minbase "$release" "$root" "$mirror" >"$root.log" || { tail -20 "$root.log" >&2; return 1; }
  mirrors | sed 's/^/deb /' >"$root/etc/apt/sources.list"
  apt-config dump | grep -i '^Acquire::http.*::proxy' >"$root/etc/apt/apt.conf.d/90host-proxy" || true
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  mount -t proc proc "$root/proc"
  # Terminals, for tests of what a terminal shows.
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
  ln -sf pts/ptmx "$root/dev/ptmx"
  inside root "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends git sudo"
  inside root "useradd --create-home --shell /bin/bash newcomer && echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/newcomer"
}

clone() {
  git clone --quiet --no-hardlinks "$repository" "$root/home/newcomer/orrery"
  inside root "chown -R newcomer: /home/newcomer"
}

# The page of the installed program, over HTTP; only what Debian's minimal Python has.
use_page() {
  local address answered=0
  address="$(mktemp)"
  orrery web --port 0 >"$address" & server=$!
  for _ in {1..100}; do [[ -s "$address" ]] && break; sleep 0.1; done
  python3 - "$(head -1 "$address")" <<'PYTHON' || answered=1
import json, sys, urllib.request
url = sys.argv[1].replace("localhost", "127.0.0.1")  # a chroot has no /etc/hosts
assert "<title>Orrery</title>" in urllib.request.urlopen(url).read().decode()
job = {"model": "llama-3.1-8b", "cluster": "dgx-h100", "devices": 64, "global-batch": 64, "seq": 8192}
answer = json.load(urllib.request.urlopen(url + "api/estimate", json.dumps(job).encode()))
print("step_time_s", answer["step_time_s"])
PYTHON
  kill "$server"
  wait "$server" || true
  return "$answered"
}

# The packages as a user has them: apt installs them with what they need, and purges them again.
use_packages() {
  local job="--model llama-3.1-8b --cluster dgx-h100 --devices 64 --global-batch 64 --seq 8192"
  cp -r "$repository"/build/packages "$repository/examples/library" "$root/home/newcomer/"
  inside root "chown -R newcomer: /home/newcomer"
  step "install"
  inside root "cd /home/newcomer/packages && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends ./*.deb cmake g++ make"
  step "the program"
  inside newcomer "orrery --version && orrery plan $job | head -20 && zcat /usr/share/man/man1/orrery-plan.1.gz | grep -q '^orrery-plan '"
  inside newcomer "orrery estimate $job --json" >"$root/home/program.json"
  step "its files"
  inside newcomer "orrery help mfu && man -w orrery-plan 2>/dev/null || test -f /usr/share/man/man1/orrery-plan.1.gz"
  inside newcomer "bash -n /usr/share/bash-completion/completions/orrery && test -f /usr/share/zsh/vendor-completions/_orrery"
  inside newcomer "cd /usr/share/doc/orrery/examples && orrery campaign --scenario campaigns/llama-3-405b.yaml | head -5"
  inside newcomer "cp -r /usr/share/orrery/data ~/catalogue && ORRERY_DATA=~/catalogue orrery list models >/dev/null"
  ! inside newcomer "ORRERY_DATA=/nowhere orrery list models 2>/dev/null" || die "ORRERY_DATA has no effect"
  step "the page"
  inside newcomer "$(declare -f use_page); use_page"
  step "the Python module"
  inside newcomer "python3 -c 'import orrery; print(orrery.estimate(model=\"llama-3.1-8b\", cluster=\"dgx-h100\", devices=64, global_batch=64, seq=8192).step_time_s)'" |
    tee "$root/home/module.txt"
  grep -qF "\"step_time_s\": $(cat "$root/home/module.txt")" "$root/home/program.json" || die "the module and the program differ"
  sed -n '/^```python$/,/^```$/{/^```/d;p}' "$repository/README.md" >"$root/home/newcomer/readme.py"
  inside newcomer "python3 ~/readme.py"
  step "the library"
  inside newcomer "cd ~ && cmake -S library -B built >/dev/null && cmake --build built >/dev/null && built/step_time /usr/share/orrery/data"
  step "remove"
  inside root "DEBIAN_FRONTEND=noninteractive apt-get purge -q -y 'orrery' 'liborrery*' 'python3-orrery' && apt-get autoremove -q -y --purge"
  local left
  left="$(cd "$root" && find usr etc var/lib/orrery -iname '*orrery*' 2>/dev/null | grep -v '^var/cache' || true)"
  [[ -z "$left" ]] || die "left behind: $left"
}

# inside USER COMMAND: with an environment as empty as after logging in.
inside() { chroot "$root" /usr/bin/env -i TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin su "$1" -c "$2"; }

leave() {
  umount "$root/dev/pts" "$root/proc" 2>/dev/null || true
  if [[ "$keep" ]]; then step "kept in $root"; else rm -rf --one-file-system "$root" "$root.log"; fi
}

((EUID == 0)) || die "needs root, for chroot"
command -v debootstrap >/dev/null || die "needs debootstrap"
# In a mount namespace of its own, so that nothing stays mounted whatever happens.
if [[ -z "${CLEAN_ROOM_INSIDE:-}" ]]; then CLEAN_ROOM_INSIDE=1 exec unshare --mount "$0" "$@"; fi

keep=""
if [[ "${1:-}" == --keep ]]; then keep=1; shift; fi
if (($# == 0)); then set -- ./dev demo; fi
[[ "$1" != --packages ]] || compgen -G "$repository/build/packages/*.deb" >/dev/null || die "no build/packages/*.deb; ./dev package makes them"
root="$(mktemp -d "${TMPDIR:-/tmp}/orrery-clean-room.XXXXXX")"
chmod 755 "$root"
trap leave EXIT
build_root
if [[ "$1" == --packages ]]; then
  use_packages
  step "done in $SECONDS s"
  exit
fi
clone
step "$(git -C "$repository" rev-parse --short HEAD): $*"
started=$SECONDS
inside newcomer "cd ~/orrery && $(printf '%q ' "$@")"
step "done in $((SECONDS - started)) s"
