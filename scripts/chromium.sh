#!/bin/sh
# Succeeds when there is a Chromium, installing Debian's where that is possible.
# Usage: chromium.sh [light]; light: its headless shell will do, which is what tests prefer.
set -eu

found() {
  for name in "${PALAVER_CHROMIUM:-}" "$@" chromium chromium-browser google-chrome \
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
    if [ -n "$name" ] && command -v "$name" >/dev/null; then return 0; fi
  done
  return 1
}

. "$(dirname "$0")/apt.sh"

light="${1:+chromium-headless-shell}"
# shellcheck disable=SC2086 # absent, it is no argument
found $light && exit 0
echo "Installing Chromium for the browser tests …"
# Older systems have the whole browser only.
for package in $light chromium; do
  # shellcheck disable=SC2086
  install "$package" && found $light && exit 0
done
if [ -n "${CI:-}" ]; then
  echo "There is no Chromium here and it could not be installed; CI leaves nothing out." >&2
  exit 2
fi
echo "The browser tests are left out: there is no Chromium here and it could not be installed." >&2
echo "On Debian: sudo apt install chromium. Elsewhere: set PALAVER_CHROMIUM to a Chromium's path." >&2
exit 1
