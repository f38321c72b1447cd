"""All shots, in the order in which the gallery shows them."""

from tests.browser.gallery import asking, places, talking
from tests.browser.gallery.shots import SHOTS, Shot

SECTIONS = (
    places.IN,
    talking.TALK,
    talking.TOOLS,
    asking.ASKS,
    asking.QUEUE,
    asking.TEAM,
    talking.ENDS,
    places.LISTS,
    places.CHOICES,
    places.BESIDE,
)

ALBUM: dict[str, Shot] = {shot.name: shot for section in SECTIONS for shot in SHOTS.values() if shot.section == section}
assert len(ALBUM) == len(SHOTS), "a shot is in a section that the album does not have"
