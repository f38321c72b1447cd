"""Which commands run unasked: a short list says yes, a long list of tricks never gets one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.tools.shell.read_only_commands import Reading, reading

READING = [
    "ls",
    "ls -la src",
    "  ls   -1  src  ",
    "ls --all",
    "cat README.md",
    "cat -n 'a file.txt' \"another file.txt\"",
    "head -n 20 a.txt",
    "head -20 a.txt",
    "tail -n5 a.txt",
    "tail -c 100 a.txt",
    "wc -l a.txt b.txt",
    "pwd",
    "echo hello, world",
    "echo '$HOME `id` !'",
    "grep -rn needle src",
    "grep -i -e 'a|b' src",
    "grep -A3 -B 2 'def main' src/app.py",
    "grep --include='*.py' -r needle .",
    "rg -n needle src",
    "rg --files src",
    "rg -t py -g '*.py' needle",
    "git status",
    "git status --short --branch",
    "git status --porcelain=v2",
    "git log --oneline -n 5",
    "git log -3 --stat main..feature",
    "git log --author='Ada Lovelace' HEAD~2",
    "git diff HEAD^ -- src/a.py",
    "git diff --cached --name-only",
    "git show HEAD:src/a.py",
    "git show --stat HEAD~1",
]


@pytest.mark.parametrize("command", READING)
def test_simple_reading_command_is_known(command: str) -> None:
    assert reading(command) is not None


HOSTILE = [
    # more than one command
    "ls; rm -rf .",
    "ls && rm a",
    "ls || rm a",
    "ls & rm a",
    "ls &",
    "ls | sh",
    "ls |& sh",
    "ls\nrm a",
    "ls\r\nrm a",
    "ls\rrm a",
    "ls\x0brm a",
    "(ls)",
    "{ ls; }",
    "! ls",
    "ls;",
    "time ls",
    "exec ls",
    "command ls",
    "builtin echo",
    "coproc ls",
    "if ls; then rm a; fi",
    # expansion, substitution, redirect
    "cat $HOME/.ssh/id_rsa",
    "cat ${HOME}/x",
    "cat $(ls)",
    "cat `ls`",
    'cat "$(ls)"',
    'cat "`ls`"',
    'cat "$HOME"',
    "cat <(ls)",
    "cat < a",
    "cat <<< a",
    "cat << EOF",
    "echo a > b",
    "echo a >> b",
    "echo a 2>b",
    "echo a>b",
    "echo a >| b",
    "ls &> a",
    "echo $((1+1))",
    "echo $'a\\nb'",
    'echo $"a"',
    "cat ~/.ssh/id_rsa",
    "cat ~root/x",
    "ls a~:~/b",
    "cat '~/x'",
    "echo {a,b}",
    "cat a\\ b",
    "c\\at a",
    "cat a#b",
    "cat a # comment",
    "ls !!",
    'echo "!ls"',
    # globs, which may turn into options
    "cat *",
    "cat a?",
    "cat [ab]",
    "ls -l *.py",
    "cat @(a|b)",
    # variables and odd first words
    "FOO=bar ls",
    "LD_PRELOAD=x ls",
    "PAGER=sh git log",
    "./ls",
    "/tmp/ls",
    "bin/ls",
    "ls/../rm",
    "''",
    "",
    "   ",
    "\t",
    "ls\ta",
    # quotes that do not end
    "cat 'a",
    'cat "a',
    "cat a'",
    # outside the folder
    "cat /etc/passwd",
    "ls /",
    "cat ../secret",
    "cat a/../../secret",
    "grep -r needle /",
    "git show HEAD:../secret",
    "git diff ../a",
    "head -n 5 '/etc/passwd'",
    "cat -- /etc/passwd",
    # options that write, run, follow or read lists of names
    "git -c core.pager=sh log",
    "git -C /tmp status",
    "git --exec-path=/tmp status",
    "git --git-dir=/tmp status",
    "git --no-pager log",
    "git log --ext-diff",
    "git diff --ext-diff",
    "git diff --textconv",
    "git diff --output=a",
    "git diff -O a",
    "git diff --no-index a b",
    "git log --output=a",
    "git log --format=%G?",
    "git log -L:f:a",
    "git show --textconv",
    "git grep -O needle",
    "git grep --open-files-in-pager=sh needle",
    "git branch -D main",
    "git config --get user.name",
    "git checkout .",
    "git push",
    "git",
    "git ''",
    "git help",
    "grep -f /etc/passwd a",
    "grep -ffile a",
    "grep --file=a b",
    "grep -R needle",
    "grep -nR needle",
    "grep --devices=read x",
    "grep -A needle a",
    "rg --pre sh needle",
    "rg --pre=sh needle",
    "rg -z needle",
    "rg --search-zip needle",
    "rg -L needle",
    "rg --follow needle",
    "rg -f a",
    "rg --hostname-bin=sh needle",
    "rg --ignore-file=/etc/passwd needle",
    "tail -f a",
    "tail -F a",
    "tail --follow a",
    "tail --pid=1 a",
    "head -n -",
    "head -n",
    "wc --files0-from=a",
    "wc --files0-from a",
    "ls --hyperlink",
    "ls -L",
    "ls --dired=a",
    "cat --help",
    "cat -x a",
    # programs that are not on the list
    "rm a",
    "find . -delete",
    "find . -exec sh {} +",
    "sed -i s/a/b/ a",
    "sed -n 1,5p a",
    "awk 1 a",
    "env ls",
    "xargs ls",
    "sudo ls",
    "sh -c ls",
    "bash",
    "python -c 1",
    "tee a",
    "sort -o a b",
    "less a",
    "more a",
    "vi a",
    "eval ls",
    "source a",
    ". a",
    "alias ls=rm",
    "cd ..",
    "[ -f a ]",
    "test -f a",
    "LS",
    "printf %s a",
    # letters that only look right, and characters nobody sees
    "l\u0455",
    "ls\u00a0-la",
    "ls\u2028rm a",
    "ls\u202e",
    "cat\u200b a",
    "cat 'a\u202eb'",
    "cat é",
    "ls\0rm",
    "ls \x1b[2K",
    "cat 'a\nb'",
    "echo " + "a" * 3000,
]


@pytest.mark.parametrize("command", HOSTILE)
def test_anything_else_is_asked_about(command: str) -> None:
    assert reading(command) is None


def test_words_that_may_be_paths_are_named() -> None:
    assert reading("grep -rn -e a src 'my docs'") == Reading("grep", ("src", "my docs"))
    assert reading("grep -rn a src lib") == Reading("grep", ("src", "lib"))
    assert reading("rg --files src") == Reading("rg", ("src",))
    assert reading("head -n 5 a -- -b") == Reading("head", ("a", "-b"))
    assert reading("git diff HEAD -- a") == Reading("git diff", ("HEAD", "a"))


@given(st.sampled_from(READING), st.sampled_from([*";&|<>$`\\\n\r\t(){}*?[]!#~\"'", "\0", "\x1b", "\u202e"]), st.data())
def test_special_character_outside_quotes_is_never_let_through(command: str, special: str, data: st.DataObject) -> None:
    bare = command.replace("'", "").replace('"', "")
    place = data.draw(st.integers(0, len(bare)))
    hostile = bare[:place] + special + bare[place:]
    found = reading(hostile)
    # Behind a letter a tilde is a plain character (HEAD~1); everything else here is special everywhere.
    assert found is None or (special == "~" and bare[place - 1 : place].isalnum())


@given(st.text("ls catgitrepo-'\"$`;|&<>*~=/. \n", max_size=40))
def test_what_is_let_through_is_read_the_same_by_the_shell(command: str) -> None:
    found = reading(command)
    if found is None:
        return
    outside = "".join(part for place, part in enumerate(command.replace('"', "'").split("'")) if place % 2 == 0)
    assert not set(outside) & set("$`;|&<>*\n")
