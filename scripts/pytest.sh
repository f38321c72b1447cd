#!/bin/sh
# Runs the tests it is told, and each of the few that fail once more, alone in a process of its own: a machine that was busy
# fails a wait once, a defect twice. What passed only the second time is added to `.second-try`, which stays when the run is
# over: each line there is a defect of a test or of the product that somebody has to find.
# Usage: pytest.sh ARGUMENTS-OF-PYTEST …
set -u
cd "$(dirname "$0")/.."

FEW=5 # More than that is no accident of a busy machine.
# Where it is switched off, every module of the tests would be compiled anew in every run.
unset PYTHONDONTWRITEBYTECODE

# Of its own: another run in this folder would overwrite what failed in this one.
kept=$(mktemp -d) || exit 1
trap 'rm -rf "$kept"' EXIT
trap 'exit 130' INT TERM

.venv/bin/python -m pytest -o cache_dir="$kept/cache" "$@"
status=$?
[ "$status" = 1 ] || exit "$status"

.venv/bin/python -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' \
  "$kept/cache/v/cache/lastfailed" > "$kept/failed" || exit 1
failed=$(($(wc -l < "$kept/failed")))
if [ "$failed" -gt "$FEW" ]; then
  echo "$failed tests failed, which is more than a busy machine explains: none was tried again."
  exit 1
fi

: > "$kept/twice"
while IFS= read -r test; do
  printf '\nOnce more, alone: %s\n' "$test"
  if .venv/bin/python -m pytest -p no:cacheprovider "$test" < /dev/null; then
    printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%MZ)" "$test" >> .second-try
  else
    printf '  %s\n' "$test" >> "$kept/twice"
  fi
done < "$kept/failed"

if [ -s "$kept/twice" ]; then
  printf '\nFAILED BOTH TIMES:\n'
  cat "$kept/twice"
  exit 1
fi
