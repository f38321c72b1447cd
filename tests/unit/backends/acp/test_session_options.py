"""Modes and models are found however an agent tells them."""

from palaver.backends.acp.session_options import Setting, settings_of


def test_modes_and_models_with_methods_of_their_own() -> None:
    said = {
        "modes": {"currentModeId": "default", "availableModes": [{"id": "default"}, {"id": "plan"}, {"odd": 1}]},
        "models": {"currentModelId": "m1", "availableModels": [{"modelId": "m1"}]},
    }
    found = settings_of(said)
    assert found == {"mode": Setting(("default", "plan"), "default"), "model": Setting(("m1",), "m1")}
    assert found["mode"].request("mode", "s", "plan") == ("session/set_mode", {"sessionId": "s", "modeId": "plan"})


def test_options_with_one_method_for_all() -> None:
    grouped = [{"name": "group", "options": [{"value": "a/1"}]}, {"value": "b/2"}]
    said = {
        "configOptions": [
            {"id": "the-model", "category": "model", "type": "select", "currentValue": "a/1", "options": grouped},
            {"id": "effort", "category": "thought_level", "type": "select", "options": []},
            "odd",
        ]
    }
    found = settings_of(said)
    assert found == {"model": Setting(("a/1", "b/2"), "a/1", "the-model")}
    told = {"sessionId": "s", "configId": "the-model", "value": "b/2"}
    assert found["model"].request("model", "s", "b/2") == ("session/set_config_option", told)


def test_nothing_offered_is_nothing_found() -> None:
    assert settings_of({}) == settings_of({"modes": None, "configOptions": 3}) == {}
