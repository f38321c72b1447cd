import { expect, test } from "vitest";
import { ApiError } from "../../transport/api";
import type { ProcessEntry } from "../../transport/api.later";
import { keyOf, refusalOf, stateOf } from "./say";

const PROGRAM: ProcessEntry = {
  kind: "program",
  conversation: "c1",
  title: "Tides",
  agent: "claude",
  backend: "claude",
  pid: 42,
  command: "claude",
  started_at: 1000,
  busy: false,
  idle_s: 3,
};

function refused(status: number, message = "Stop its turn first."): string {
  return refusalOf(new ApiError(status, { code: "x", message }));
}

test("a refusal to end says what to do", () => {
  expect(refused(409)).toBe("Stop its turn first.");
  expect(refused(409, "")).toBe("A turn runs in it. Stop the turn first, then end it.");
  expect(refused(404)).toBe("It had already ended.");
  expect(refused(403)).toContain("fewer rights");
  expect(refused(0, "The server did not answer.")).toBe("It could not be ended. The server did not answer.");
});

test("a process stays itself while its state changes, and a later one with its number is another", () => {
  expect(keyOf({ ...PROGRAM, busy: true, idle_s: 0 })).toBe(keyOf(PROGRAM));
  expect(keyOf({ ...PROGRAM, started_at: 2000 })).not.toBe(keyOf(PROGRAM));
  expect(keyOf({ ...PROGRAM, pid: null })).not.toBe(keyOf({ ...PROGRAM, pid: null, conversation: "c2" }));
});

test("a program works or rests, a command in the background only runs", () => {
  const states = [PROGRAM, { ...PROGRAM, busy: true }, { ...PROGRAM, kind: "background" as const, busy: true }].map(stateOf);
  expect(states).toEqual(["idle for 3 s", "working", "in the background"]);
});
