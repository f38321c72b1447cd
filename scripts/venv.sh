#!/bin/sh
# Makes .venv with a Python new enough, and uv in it. Does nothing to a .venv that already works.
set -eu
cd "$(dirname "$0")/.."

fail() {
  echo "$1" >&2
  exit 1
}

new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
  for python in python3 python3.13 python3.12 python3.11 python3.14; do
    if new_enough "$python"; then
      echo "$python"
      return
    fi
  done
  fail "Palaver needs Python 3.11 or newer. Install one and run this again."
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

make_venv() {
  python=$(find_python)
  echo "Making .venv with $("$python" --version) …"
  if "$python" -m venv --clear .venv >/dev/null 2>&1; then return; fi
  # Debian and Ubuntu keep the part of Python that makes environments in a package of its own.
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if command -v apt-get >/dev/null; then
    echo "Installing python$version-venv …"
    { as_root apt-get update -qq && as_root apt-get install -qq -y "python$version-venv"; } >/dev/null 2>&1 || true
  fi
  "$python" -m venv --clear .venv ||
    fail "Python could not make an environment. On Debian or Ubuntu: sudo apt install python$version-venv"
}

new_enough .venv/bin/python || make_venv
# Without uv everything still works through pip, only slower.
.venv/bin/uv --version >/dev/null 2>&1 ||
  .venv/bin/python -m pip install -qq --disable-pip-version-check "uv>=0.13,<0.14" ||
  echo "uv is not to be had here; using pip, which takes longer."
