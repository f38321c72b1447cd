import { expect, test } from "vitest";
import { FOLLOWING, follow, type Follow, type FollowEvent } from "./follow";

function after(...events: FollowEvent[]): Follow {
  return events.reduce(follow, FOLLOWING);
}

test("it follows its end until the reader scrolls away", () => {
  expect(after({ type: "settled" }, { type: "grew", newRows: 0 })).toEqual({ following: true, newCount: 0, scrollToEnd: true });
  expect(after({ type: "scrolled", atEnd: false }, { type: "grew", newRows: 2 })).toEqual({
    following: false,
    newCount: 2,
    scrollToEnd: false,
  });
});

test("a reader's scroll cancels a scroll to the end that is pending", () => {
  expect(after({ type: "grew", newRows: 1 }, { type: "scrolled", atEnd: false }).scrollToEnd).toBe(false);
});

test("rows that come while reading are counted, growing ones are not", () => {
  const reading = after({ type: "scrolled", atEnd: false }, { type: "grew", newRows: 1 }, { type: "grew", newRows: 0 });
  expect(reading.newCount).toBe(1);
  expect(follow(reading, { type: "grew", newRows: 3 }).newCount).toBe(4);
});

test.each([{ type: "scrolled", atEnd: true }, { type: "jumped_to_end" }, { type: "sent" }] as const)(
  "%o follows again and forgets the count",
  (event) => {
    const reading = after({ type: "jumped_away" }, { type: "grew", newRows: 3 });
    expect(follow(reading, event)).toMatchObject({ following: true, newCount: 0 });
  },
);

test("reaching the end by hand needs no scroll; the pill and sending do", () => {
  expect(after({ type: "scrolled", atEnd: true }).scrollToEnd).toBe(false);
  expect(after({ type: "jumped_away" }, { type: "jumped_to_end" }).scrollToEnd).toBe(true);
});

test("what changes nothing gives the same object", () => {
  const state = after({ type: "settled" });
  expect(follow(state, { type: "settled" })).toBe(state);
  expect(follow(state, { type: "scrolled", atEnd: true })).toBe(state);
});
