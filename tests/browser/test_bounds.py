"""Too much: refused in words, before and by the server, and the conversation goes on."""

from playwright.async_api import expect

from tests.browser.visitor import Visitor

TWO_MB = 2 << 20


async def test_message_of_two_megabytes_is_refused_in_words_and_the_conversation_works(ada: Visitor) -> None:
    await ada.begin("Before the flood")
    await ada.rests()
    before = await ada.read()
    await ada.box.fill("x" * TWO_MB)
    notice = ada.page.get_by_role("status").filter(has_text="A message may hold 1 MB; this one holds 2.0 MB")
    await expect(notice).to_be_visible()
    await expect(ada.page.get_by_role("button", name="Send")).to_be_disabled()
    await ada.box.press("Enter")
    await ada.box.press("Control+Enter")
    await expect(notice).to_be_visible()
    await ada.reads(before)

    await ada.send("After the flood")
    await expect(ada.log).to_contain_text("You said: After the flood")
    await expect(notice).to_have_count(0)


async def test_server_refuses_two_megabytes_in_words_and_the_conversation_works(ada: Visitor) -> None:
    conversation = await ada.begin("Before the refusal")
    await ada.rests()
    answer = await ada.request.post(
        f"{ada.url}/api/conversations/{conversation}/commands",
        data={"type": "send_message", "content": "x" * TWO_MB},
    )
    assert answer.status == 413
    refusal = await answer.json()
    assert refusal["code"] == "too_large"
    assert len(refusal["message"].split()) > 3
    await ada.send("After the refusal")
    await expect(ada.log).to_contain_text("You said: After the refusal")
