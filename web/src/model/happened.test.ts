import { expect, test } from "vitest";
import { listing } from "../../tests/world";
import type { Listing } from "../protocol/events.gen";
import { Ends } from "./happened";

function rows(...items: Listing[]): ReadonlyMap<string, Listing> {
  return new Map(items.map((item) => [item.id, item]));
}

test("what rested before it was looked at is no news", () => {
  const ends = new Ends();
  expect(ends.take(rows(listing("a", { last_turn: "s" }), listing("b", { turn: "t" })))).toEqual([]);
  expect(ends.take(rows(listing("a", { last_turn: "s" }), listing("b", { turn: "t" })))).toEqual([]);
});

test("a turn that came to its end is told once, and whether it failed", () => {
  const ends = new Ends();
  ends.take(rows(listing("a", { turn: "t" }), listing("b", { turn: "u", last_turn: "s" })));
  const after = rows(
    listing("a", { title: "Moss", last_line: "It grows.", last_turn: "t" }),
    listing("b", { status: "error", last_turn: "u" }),
  );
  expect(ends.take(after)).toEqual([
    { key: "a:t", kind: "done", conversation: "a", title: "Moss", agent: "default", lastLine: "It grows." },
    { key: "b:u", kind: "failed", conversation: "b", title: "b", agent: "default", lastLine: "" },
  ]);
  expect(ends.take(after)).toEqual([]);
});

test("a turn that began and ended between two looks is told, also that of a new conversation", () => {
  const ends = new Ends();
  ends.take(rows(listing("a", { last_turn: "s", updated_at: 10 })));
  const after = rows(listing("a", { last_turn: "t", updated_at: 12 }), listing("new", { last_turn: "u", created_at: 11, updated_at: 13 }));
  expect(ends.take(after).map(({ key }) => key)).toEqual(["a:t", "new:u"]);
});

test("an older page of the list, and an old conversation that is brought, are no news", () => {
  const ends = new Ends();
  ends.take(rows(listing("a", { last_turn: "s", created_at: 9, updated_at: 10 })));
  const after = rows(listing("a", { last_turn: "s", updated_at: 10 }), listing("old", { last_turn: "u", created_at: 3, updated_at: 12 }));
  expect(ends.take(after)).toEqual([]);
});

test("who goes on, waits for a person, works for another or is gone has not come to an end", () => {
  const ends = new Ends();
  const running = { turn: "t" };
  ends.take(rows(listing("next", running), listing("asks", running), listing("child", { ...running, parent_kind: "subagent" }), listing("gone", running)));
  const over = { last_turn: "t" };
  const after = rows(
    listing("next", { ...over, turn: "t2" }),
    listing("asks", { ...over, open_requests: 1 }),
    listing("child", { ...over, parent_kind: "subagent" }),
  );
  expect(ends.take(after)).toEqual([]);
});
