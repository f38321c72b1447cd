#!/bin/sh
# The only definition of clean. Every check runs even when an earlier one fails, so that one run tells all.
set -u
cd "$(dirname "$0")/.."

status=0
PATH="$PWD/.venv/bin:$PATH"

# Usage: check NAME COMMAND …; silent when all is well.
check() {
  printf 'Checking %s …\n' "$1"
  shift
  if ! report=$("$@" 2>&1); then
    printf '%s\n' "$report"
    status=1
  fi
}

python_sources="src scripts hatch_build.py"
for folder in tests bench examples; do
  if [ -d "$folder" ]; then python_sources="$python_sources $folder"; fi
done

check "style" ruff check --quiet .
check "format" ruff format --quiet --check .
check "layers" lint-imports --no-logo
# shellcheck disable=SC2086 # the list is meant to be split
check "types of Python" mypy $python_sources
check "types of the page" scripts/npm.sh run --silent check
# Tolerated only until the generator exists.
if [ -e src/palaver/schema/generate.py ]; then check "generated files" scripts/check_generated.sh; fi

if [ "$status" -eq 0 ]; then echo "Clean."; fi
exit "$status"
