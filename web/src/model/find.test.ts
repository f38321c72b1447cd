import { expect, test } from "vitest";
import { eventsOf } from "../../tests/golden";
import type { Message } from "../protocol/events.gen";
import { type AnyEvent, readEvent } from "../protocol/guards";
import { EMPTY_STATE, fold } from "./fold";
import { RowBook } from "./rowbook";
import { findInMessages, piecesOf } from "./find";

function messages(...events: object[]): Message[] {
  const read = events.map((event, at) => readEvent({ seq: at + 1, conversation: "c", ...event }) as AnyEvent);
  return fold(EMPTY_STATE, read).messages;
}

const said = (message: string, text: string) => ({ type: "message.added", message, content: [{ type: "text", text }] });

test("hits come in order with what stands around them", () => {
  const hits = findInMessages(messages(said("a", "one two one"), said("b", "three One")), "one");
  expect(hits).toEqual([
    { messageId: "a", seq: 1, rowKey: "a", before: "", match: "one", after: " two one" },
    { messageId: "a", seq: 1, rowKey: "a", before: "one two ", match: "one", after: "" },
    { messageId: "b", seq: 2, rowKey: "b", before: "three ", match: "One", after: "" },
  ]);
});

test("a capital in the query asks for capitals, and signs mean themselves", () => {
  const talk = messages(said("a", "One one a.b (x) axb"));
  expect(findInMessages(talk, "One")).toHaveLength(1);
  expect(findInMessages(talk, "a.b")).toHaveLength(1);
  expect(findInMessages(talk, "(x)")).toHaveLength(1);
  expect(findInMessages(talk, "")).toEqual([]);
});

test("what tools were given and gave is found under their row", () => {
  const talk = messages(
    { type: "answer.started", message: "m" },
    { type: "tool.called", message: "m", block: 2, call: "k", name: "shell", input: { command: "make needle" } },
    { type: "tool.finished", call: "k", ok: true, output: "a needle in a haystack" },
  );
  expect(findInMessages(talk, "needle").map((hit) => hit.rowKey)).toEqual(["m:2", "m:2"]);
});

test("hidden and replaced messages hold no hits, and there is an end to them", () => {
  expect(findInMessages(messages({ ...said("a", "x"), hidden: true }), "x")).toEqual([]);
  expect(findInMessages(messages(said("a", "x".repeat(50))), "x", 7)).toHaveLength(7);
});

test("every hit in a golden log leads to a row", () => {
  const state = fold(EMPTY_STATE, eventsOf("long"));
  const keys = new Set<string>();
  for (const row of new RowBook(() => 0).rows(state)) {
    keys.add(row.key);
    if (row.kind === "tool_group") for (const member of row.members) keys.add(member.key);
  }
  const hits = findInMessages(state.messages, "e");
  expect(hits.length).toBeGreaterThan(20);
  for (const hit of hits) expect(keys).toContain(hit.rowKey);
});

test("every word of a query is marked, whole or, if it is the last, as a beginning", () => {
  expect(piecesOf("the Tide tables, tidewater and a table", "tide tab")).toEqual(["the ", "Tide", " ", "tables", ", tidewater and a ", "table", ""]);
  expect(piecesOf("a+b costs 3.50 €", "(a+b")).toEqual(["", "a", "+", "b", " costs 3.50 €"]);
  expect(piecesOf("nothing here", "…")).toEqual(["nothing here"]);
  expect(piecesOf("Größe", "größe")).toEqual(["", "Größe", ""]);
});
