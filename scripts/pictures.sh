#!/bin/sh
# Takes the pictures of the documentation: plays every shot of tests/browser/gallery in a real Chromium against a real
# server, and keeps what changed in docs/pictures. Arguments go to pytest: `scripts/pictures.sh -k approval`.
set -eu
cd "$(dirname "$0")/.."

# Some pictures show the small local model.
scripts/model.sh
scripts/chromium.sh || { echo "Pictures need Chromium." >&2; exit 1; }
# The page takes the reader's own font: in all pictures the same one.
if ! fc-list | grep -q Liberation; then
  . scripts/apt.sh
  install fonts-liberation || echo "Without the Liberation fonts these pictures will not look like the others." >&2
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# What was taken is kept, also when some shot could not be.
status=0
# The terminal in all its colours, wherever this is called from.
TERM=xterm-256color COLORTERM=truecolor PALAVER_SCREENSHOTS=$folder .venv/bin/python -m pytest tests/browser/gallery/taking.py -q "$@" || status=$?
.venv/bin/python -m tests.browser.gallery.publish "$folder"
exit $status
