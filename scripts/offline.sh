#!/bin/sh
# Runs its arguments where there is no network but loopback: whatever would leave the machine fails instead.
# Linux; as root, or where a user may make namespaces. Example: scripts/offline.sh .venv/bin/python -m pytest tests/cli
set -eu
if [ $# -eq 0 ]; then
  echo "usage: scripts/offline.sh COMMAND [ARGUMENT…]" >&2
  exit 2
fi
if ! command -v unshare >/dev/null || ! command -v ip >/dev/null; then
  echo "This needs Linux with unshare (util-linux) and ip (iproute2)." >&2
  exit 1
fi
if [ "$(id -u)" -eq 0 ]; then user=""; else user="--map-root-user"; fi
# shellcheck disable=SC2086 # empty or one word
exec unshare --net $user -- sh -c 'ip link set lo up && exec "$@"' offline "$@"
