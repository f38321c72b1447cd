import { expect, test } from "vitest";
import type { State } from "../protocol/events.gen";
import { Aloud, Sentences } from "./aloud";
import { EMPTY_STATE } from "./fold";

function spoken(...pieces: string[]): string[] {
  const sentences = new Sentences();
  return [...pieces.flatMap((piece) => sentences.add(piece)), ...sentences.end()];
}

test("a sentence is said when it has ended, and the rest at the end", () => {
  expect(spoken("Hello the", "re. How are", " you? I am", " fine")).toEqual(["Hello there.", "How are you?", "I am fine"]);
});

test("a number and a name with a point are not torn", () => {
  expect(spoken("Version 3.11 of a.txt is out. ")).toEqual(["Version 3.11 of a.txt is out."]);
});

test("marks, addresses and code are not said, wherever the text is split", () => {
  const text = "# A heading\n- **Bold** [words](https://a.org).\n```python\nprint('no')\n```\nAfter it.\n";
  expect(spoken(...text)).toEqual(["A heading", "Bold words.", "After it."]);
});

test("a sentence without an end is cut at a space", () => {
  const said = spoken("word ".repeat(200));
  expect(said.every((one) => one.length <= 400)).toBe(true);
  expect(said.join(" ").split(" ")).toHaveLength(200);
});

function state(text: string, { running = true, outcome = "completed" } = {}): State {
  const status = running ? "streaming" : "done";
  const block = { type: "text", index: 0, text, status };
  const message = { id: "m", role: "assistant", turn: "t", status, blocks: [block] };
  const last_turn = running ? null : { id: "t", outcome };
  return { ...EMPTY_STATE, messages: [message], turn: running ? { id: "t" } : null, last_turn } as unknown as State;
}

test("only what comes after it was switched on is read, to the end of the turn", () => {
  const aloud = new Aloud();
  expect(aloud.hear(state("Before. ")).say).toEqual([]);
  expect(aloud.hear(state("Before. Now this. And")).say).toEqual(["Now this."]);
  expect(aloud.hear(state("Before. Now this. And", { running: true })).say).toEqual([]);
  expect(aloud.hear(state("Before. Now this. And more", { running: false }))).toEqual({ say: ["And more"], hush: false });
  expect(aloud.hear(state("Before. Now this. And more", { running: false })).say).toEqual([]);
});

test("a stop ends the reading", () => {
  const aloud = new Aloud();
  aloud.hear(state(""));
  expect(aloud.hear(state("One. Tw")).say).toEqual(["One."]);
  expect(aloud.hear(state("One. Tw", { running: false, outcome: "interrupted" }))).toEqual({ say: [], hush: true });
});

test("a turn that began and ended between two looks is read", () => {
  const aloud = new Aloud();
  aloud.hear({ ...EMPTY_STATE });
  expect(aloud.hear(state("All at once.", { running: false })).say).toEqual(["All at once."]);
  expect(aloud.hear(state("All at once.", { running: false })).say).toEqual([]);
});
