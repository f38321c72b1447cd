#!/bin/sh
# The attacks (tests/attacks) as root and as an ordinary user, with bubblewrap, with Landlock alone and with neither: one table.
# Needs root for both users; an ordinary user runs the three levels as himself. What a machine lacks is a failure, not a skip.
# Usage: attacks.sh [ARGUMENTS-OF-PYTEST …]
set -u
cd "$(dirname "$0")/.."

ORDINARY=65534 # nobody: a number that owns nothing, with or without a name in /etc/passwd.
LEVELS="bubblewrap landlock none"
export CI="${CI:-true}"

kept=$(mktemp -d) || exit 1
chmod 755 "$kept"
trap 'rm -rf "$kept"' EXIT
trap 'exit 130' INT TERM

# A home outside /tmp, which sandboxes replace, that the ordinary user may write.
home=$(mktemp -d "${TMPDIR_OF_ATTACKS:-/var/lib}/palaver-attacks-XXXXXX" 2>/dev/null || mktemp -d "$HOME/.palaver-attacks-XXXXXX") || exit 1
trap 'rm -rf "$kept" "$home"' EXIT

run() { # USER LEVEL ARGUMENTS…
  user=$1 level=$2
  shift 2
  log="$kept/$user-$level"
  mkdir -m 700 "$home/$user" 2>/dev/null
  if [ "$user" = root ] || [ "$(id -u)" != 0 ]; then as=""; else
    chmod 755 "$home"
    chown "$ORDINARY:$ORDINARY" "$home/$user"
    as="setpriv --reuid=$ORDINARY --regid=$ORDINARY --clear-groups"
  fi
  # shellcheck disable=SC2086 - words on purpose
  HOME="$home/$user" PALAVER_SANDBOX="$level" PYTHONDONTWRITEBYTECODE=1 $as \
    .venv/bin/python -m pytest -p no:cacheprovider --basetemp="$home/$user/tmp-$level" tests/attacks -q "$@" > "$log" 2>&1
  status=$?
  rm -rf "$home/$user/tmp-$level"
  [ "$status" = 0 ] || cat "$log"
  printf '%s %s %s %s\n' "$user" "$level" "$status" "$(tail -n 1 "$log")" >> "$kept/table"
}

if [ "$(id -u)" = 0 ]; then users="root ordinary"; else users=$(id -un); fi
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
