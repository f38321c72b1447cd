import { describe, expect, test } from "vitest";
import { eventsOf, linesOf, NAMES } from "../../tests/golden";
import { EVENTS } from "./shapes.gen";
import { parseFrame, readEvent } from "./guards";

const DELTA = { type: "text.delta", seq: 7, id: "e", ts: 1, conversation: "c", message: "m", block: 0, text: "x" };

function frame(...lines: unknown[]): string {
  return lines.map((line) => JSON.stringify(line)).join("\n");
}

test("a frame of several lines gives each in order, whatever newline ends it", () => {
  const lines = parseFrame(`${frame({ type: "hello", epoch: "e", version: "1", server: "s" }, DELTA)}\n`);
  expect(lines).toMatchObject([
    { kind: "control", line: { type: "hello" } },
    { kind: "event", event: { type: "text.delta", seq: 7 } },
  ]);
});

test("an unknown type is kept as opaque with its place", () => {
  const [line] = parseFrame(frame({ type: "weather.changed", seq: 9, id: "e9", ts: 5, conversation: "c", sun: true }));
  expect(line).toMatchObject({ kind: "event", event: { type: "opaque", of: "weather.changed", seq: 9, ts: 5 } });
});

test("a known type with a field that cannot be read is opaque", () => {
  expect(readEvent({ ...DELTA, block: "first" })).toMatchObject({ type: "opaque", of: "text.delta" });
  expect(readEvent({ ...DELTA, text: undefined })).toMatchObject({ type: "opaque" });
  const { text: _, ...incomplete } = DELTA;
  expect(readEvent(incomplete)).toMatchObject({ type: "opaque" });
  expect(readEvent({ type: "turn.status", seq: 1, conversation: "c", status: "dreaming" })).toMatchObject({ type: "opaque" });
});

test("a known type with fields from a newer release is read", () => {
  expect(readEvent({ ...DELTA, mood: "fine" })).toMatchObject({ type: "text.delta", text: "x" });
});

test("parts of an event hold every field the view has, and none it has not", () => {
  const event = readEvent({
    type: "turn.started",
    seq: 1,
    conversation: "c",
    agent: "a",
    backend: "b",
    trigger: { kind: "message", later: 1 },
    origin: { client: null, user: "ada" },
  });
  expect(event).toMatchObject({
    id: "",
    ts: 0,
    trigger: { kind: "message", messages: [], request: null, exchange: null, hops: 0 },
  });
  expect(event).toHaveProperty("trigger");
  expect((event as { trigger: object }).trigger).not.toHaveProperty("later");
  // What is not a view leaves its defaults out.
  expect((event as { origin: object }).origin).toStrictEqual({ user: "ada" });
});

describe("never a crash on", () => {
  test.each([
    "",
    "\n\n",
    "not json",
    "null",
    "7",
    "[]",
    "{}",
    '{"type":7}',
    '{"type":"text.delta"}',
    '{"type":"text.delta","seq":"1","conversation":"c"}',
    '{"type":"__proto__","seq":1,"conversation":"c"}',
    '{"type":"constructor","seq":1,"conversation":"c"}',
    '{"type":"snapshot"}',
    '{"type":"listed","items":7}',
    '{"type":"unknown_control"}',
    `{"type":"message.added","seq":1,"conversation":"c","message":"m","content":[{"type":"hologram"}]}`,
    `{"type":"message.added","seq":1,"conversation":"c","message":"m","content":[{"type":"TextPart"}]}`,
    `${"[".repeat(5_000)}`,
  ])("%s", (text) => {
    for (const line of parseFrame(text)) expect(line.kind === "event" && line.event.type).toBe("opaque");
  });
});

test("a half-written line does not hide the whole ones beside it", () => {
  expect(parseFrame(`{"type":"text.del\n${frame(DELTA)}`)).toHaveLength(1);
});

test("golden logs are read without a loss, and only what is strange becomes opaque", () => {
  const known = new Set<string>();
  for (const name of NAMES) {
    const events = eventsOf(name);
    expect(events).toHaveLength(linesOf(name).length);
    for (const event of events) known.add(event.type);
  }
  expect([...known].sort()).toEqual([...Object.keys(EVENTS), "opaque"].sort());
});
