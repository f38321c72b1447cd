#!/bin/sh
# Installs into .venv: with uv, which is quick, or with pip where uv cannot reach the packages.
# Always names the environment, because another one may be active in the caller's shell.
set -eu
cd "$(dirname "$0")/.."

if [ -x .venv/bin/uv ]; then
  if .venv/bin/uv pip "$@" --quiet --python .venv/bin/python; then exit 0; fi
  echo "uv did not manage; trying pip …" >&2
fi
exec .venv/bin/python -m pip "$@" --quiet --disable-pip-version-check
