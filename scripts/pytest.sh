#!/bin/sh
# Runs the tests it is told, and the few that fail once more, alone: a machine that was busy fails a wait once, a defect twice.
# Usage: pytest.sh ARGUMENTS-OF-PYTEST …   A test named in the second run deserves a look even when it passes there.
set -u
cd "$(dirname "$0")/.."

FEW=5 # More than that is no accident of a busy machine.

.venv/bin/python -m pytest --cache-clear "$@"
status=$?
[ "$status" = 1 ] || exit "$status"

failed=$(.venv/bin/python -c 'import json; print(len(json.load(open(".pytest_cache/v/cache/lastfailed"))))') || exit 1
[ "$failed" -le "$FEW" ] || exit 1
echo "Once more, alone: what failed of the above ($failed) …"
exec .venv/bin/python -m pytest -n 0 --last-failed --last-failed-no-failures=none -v tests
