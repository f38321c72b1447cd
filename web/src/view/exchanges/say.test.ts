import { expect, test } from "vitest";
import type { Exchange, Message, QueueItem, ToolBlock } from "../../protocol/events.gen";
import { answerIn, callbackOf, callOf, contentOf, outcomeOf, sayNone, sayQueued, sayStatus } from "./say";

const SENT: Exchange = {
  id: "x",
  agent: "reviewer",
  conversation: "c2",
  status: "sent",
  direction: "out",
  mode: "sync",
  call: "x",
  callback: false,
  hops: 1,
  started_at: 1,
  finished_at: null,
  tool_call_count: null,
};

const block = (fields: Partial<ToolBlock>): ToolBlock => ({ type: "tool", call: "x", input: {}, output: "", ...fields }) as ToolBlock;
const message = (fields: Partial<Message>): Message => ({ id: "m", blocks: [], exchange: null, event_kind: null, ...fields }) as Message;
const queued = (fields: Partial<QueueItem>): QueueItem => ({ trigger: "message", origin: null, ...fields }) as QueueItem;

test("every state of an exchange has its words", () => {
  const say = (status: Exchange["status"], mode: Exchange["mode"] = "sync") => sayStatus({ ...SENT, status, mode });
  expect([say("sent"), say("started"), say("started", "async"), say("queued")]).toEqual([
    "sent",
    "waiting for its answer",
    "at work on it",
    "queued: it is busy",
  ]);
  expect([say("timeout"), say("complete"), say("failed"), say("cancelled")]).toEqual([
    "timed out: it goes on",
    "answered",
    "failed",
    "stopped",
  ]);
});

test("where there is no answer, it is said why, and where it will be", () => {
  expect(sayNone(SENT)).toBe("The answer is still to come.");
  expect(sayNone({ ...SENT, status: "queued", callback: true })).toContain("further down");
  expect(sayNone({ ...SENT, status: "timeout" })).toContain("its own conversation");
  expect(sayNone({ ...SENT, status: "failed" })).toBe("");
});

test("a result is read as far as it can be", () => {
  const output = JSON.stringify({ status: "complete", response: "Yes.", durationMs: 1200, toolCallCount: 3 });
  expect(outcomeOf(block({ output }))).toEqual({ response: "Yes.", durationMs: 1200, toolCallCount: 3 });
  for (const odd of ["", "Yes.", "null", "[]", '{"durationMs":"long"}']) {
    expect(outcomeOf(block({ output: odd }))).toEqual({ response: null, durationMs: null, toolCallCount: null });
  }
  expect([contentOf(block({ input: { agentId: "a", content: "Hi" } })), contentOf(block({ input: "odd" }))]).toEqual(["Hi", ""]);
});

test("both ends of an exchange are found, and an answer is shown without its address", () => {
  const asked = message({ id: "m1", blocks: [block({})] });
  const answer = message({ id: "m2", exchange: "x", event_kind: "agent_callback" });
  const messages = [asked, message({ id: "m3", exchange: "x" }), answer];
  expect([callOf(messages, "x")?.id, callbackOf(messages, "x")?.id, callbackOf(messages, "y")]).toEqual(["m1", "m2", undefined]);
  expect(answerIn("reviewer answered:\n\nFine.\n\nIt answered:\n\nno")).toBe("Fine.\n\nIt answered:\n\nno");
  expect(answerIn("Fine.")).toBe("Fine.");
});

test("what no person queued says whose it is", () => {
  const name = (agent: string) => agent.toUpperCase();
  expect(sayQueued(queued({}), name)).toBe(null);
  expect(sayQueued(queued({ trigger: "idle" }), name)).toBe("Idle prompt");
  expect(sayQueued(queued({ origin: { agent: "ann" } }), name)).toBe("Message of ANN");
  expect(sayQueued(queued({ trigger: "callback", origin: { agent: "ann" } }), name)).toBe("Answer of ANN");
  expect(sayQueued(queued({ trigger: "callback" }), name)).toBe("Answer");
});
