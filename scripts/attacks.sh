#!/bin/sh
# The attacks (tests/attacks) as root and as an ordinary user, with bubblewrap, with Landlock alone and with neither: one table.
# Needs root for both users; an ordinary user runs the three levels as himself. What a machine lacks is a failure, not a skip.
# Usage: [ATTACKS="FILE …"] [ATTACKERS="root ordinary"] attacks.sh [ARGUMENTS-OF-PYTEST …]
set -u
cd "$(dirname "$0")/.."

ORDINARY=65534 # nobody: a number that owns nothing, with or without a name in /etc/passwd.
LEVELS="bubblewrap landlock none"
ATTACKS="${ATTACKS:-tests/attacks}"
export CI="${CI:-true}"

kept=$(mktemp -d) || exit 1
chmod 755 "$kept"
trap 'rm -rf "$kept"' EXIT
trap 'exit 130' INT TERM

# A home outside /tmp, which sandboxes replace, and where the ordinary user has a folder too.
home=$(mktemp -d /var/lib/palaver-attacks-XXXXXX 2>/dev/null || mktemp -d "$HOME/.palaver-attacks-XXXXXX") || exit 1
chmod 755 "$home"
trap 'rm -rf "$kept" "$home"' EXIT

ordinary() { setpriv --reuid="$ORDINARY" --regid="$ORDINARY" --clear-groups "$@"; }

# Where the interpreter lies in root's own home, the ordinary user gets the machine's own of the same version, or one by other
# names (hard links), with the same packages.
readable_python() {
  packages=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  version=$(.venv/bin/python -c 'import sys; print(f"python{sys.version_info[0]}.{sys.version_info[1]}")')
  base=/usr
  if [ ! -x "/usr/bin/$version" ]; then
    base="$home/base"
    own=$(.venv/bin/python -c 'import sys; print(sys.base_prefix)')
    cp -al "$own" "$base" 2>/dev/null || cp -a "$own" "$base" || return 1
  fi
  mkdir -p "$home/venv/bin" "$home/venv/lib/$version"
  ln -s "$base/bin/$version" "$home/venv/bin/python"
  ln -s "$packages" "$home/venv/lib/$version/site-packages"
  printf 'home = %s/bin\n' "$base" > "$home/venv/pyvenv.cfg"
}

run() { # USER LEVEL ARGUMENTS…
  user=$1 level=$2
  shift 2
  log="$kept/$user-$level"
  mkdir -m 700 "$home/$user" 2>/dev/null
  as="" python=.venv/bin/python
  if [ "$user" = ordinary ]; then
    chown "$ORDINARY:$ORDINARY" "$home/$user"
    as=ordinary
    # Asked by a shell: setpriv itself would take another interpreter of that name.
    if ! ordinary /bin/sh -c "exec $python -c 'import pytest, palaver'" 2>/dev/null; then
      [ -d "$home/venv" ] || readable_python || exit 1
      python="$home/venv/bin/python"
    fi
  fi
  # shellcheck disable=SC2086 - several files are several words
  HOME="$home/$user" PALAVER_SANDBOX="$level" PYTHONDONTWRITEBYTECODE=1 $as \
    "$python" -m pytest -p no:cacheprovider --basetemp="$home/$user/tmp-$level" $ATTACKS -q "$@" > "$log" 2>&1
  status=$?
  rm -rf "$home/$user/tmp-$level"
  [ "$status" = 0 ] || cat "$log"
  printf '%s %s %s %s\n' "$user" "$level" "$status" "$(tail -n 1 "$log")" >> "$kept/table"
}

if [ "$(id -u)" = 0 ]; then users="${ATTACKERS:-root ordinary}"; else users=$(id -un); fi
: > "$kept/table"
for user in $users; do
  for level in $LEVELS; do
    echo "Attacking as $user, $level …"
    run "$user" "$level" "$@"
  done
done

printf '\n%-10s %-11s %-6s %s\n' user sandbox result tests
failed=0
while read -r user level status told; do
  if [ "$status" = 0 ]; then result=held; else result=FELL failed=1; fi
  printf '%-10s %-11s %-6s %s\n' "$user" "$level" "$result" "$told"
done < "$kept/table"
exit "$failed"
