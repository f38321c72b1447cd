import { expect, test } from "vitest";
import { isCommand, piecesOf } from "./pieces";

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
