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

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

found && exit 0
if command -v apt-get >/dev/null; then
  echo "Installing Chromium for the browser tests …"
  export DEBIAN_FRONTEND=noninteractive
  { as_root apt-get update -qq && as_root apt-get install -qq -y --no-install-recommends chromium; } >/dev/null 2>&1 || true
  found && exit 0
fi
echo "The browser tests are left out: there is no Chromium here and it could not be installed." >&2
echo "On Debian: sudo apt install chromium. Elsewhere: set PALAVER_CHROMIUM to a Chromium's path." >&2
exit 1
