import { expect, test } from "vitest";
import type { State } from "../protocol/events.gen";
import { type AnyEvent, readEvent } from "../protocol/guards";
import { Announcer } from "./announce";
import { EMPTY_STATE, fold } from "./fold";

class Talk {
  state: State = EMPTY_STATE;
  now = 0;
  readonly announcer: Announcer;

  constructor(options: { sentences?: boolean } = {}) {
    this.announcer = new Announcer(options);
    this.announcer.say(this.state, 0);
  }

  hear(...events: object[]): readonly object[] {
    const read = events.map(
      (event, at) =>
        readEvent({ seq: this.state.seq + at + 1, ts: this.now, conversation: "c", turn: "t", ...event }) as AnyEvent,
    );
    this.state = fold(this.state, read);
    return this.announcer.say(this.state, this.now);
  }
}

const STARTED = { type: "turn.started", agent: "ada", backend: "b", trigger: { kind: "message" } };
const ANSWER = { type: "answer.started", message: "m" };
const delta = (text: string) => ({ type: "text.delta", message: "m", block: 0, text });

test("a turn's start, what it asks and its end are said once each", () => {
  const talk = new Talk();
  expect(talk.hear(STARTED)).toEqual([{ kind: "turn_started", agent: "ada" }]);
  expect(talk.hear({ type: "turn.status", status: "thinking" })).toEqual([]);
  const asked = { type: "request.opened", request: "r", kind: "approval", tool: "shell", title: "Run make" };
  expect(talk.hear(asked)).toEqual([{ kind: "request_opened", request: "approval", title: "Run make", tool: "shell" }]);
  expect(talk.hear({ type: "request.resolved", request: "r", status: "answered" })).toEqual([]);
  expect(talk.hear({ type: "turn.finished", outcome: "completed", duration_ms: 7 })).toEqual([
    { kind: "turn_ended", outcome: "completed", durationMs: 7 },
  ]);
});

test("only finished sentences are said, and at most every two seconds", () => {
  const talk = new Talk();
  talk.hear(STARTED, ANSWER);
  expect(talk.hear(delta("Hel"))).toEqual([]);
  expect(talk.hear(delta("lo there. How"))).toEqual([{ kind: "text", text: "Hello there." }]);
  talk.now = 500;
  expect(talk.hear(delta(" are you? Fine. And"))).toEqual([]);
  expect(talk.announcer.nextAt).toBe(2_000);
  talk.now = 2_000;
  expect(talk.announcer.say(talk.state, talk.now)).toEqual([{ kind: "text", text: "How are you? Fine." }]);
  expect(talk.announcer.nextAt).toBeNull();
});

test("3.14 and file.py end no sentence", () => {
  const talk = new Talk();
  talk.hear(STARTED, ANSWER);
  expect(talk.hear(delta("Pi is 3.14 in file.py"))).toEqual([]);
});

test("the rest is said when the answer ends, before the end of the turn", () => {
  const talk = new Talk();
  talk.hear(STARTED, ANSWER, delta("no end"));
  const end = [
    { type: "answer.finished", message: "m", finish_reason: "stop" },
    { type: "turn.finished", outcome: "completed" },
  ];
  expect(talk.hear(...end)).toMatchObject([{ kind: "text", text: "no end" }, { kind: "turn_ended" }]);
});

test("markdown's marks are not read out", () => {
  const talk = new Talk();
  talk.hear(STARTED, ANSWER);
  expect(talk.hear(delta("## **Bold** `code` and [a link](https://x.example)\n"))).toEqual([
    { kind: "text", text: "Bold code and a link" },
  ]);
});

test("what was there before is not said", () => {
  const talk = new Talk();
  talk.hear(STARTED, ANSWER, delta("Old news. "));
  const late = new Announcer();
  expect(late.say(talk.state, 0)).toEqual([]);
  talk.hear(delta("New. "));
  expect(late.say(talk.state, 10)).toEqual([{ kind: "text", text: "New." }]);
});

test("without sentences only starts, requests and ends are said", () => {
  const talk = new Talk({ sentences: false });
  expect(talk.hear(STARTED, ANSWER, delta("Hello. "))).toEqual([{ kind: "turn_started", agent: "ada" }]);
});
