# Sourced by the scripts that fetch a program for the tests: Debian's packages, where that is possible.

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

install() { # package
  command -v apt-get >/dev/null || return 1
  export DEBIAN_FRONTEND=noninteractive
  { as_root apt-get update -qq && as_root apt-get install -qq -y --no-install-recommends "$1"; } >/dev/null 2>&1
}
