"""What an answer cites: the same sources as on the page (`web/src/model/citations.test.ts`)."""

from palaver.tui.transcript.citations import Source, sources_of

ADDRESS = "https://tides.example/spring"
PAGE = {"type": "web_search_result_location", "url": ADDRESS, "title": "Spring tides", "cited_text": "Twice a month. "}


def test_a_source_is_listed_once_with_all_that_was_cited_from_it() -> None:
    again = {**PAGE, "cited_text": "After new and full moon."}
    listed = Source("Spring tides", ADDRESS, ("Twice a month.", "After new and full moon."))
    assert sources_of([PAGE, again, PAGE]) == [listed]


def test_each_provider_s_fields_are_understood() -> None:
    assert sources_of([{"url_citation": {"url": ADDRESS}}]) == [Source(ADDRESS, ADDRESS, ())]
    book = {"type": "page_location", "document_title": "Almanac", "cited_text": "p. 4"}
    assert sources_of([book]) == [Source("Almanac", None, ("p. 4",))]


def test_what_is_no_address_is_not_one_and_what_has_no_name_is_left_out() -> None:
    assert sources_of([{"url": "javascript:alert(1)", "title": "Trap"}]) == [Source("Trap", None, ())]
    assert sources_of([None, 3, "x", {}, {"cited_text": "by nobody"}]) == []
