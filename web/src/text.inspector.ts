/** The words of the event inspector. */

import { count, number } from "./measures";

const secondFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** To the second: many events share a minute. */
export function clockSeconds(ts: number): string {
  return secondFormat.format(ts);
}

export const inspector = {
  name: "Event inspector",
  lead: (title: string) => `Log of ${title}`,
  back: "Back to the conversation",
  empty: "The event inspector shows the log of one conversation. Open a conversation and choose “Inspect events” from its menu.",
  states: {
    loading: (n: number) => (n === 0 ? "Loading the log …" : `Loading the log, ${count(n, "event")} …`),
    live: "Live",
    paused: (seq: number, head: number) => `Paused at ${number(seq)} of ${number(head)}`,
    lost: (seconds: number) => (seconds > 0 ? `No connection. Trying again in ${seconds} s` : "No connection. Trying again …"),
    full: "This log is longer than a page can hold: its beginning is shown. Export it as JSONL to have all of it.",
  },
  filter: "Type of event",
  all: (n: number) => `All types (${number(n)})`,
  group: (prefix: string) => `All of ${prefix}`,
  typed: (type: string, n: number) => `${type} (${number(n)})`,
  none: "No event of this type so far.",
  log: "Log",
  panes: { log: "Log", transcript: "Transcript", state: "State", event: "Event" },
  showing: "What is shown",
  gap: (first: number, last: number) =>
    first === last ? `Event ${number(first)} is not here: its effect is in what follows.` : `Events ${number(first)} to ${number(last)} are not here one by one: their effect is in what follows.`,
  standsFor: (n: number) => `stands for ${count(n, "event")}`,
  copyShown: "Copy what is listed as JSON lines",
  copyEvent: "Copy this event as JSON",
  copyState: "Copy this state as JSON",
  copied: "Copied",
  slider: "Moment",
  moment: (seq: number, head: number, type: string, when: string) => `Event ${number(seq)} of ${number(head)}, ${type}, ${when}`,
  earlier: "One event earlier",
  later: "One event later",
  goLive: "Follow live",
  hold: "Hold here",
  at: (seq: number) => `At event ${number(seq)}`,
  queued: (n: number) => `${number(n)} queued`,
  requests: (n: number) => (n === 1 ? "1 request open" : `${number(n)} requests open`),
  messages: (n: number) => count(n, "message"),
  nothing: "Nothing was said yet at this moment.",
  noEvent: "Nothing has happened yet.",
  missing: "There is no such conversation",
  failed: "The log could not be loaded",
} as const;
