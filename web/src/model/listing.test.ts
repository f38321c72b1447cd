import { expect, test } from "vitest";
import { listing, World } from "../../tests/world";
import { grouped, merged } from "./listing";
import { ListBook } from "./listbook";
import { Seen } from "./unread";

const NOW = 1_000_000;

const ALL = { query: "", found: new Set<string>(), asking: new Set<string>(), archived: false, today: 1_000 };

function names(byId: ReadonlyMap<string, ReturnType<typeof listing>>, shown = ALL): Record<string, string[]> {
  return Object.fromEntries(grouped(byId, shown).map(({ name, items }) => [name, items.map((item) => item.id)]));
}

function map(...rows: ReturnType<typeof listing>[]) {
  return merged(new Map(), rows);
}

test("rows stand in the group that says what they want of the reader, newest first", () => {
  const byId = map(
    listing("old", { updated_at: 10 }),
    listing("new", { updated_at: 2_000 }),
    listing("newer", { updated_at: 3_000 }),
    listing("running", { updated_at: 5, turn: "t", status: "generating" }),
    listing("asking", { updated_at: 1, turn: "t", status: "paused", open_requests: 1 }),
    listing("resting question", { updated_at: 2, status: "waiting_user_input" }),
    listing("put away", { updated_at: 9_000, archived: true }),
  );
  expect(names(byId)).toEqual({
    waiting: ["resting question", "asking"],
    active: ["running"],
    today: ["newer", "new"],
    older: ["old"],
  });
  expect(Object.keys(names(byId))).toEqual(["waiting", "active", "today", "older"]);
  expect(names(byId, { ...ALL, archived: true })["today"]).toEqual(["put away", "newer", "new"]);
});

test("the later position wins, whichever arrives first; a deleted row goes and does not come back", () => {
  const known = map(listing("a", { pos: 5, title: "new" }));
  expect(merged(known, [listing("a", { pos: 4, title: "old" })])).toBe(known);
  expect(merged(known, [listing("a", { pos: 6, title: "newest" })]).get("a")?.title).toBe("newest");
  expect(merged(known, [listing("a", { pos: 7, deleted: true })]).has("a")).toBe(false);
  expect(merged(known, [listing("b", { deleted: true })])).toBe(known);
});

test("a filter shows what the words match at hand and what the server found", () => {
  const byId = map(listing("a", { title: "Fix the Roof" }), listing("b", { last_line: "roof fixed" }), listing("c"));
  expect(names(byId, { ...ALL, query: "roof fix" })).toEqual({ older: ["a", "b"] });
  expect(names(byId, { ...ALL, query: "zzz", found: new Set(["c"]) })).toEqual({ older: ["c"] });
});

test("a new device begins with nothing unread, and marks what comes after", () => {
  const world = new World();
  const book = new ListBook(new Seen(world.device));
  book.takeFirstPage({ items: [listing("a", { pos: 7 }), listing("b", { pos: 9, updated_at: NOW })], next_cursor: null, pos: 5 }, NOW);
  expect(book.view(0).unread).toEqual(new Set());
  book.merge([listing("a", { pos: 10, seq: 4, updated_at: NOW + 1 }), listing("new", { pos: 11, updated_at: NOW + 2 })]);
  expect(book.view(0).unread).toEqual(new Set(["a", "new"]));
  book.show("a", 4);
  expect(book.view(0).unread).toEqual(new Set(["new"]));
  book.show(null);
  book.merge([listing("a", { pos: 12, seq: 5 })]);
  expect(book.view(0).unread).toEqual(new Set(["a", "new"]));

  const reloaded = new ListBook(new Seen(world.device));
  reloaded.takeFirstPage({ items: [listing("a", { pos: 12, seq: 4 }), listing("x", { pos: 20, updated_at: NOW + 3 })], next_cursor: null, pos: 5 }, NOW);
  expect(reloaded.view(0).unread).toEqual(new Set(["x"]));
});

test("an old conversation that is brought from elsewhere is not news", () => {
  const book = new ListBook(new Seen(new World().device));
  book.takeFirstPage({ items: [], next_cursor: null, pos: 5 }, NOW);
  book.merge([listing("brought", { pos: 6, updated_at: NOW - 1 }), listing("new", { pos: 7, updated_at: NOW + 1 })]);
  expect(book.view(0).unread).toEqual(new Set(["new"]));
});

test("the next page is asked for once at a time, and never beyond the last", () => {
  const book = new ListBook(new Seen(new World().device));
  book.takeFirstPage({ items: [listing("a")], next_cursor: "c1", pos: 5 }, NOW);
  expect(book.view(0).hasMore).toBe(true);
  expect(book.beginMore()).toBe("c1");
  expect(book.beginMore()).toBeNull();
  expect(book.view(0).loadingMore).toBe(true);
  book.endMore({ items: [listing("b")], next_cursor: null, pos: 5 }, "");
  expect(book.view(0)).toMatchObject({ hasMore: false, loadingMore: false });
  expect(book.beginMore()).toBeNull();
  expect([...book.view(0).byId.keys()]).toEqual(["a", "b"]);
});

test("an answer to a filter that was changed meanwhile filters nothing", () => {
  const book = new ListBook(new Seen(new World().device));
  book.takeFirstPage({ items: [listing("a"), listing("b")], next_cursor: null, pos: 5 }, NOW);
  book.filter("new words");
  book.takeFound({ items: [listing("a")], next_cursor: "more", pos: 5 }, "old words");
  expect(book.view(0)).toMatchObject({ groups: [], hasMore: false });
});

test("a subagent's conversation stands below the one it works for, which waits when it does", () => {
  const below = { parent: "top", parent_kind: "subagent", root: "top" } as const;
  const byId = map(listing("top", { turn: "t" }), listing("child", { ...below, turn: "t2" }));
  expect(names(byId)).toEqual({ active: ["top"] });
  expect(names(byId, { ...ALL, asking: new Set(["top"]) })).toEqual({ waiting: ["top"] });
  expect(names(byId, { ...ALL, query: "x", found: new Set(["child"]) })).toEqual({ active: ["child"] });
});
