#!/bin/sh
# Writes the lock files anew. Pass --upgrade to take the newest versions, or --upgrade-package NAME for one.
# Universal: one file serves every platform and every Python from 3.11 on. It names no place to fetch from.
set -eu
cd "$(dirname "$0")/.."

compile() {
  .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header "$@"
}

compile pyproject.toml --extra dev -o requirements.lock "$@"
compile scripts/model.in --no-deps -o scripts/model.lock "$@"
if grep -l "://" requirements.lock scripts/model.lock; then
  echo "A lock file names a host: it would not work with another mirror." >&2
  exit 1
fi
