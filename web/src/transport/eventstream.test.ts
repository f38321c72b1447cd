import { expect, test } from "vitest";
import { EventStreamReader, type LogItem } from "./eventstream";

const STREAM =
  'id: 1\ndata: {"type":"conversation.created","seq":1}\n\n' +
  ": heartbeat\n\n" +
  'event: snapshot\nid: 7\ndata: {"type":"snapshot","seq":7,"state":{}}\n\n' +
  'id: 8\ndata: {"type":"text.delta","seq":8,"text":"a: b"}\n\n' +
  ": caught up at 8\n\n";

const SAID: LogItem[] = [
  { kind: "event", line: '{"type":"conversation.created","seq":1}' },
  { kind: "snapshot", snapshot: { type: "snapshot", seq: 7, state: {} } as never },
  { kind: "event", line: '{"type":"text.delta","seq":8,"text":"a: b"}' },
  { kind: "caught_up", seq: 8 },
];

test("a stream cut in two anywhere says the same", () => {
  for (let at = 0; at <= STREAM.length; at++) {
    const reader = new EventStreamReader();
    expect([...reader.push(STREAM.slice(0, at)), ...reader.push(STREAM.slice(at))]).toEqual(SAID);
  }
});
