import { expect, test } from "vitest";
import type { Request } from "../../protocol/events.gen";
import type { WaitingRequest } from "../../protocol/wire";
import { entriesAfter, type Entry } from "./entries";
import { noticeOf, Told } from "./notify";

function item(id: string, ts: number, fields: Partial<Request> = {}): WaitingRequest {
  return { conversation: `c-${id}`, title: "Tides", agent: "a", request: { id, ts, ...fields } as Request };
}

const shownAs = (entries: readonly Entry[]) => entries.map((entry) => `${entry.item.request.id}${entry.over ? " over" : ""}`);

test("the oldest comes first, and what is over stays in its place", () => {
  const [a, b, c] = [item("a", 1), item("b", 2), item("c", 3)];
  const first = entriesAfter([], [b, a]);
  expect(shownAs(first)).toEqual(["a", "b"]);
  expect(shownAs(entriesAfter(first, [b, c]))).toEqual(["a over", "b", "c"]);
  expect(shownAs(entriesAfter(entriesAfter(first, []), [a]))).toEqual(["a", "b over"]);
});

test("of those that are over, only the last are kept", () => {
  const many = Array.from({ length: 9 }, (_, at) => item(`q${at}`, at));
  const after = entriesAfter(entriesAfter([], many), []);
  expect(shownAs(after)).toEqual(["q3 over", "q4 over", "q5 over", "q6 over", "q7 over", "q8 over"]);
});

test("each request is told once, and what was there at first is not news", () => {
  const told = new Told();
  expect(told.fresh([item("a", 1)])).toEqual([]);
  const b = item("b", 2);
  expect(told.fresh([item("a", 1), b])).toEqual([b]);
  expect(told.fresh([b])).toEqual([]);
  expect(told.fresh([item("a", 1), b])).toEqual([]);
});

test("a notice says who waits, for what, and where", () => {
  const approval = item("a", 1, { kind: "approval", title: "Run make", tool: "shell" });
  expect(noticeOf(approval, "Explorer")).toEqual({ title: "Explorer waits for you", body: "Run make · Tides" });
  const question = item("q", 1, { kind: "question", questions: [{ question: "Which one?" }] as Request["questions"] });
  expect(noticeOf(question, "Explorer").body).toBe("Which one? · Tides");
});
