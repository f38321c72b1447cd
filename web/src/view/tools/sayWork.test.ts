import { expect, test } from "vitest";
import type { TurnWorkRow } from "../../model/rows";
import type { ToolBlock } from "../../protocol/events.gen";
import { sayWork } from "./sayWork";

function call(name: string, fields: Partial<ToolBlock> = {}): ToolBlock {
  return { type: "tool", name, call: name, status: "ok", input: {}, started_at: 1, changes: [], ...fields } as ToolBlock;
}

const row = (calls: ToolBlock[], fields: Partial<TurnWorkRow> = {}) => ({ calls, live: false, durationMs: 12_000, ...fields }) as TurnWorkRow;

test("what was done is said by kind: distinct files, all commands, then the number of calls and the time", () => {
  const calls = [
    ...["a.py", "a.py", "b.py"].map((path) => call("read", { input: { path } })),
    call("edit", { input: { path: "a.py" } }),
    call("shell"),
    call("shell"),
    call("grep"),
  ];
  expect(sayWork(row(calls))).toEqual({
    what: "Read 2 files, searched once, edited 1 file, ran 2 commands",
    size: "7 tool calls · 12 s",
    trouble: "",
  });
});

test("what went wrong is counted, and what never ran is not said to have been done", () => {
  const calls = [
    call("shell", { status: "error" }),
    call("shell", { status: "denied", started_at: null }),
    call("edit", { status: "interrupted", started_at: null }),
  ];
  expect(sayWork(row(calls))).toMatchObject({ what: "Ran 1 command", trouble: "1 failed · 1 denied · 1 interrupted" });
});

test("a running turn says what it does so far, and no time yet", () => {
  expect(sayWork(row([call("shell", { status: "running" })], { live: true, durationMs: null }))).toEqual({
    what: "Working: ran 1 command",
    size: "1 tool call",
    trouble: "",
  });
  expect(sayWork(row([call("shell", { status: "called", started_at: null })], { live: true, durationMs: null })).what).toBe("Working");
});

test("a question that nobody answered is no failure", () => {
  expect(sayWork(row([call("ask_user", { status: "denied" })])).trouble).toBe("");
});
