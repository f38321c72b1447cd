"""What a person is shown before deciding, and the hash that binds the decision to it."""

from pathlib import Path

from palaver.tools.proposal import PREVIEW_BYTES, Change, fingerprint, shorten

ROOT = Path("/project")


def test_fingerprint_is_the_same_for_the_same_call() -> None:
    first = fingerprint("edit", {"path": "a", "old": "x"}, ROOT, {"a": b"x"})
    again = fingerprint("edit", {"old": "x", "path": "a"}, ROOT, {"a": b"x"})
    assert first == again
    assert len(first) == 64


def test_fingerprint_changes_with_everything_that_matters() -> None:
    different = [
        fingerprint("edit", {"path": "a"}, ROOT, {"a": b"x"}),
        fingerprint("write", {"path": "a"}, ROOT, {"a": b"x"}),
        fingerprint("edit", {"path": "b"}, ROOT, {"a": b"x"}),
        fingerprint("edit", {"path": "a"}, Path("/elsewhere"), {"a": b"x"}),
        fingerprint("edit", {"path": "a"}, ROOT, {"b": b"x"}),
        fingerprint("edit", {"path": "a"}, ROOT, {"a": b"y"}),
        fingerprint("edit", {"path": "a"}, ROOT, {"a": b""}),
        fingerprint("edit", {"path": "a"}, ROOT, {"a": None}),
        fingerprint("edit", {"path": "a"}, ROOT, {"a": b"x", "b": b""}),
        fingerprint("edit", {"path": "a"}, ROOT, {"a": b"", "b": b"x"}),
    ]
    assert len(set(different)) == len(different)


def test_change_is_shown_as_a_unified_diff_and_counted() -> None:
    change = Change("src/a.py", b"one\ntwo\nthree\n", b"one\n2\nthree\nfour\n")
    assert change.preview() == ("--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n")
    done = change.file_change()
    assert (done.path, done.kind, done.additions, done.deletions) == ("src/a.py", "modified", 2, 1)


def test_lines_that_look_like_a_diffs_head_are_counted() -> None:
    done = Change("a", b"-- x\n", b"++ x\n").file_change()
    assert (done.additions, done.deletions) == (1, 1)


def test_new_file_is_a_diff_from_nothing() -> None:
    change = Change("a.txt", None, b"hello")
    assert change.preview() == "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+hello\n\\ No newline at end of file\n"
    assert change.file_change().kind == "created"


def test_preview_makes_the_content_visible_and_the_record_keeps_it() -> None:
    change = Change("a", b"", "a\u202eb\n".encode())
    assert "+a⟨202E⟩b\n" in change.preview()
    assert "+a\u202eb\n" in (change.file_change().diff or "")


def test_change_of_very_many_lines_is_summed_up() -> None:
    change = Change("big", b"a\n" * 8_000, b"b\n" * 8_000)
    assert change.preview() == "big: 8,000 lines become 8,000 (too many to compare)\n"


def test_long_preview_says_how_much_is_missing() -> None:
    text = "é" * PREVIEW_BYTES
    assert shorten(text) == "é" * (PREVIEW_BYTES // 2) + f"\n[… {PREVIEW_BYTES:,} more bytes …]\n"
