import { expect, test } from "vitest";
import { listing } from "../../tests/world";
import type { Listing } from "../protocol/events.gen";
import { Ends } from "./happened";

function rows(...items: Listing[]): ReadonlyMap<string, Listing> {
  return new Map(items.map((item) => [item.id, item]));
}

test("what rested before it was looked at is no news", () => {
  const ends = new Ends();
  expect(ends.take(rows(listing("a"), listing("b", { turn: "t" })))).toEqual([]);
  expect(ends.take(rows(listing("a"), listing("b", { turn: "t" })))).toEqual([]);
});

test("a turn that came to its end is told once, and whether it failed", () => {
  const ends = new Ends();
  ends.take(rows(listing("a", { turn: "t" }), listing("b", { turn: "u" })));
  const after = rows(listing("a", { title: "Moss", last_line: "It grows." }), listing("b", { status: "error" }));
  expect(ends.take(after)).toEqual([
    { key: "a:t", kind: "done", conversation: "a", title: "Moss", agent: "default", lastLine: "It grows." },
    { key: "b:u", kind: "failed", conversation: "b", title: "b", agent: "default", lastLine: "" },
  ]);
  expect(ends.take(after)).toEqual([]);
});

test("who goes on, waits for a person, works for another or is gone has not come to an end", () => {
  const ends = new Ends();
  const running = { turn: "t" };
  ends.take(rows(listing("next", running), listing("asks", running), listing("child", { ...running, parent_kind: "subagent" }), listing("gone", running)));
  const after = rows(listing("next", { turn: "t2" }), listing("asks", { open_requests: 1 }), listing("child", { parent_kind: "subagent" }));
  expect(ends.take(after)).toEqual([]);
});
