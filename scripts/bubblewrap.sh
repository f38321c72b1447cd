#!/bin/sh
# Bubblewrap for the sandbox tests, where Debian's package can be had. Palaver runs without it and says so.
set -eu
. "$(dirname "$0")/apt.sh"

if [ "$(uname)" != Linux ] || command -v bwrap >/dev/null; then exit 0; fi
echo "Installing bubblewrap for the sandbox tests …"
install bubblewrap || echo "The sandbox tests are left out: bubblewrap could not be installed (sudo apt install bubblewrap)." >&2
