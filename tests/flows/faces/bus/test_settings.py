"""Settings of the whole server: merged, kept, honoured, and never a secret among them."""

from pathlib import Path

from tests.flows.faces.bus.listening import chat, get, is_a, listening, post
from tests.flows.served import serving


async def test_settings_are_merged_and_kept_over_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        before = await get(server, "/api/settings")
        await post(server, "/api/settings", request_timeout_s=60, theme={"dark": True})
        await post(server, "/api/config", knowledge=False, theme={"size": 14})
        cleared = await post(server, "/api/settings", request_timeout_s=None)
        wrong = await server.http.post("/api/settings", json={"request_timeout_s": "soon"})
        unknown = await server.http.post("/api/settings", json={"default_agent": "nobody"})
    async with serving(tmp_path) as again:
        kept = await get(again, "/api/config")
    assert before == {
        "default_agent": "default",
        "default_mode": "ask",
        "default_model": None,
        "request_timeout_s": 0,
        "tool_calls_per_minute": 0,
        "knowledge": True,
    }
    assert cleared == {**before, "knowledge": False, "theme": {"dark": True, "size": 14}}
    assert kept == cleared
    assert (wrong.status_code, unknown.status_code) == (400, 404)


async def test_settings_count_for_whoever_says_nothing_else(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        await post(server, "/api/settings", default_agent="other", default_mode="plan", default_model="larger")
        began = await chat(server, "Hello")
        state = await server.state(began["session_id"])
        own = await server.state(await server.create(agent="default", params={"mode": "ask"}))
    assert (state["agent"], state["params"]) == ("other", {"mode": "plan", "model": "larger"})
    assert (own["agent"], own["params"]) == ("default", {"mode": "ask", "model": "larger"})


async def test_secret_is_not_kept_and_never_leaves(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        body = {
            "api_key": "sk-1",
            "models": [{"id": "m", "apiKey": "sk-2"}],
            "max_tokens": 5,
            "auth": {"token": "sk-3"},
            "api_keys": {"somebody": "sk-4"},
            "provider": {"accessTokens": ["sk-5"], "secrets": {"a": "sk-6"}, "passphrase": "sk-7"},
            "keys": {"send": "Enter"},
        }
        merged = await post(server, "/api/settings", **body)
        shown = await server.http.get("/api/settings")
        human = server.app.config.data / "settings.json"
    assert merged["ignored"] == [
        "api_key",
        "models[0].apiKey",
        "auth.token",
        "api_keys",
        "provider.accessTokens",
        "provider.secrets",
        "provider.passphrase",
    ]
    assert "sk-" not in shown.text + human.read_text()
    assert server.token not in shown.text
    assert (shown.json()["max_tokens"], shown.json()["keys"]) == (5, {"send": "Enter"})


async def test_changed_settings_and_agents_reach_the_bus_whichever_face_changed_them(tmp_path: Path) -> None:
    record = {"id": "helper", "name": "Helper", "backend": "scripted", "systemPrompt": "Help."}
    async with serving(tmp_path, agents_folder=tmp_path / "agents") as server, listening(server) as bus:
        for method, path, body in (
            ("POST", "/api/settings", {"theme": "dark"}),
            ("POST", "/api/agents/create", record),
            ("PUT", "/api/agents/update", {"id": "helper", "name": "Aide"}),
            ("DELETE", "/api/agents/helper", None),
        ):
            changed = await server.http.request(method, path, json=body)
            assert changed.status_code < 300, changed.text
            await bus.until(is_a("run", "sync"))
        # In the order of everything else, and each with a number of its own.
        session = await server.create()
        await bus.until(is_a("run", "sync", session_id=session))
        numbers = [event["seq"] for event in bus.heard]
        async with listening(server, after=numbers[0]) as behind:
            assert await behind.until(lambda event: event == bus.heard[-1]) == bus.heard[1:]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 5
