"""A plan read off an answer."""

from palaver.context.plan_text import plan_of

ANSWER = """\
Here is what I would do.

## Move the **parser** into its own file

1. Read `parse.py`
2) Write the tests first
   - not an item: it belongs to the second
```
1. not an item either
```
- [ ] Move the code
"""


def test_first_heading_is_the_summary_and_listed_lines_are_the_items() -> None:
    plan = plan_of(ANSWER)
    assert plan is not None
    assert plan.summary == "Move the parser into its own file"
    assert [item.title for item in plan.items] == ["Read parse.py", "Write the tests first", "Move the code"]
    assert plan.status == "planned"
    assert plan.text == ANSWER


def test_answer_without_a_heading_is_summed_up_by_its_first_line() -> None:
    plan = plan_of("\nJust fix it.\nThen rest.\n")
    assert plan is not None
    assert (plan.summary, plan.items) == ("Just fix it.", ())


def test_empty_answer_is_no_plan() -> None:
    assert plan_of(" \n\n") is None
