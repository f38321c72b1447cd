"""The pictures of the documentation: a conversation that could have been, with a real server, real files and a scripted model.

The conversation is played by every run; pictures are made when PALAVER_SCREENSHOTS names a folder for them.
"""

import re

from playwright.async_api import expect

from tests.browser.looks import SCHEMES, picture
from tests.browser.served import Palaver
from tests.browser.visitor import PHONE, Visitor, Visitors
from tests.provider.script import Answer, Call, Say, Think
from tests.provider.server import ScriptedProvider

TIDE = '''\
"""When the tide turns, roughly."""

DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
MOON_DAY_MIN = 50


def day_of_year(month: int, day: int) -> int:
    return sum(DAYS[: month - 1]) + day


def delay_min(year: int, month: int, day: int) -> int:
    """How much later than on New Year's Day high water comes."""
    return day_of_year(month, day) * MOON_DAY_MIN % 1440
'''

TEST = """\
import unittest

from tide import delay_min


class Tide(unittest.TestCase):
    def test_march_knows_about_leap_years(self) -> None:
        self.assertEqual(delay_min(2028, 3, 1), 61 * 50 % 1440)


if __name__ == "__main__":
    unittest.main()
"""

OLD = "def day_of_year(month: int, day: int) -> int:\n    return sum(DAYS[: month - 1]) + day\n"
NEW = """def day_of_year(year: int, month: int, day: int) -> int:
    leap = month > 2 and calendar.isleap(year)
    return sum(DAYS[: month - 1]) + day + leap
"""

FOUND = """The table counts days with a fixed list of month lengths, so every date after February is \
**one day early in a leap year**, and the tide with it.

| date | counted as | should be | tide off by |
|---|--:|--:|--:|
| 28 Feb 2028 | 59 | 59 | none |
| 1 Mar 2028 | 60 | 61 | 50 min |
| 31 Dec 2028 | 365 | 366 | 50 min |

`day_of_year` never sees the year. I give it one:
"""

DONE = """Fixed. `day_of_year` now takes the year and adds the leap day, and the test that failed passes:

```python
leap = month > 2 and calendar.isleap(year)
```

Nothing else calls it, so no other table changes.
"""

SCRIPT = (
    Answer.of(
        Think(text="Off by one after February smells of leap years. The code first, then the test."),
        Say(text="I look at how the table is made."),
        Call(name="list", input={"path": "."}),
        Call(name="read", input={"path": "tide.py"}),
        Call(name="grep", input={"pattern": "day_of_year"}),
        chunk_chars=400,
    ),
    Answer.of(Say(text=FOUND), Call(name="edit", input={"path": "tide.py", "old": OLD, "new": NEW}), chunk_chars=400),
    Answer.of(
        Call(
            name="edit",
            input={
                "path": "tide.py",
                "old": "return day_of_year(month, day)",
                "new": "return day_of_year(year, month, day)",
            },
        ),
        Call(name="edit", input={"path": "tide.py", "old": "\nDAYS", "new": "\nimport calendar\n\nDAYS"}),
    ),
    Answer.of(Call(name="shell", input={"command": "python3 -m unittest -v test_tide"})),
    Answer.of(Say(text=DONE), chunk_chars=400),
)


async def test_pictures_of_a_conversation(visitors: Visitors, palaver: Palaver, provider: ScriptedProvider) -> None:
    project = palaver.folder / "harbour" / "tides"
    project.mkdir(parents=True)
    (project / "tide.py").write_text(TIDE)
    (project / "test_tide.py").write_text(TEST)
    ada = await visitors.owner(palaver.url, palaver.token)
    for earlier in ("Rename the harbour pages", "Which buoys have no light?", "Sum up last week's log"):
        await ada.begin(earlier)
        await ada.rests()

    provider.script.extend(SCRIPT)
    await ada.go()
    await ada.page.get_by_role("combobox", name="Folder").fill(str(project))
    await ada.send("The tide table is an hour off since March. Why?")
    await ada.asked()
    await expect(ada.approval).to_contain_text("calendar.isleap")
    await taken(ada, visitors, palaver, "approval")

    await ada.press("Alt+2")
    await expect(ada.approval.locator("form :focus")).to_have_count(1)
    await ada.press("Enter")
    await expect(ada.approval.get_by_label("Exactly what will run")).to_contain_text("unittest")
    await taken(ada, visitors, palaver, "command")
    await ada.asked()
    await ada.press("Alt+1")
    await expect(ada.log).to_contain_text("no other table changes")
    await ada.rests()
    await ada.unfold()
    await ada.row(re.compile("^Tool: Ran python3")).get_by_role("button").first.press("Enter")
    await expect(ada.log).to_contain_text("OK")
    await ada.log.hover()
    await ada.page.mouse.wheel(0, 10_000)
    await expect(ada.log.get_by_text("no other table changes")).to_be_in_viewport()
    await ada.box.focus()
    await taken(ada, visitors, palaver, "conversation")


async def taken(ada: Visitor, visitors: Visitors, palaver: Palaver, name: str) -> None:
    for scheme in SCHEMES:
        await picture(ada.page, f"{name}-{scheme}", scheme)
    phone = await visitors.owner(
        palaver.url, palaver.token, PHONE, device_scale_factor=2, has_touch=True, is_mobile=True
    )
    await phone.open(ada.conversation)
    await expect(phone.log.get_by_role("article").last).to_be_visible()
    if await ada.approval.count():
        await phone.asked()
    await picture(phone.page, f"{name}-phone")
    await phone.page.close()
