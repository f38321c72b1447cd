import { expect, test } from "vitest";
import { isCommand, piecesOf, shownCommand } from "./pieces";

test("what is quoted as code is told from the rest", () => {
  expect(piecesOf("Run `palaver model install tiny`, then `palaver serve`.")).toEqual([
    { text: "Run ", code: false },
    { text: "palaver model install tiny", code: true },
    { text: ", then ", code: false },
    { text: "palaver serve", code: true },
    { text: ".", code: false },
  ]);
  expect(piecesOf("A lone ` stays")).toEqual([{ text: "A lone ` stays", code: false }]);
  expect(piecesOf("")).toEqual([]);
});

test("a command is told from a sentence", () => {
  expect(["npm install -g @earendil-works/pi", "palaver model install tiny", "/opt/bin/codex login"].map(isCommand)).toEqual([true, true, true]);
  const sentences = ["Start pi in a terminal and use /login.", "Install palaver[acp].", "Set OPENAI_API_KEY and start again.", "login", ""];
  expect(sentences.map(isCommand)).toEqual(sentences.map(() => false));
});

test("a command is shown without the long way to its program", () => {
  expect(shownCommand("/home/ada/.local/bin/codex login")).toBe("~/.local/bin/codex login");
  expect(shownCommand("/root/.local/bin/codex login")).toBe("~/.local/bin/codex login");
  expect(shownCommand("/srv/tools/node_modules/@openai/codex/vendor/x86_64/codex/codex login")).toBe("…/codex/codex login");
  expect(shownCommand("/opt/bin/codex login")).toBe("/opt/bin/codex login");
  expect(shownCommand("npm install -g @earendil-works/pi")).toBe("npm install -g @earendil-works/pi");
});
