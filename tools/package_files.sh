#!/usr/bin/env bash
# Writes what Debian packages need beside the program: man pages (from --help), completions, copyright, change log.
#
#   tools/package_files.sh PROGRAM FOLDER
set -euo pipefail
program="$1" folder="$2"
mkdir -p "$folder/man"
version="$("$program" --version | cut -d' ' -f2)"

page() { # NAME SENTENCE [COMMAND ]
  help2man --no-info --section 1 --version-string "$version" --name "$2" --help-option "${3:-}--help" --output "$folder/man/$1.1" "$program"
  # help2man knows the name of the program only.
  sed -i "s/^\.TH ORRERY /.TH ${1^^} /; /^\.SH NAME/{n; s/^orrery /$1 /}" "$folder/man/$1.1"
}

# The first sentence of a command's help, on one line.
sentence() { "$program" "$1" --help | sed '/^$/q' | tr '\n' ' ' | sed 's/[. ]*$//'; }

page orrery "cost model and plan search for distributed AI jobs"
"$program" --help | sed -n '/^usage:/,/^Try/s/^  \([a-z]\+\)  *[A-Z].*/\1/p' | while read -r command; do
  page "orrery-$command" "$(sentence "$command")" "$command "
done
gzip --force --no-name --best "$folder"/man/*.1
for shell in bash zsh fish; do "$program" completion "$shell" >"$folder/orrery.$shell"; done
cat >"$folder/copyright" <<TEXT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: orrery

Files: *
Copyright: 2025-2026 The developers of Orrery
License: Apache-2.0
 On Debian systems, the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
TEXT
printf 'orrery (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md of the source.\n\n -- The developers of Orrery <orrery@localhost.localdomain>  %s\n' \
  "$version" "$(date --date='2026-11-01' --rfc-email)" | gzip --no-name --best >"$folder/changelog.gz"
