#!/bin/sh
# Succeeds when there is a Chromium for the browser tests, installing Debian's where that is possible.
set -eu

found() {
  for name in "${PALAVER_CHROMIUM:-}" chromium chromium-browser google-chrome \
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
    if [ -n "$name" ] && command -v "$name" >/dev/null; then return 0; fi
  done
  return 1
}

. "$(dirname "$0")/apt.sh"

found && exit 0
echo "Installing Chromium for the browser tests …"
install chromium && found && exit 0
if [ -n "${CI:-}" ]; then
  echo "There is no Chromium here and it could not be installed; CI leaves nothing out." >&2
  exit 2
fi
echo "The browser tests are left out: there is no Chromium here and it could not be installed." >&2
echo "On Debian: sudo apt install chromium. Elsewhere: set PALAVER_CHROMIUM to a Chromium's path." >&2
exit 1
