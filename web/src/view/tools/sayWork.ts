/** The work of a turn in words: what was done, by the kinds of its calls, and how many of them did not end well. Pure. */

import type { TurnWorkRow } from "../../model/rows";
import { kindOf } from "../../model/toolkind";
import type { ToolBlock } from "../../protocol/events.gen";
import { duration } from "../../measures";
import { text } from "../../text";
import { work } from "../../text.work";
import { argument, isOpen, isUnanswered } from "./say";

const { turn } = work;

export interface SaidWork {
  /** "Read 3 files, edited 1 file, ran 2 commands". */
  what: string;
  /** "7 tool calls · 12 s". */
  size: string;
  /** "1 failed · 1 interrupted"; empty when all went well. */
  trouble: string;
}

export function sayWork({ calls, live, durationMs }: TurnWorkRow): SaidWork {
  const failed = calls.filter((call) => call.status === "error" && !isUnanswered(call)).length;
  const denied = calls.filter((call) => call.status === "denied" && !isUnanswered(call)).length;
  const interrupted = calls.filter((call) => call.status === "interrupted").length;
  const waiting = calls.filter((call) => call.status === "waiting").length;
  const open = calls.filter(isOpen).length - waiting;
  const done = deedsOf(calls).join(", ");
  return {
    what: live ? turn.working(done) : turn.worked(done),
    size: text.join(turn.calls(calls.length), durationMs !== null && duration(durationMs)),
    trouble: text.join(
      failed > 0 && turn.failed(failed),
      denied > 0 && turn.denied(denied),
      interrupted > 0 && turn.interrupted(interrupted),
      waiting > 0 && turn.waiting(waiting),
      // While the turn runs that is what it does.
      !live && open > 0 && turn.open(open),
    ),
  };
}

/** What was begun, each kind once: distinct files, all commands. */
function deedsOf(calls: readonly ToolBlock[]): string[] {
  const read = new Set<string>();
  const edited = new Set<string>();
  const counts = { ran: 0, searched: 0, listed: 0, fetched: 0, planned: 0, asked: 0, delegated: 0, wrote: 0, others: 0 };
  for (const call of calls) {
    if (call.status === "denied" || (call.started_at === null && call.status !== "ok")) continue;
    switch (kindOf(call.name)) {
      case "read":
        read.add(argument(call.input, "path", "file_path", "filename", "file", "notebook_path") ?? call.call);
        break;
      case "edit":
      case "write":
      case "patch":
        for (const path of pathsOf(call)) edited.add(path);
        break;
      case "shell":
        counts.ran += 1;
        break;
      case "glob":
      case "grep":
      case "search":
        counts.searched += 1;
        break;
      case "list":
        counts.listed += 1;
        break;
      case "fetch":
        counts.fetched += 1;
        break;
      case "plan":
        counts.planned += 1;
        break;
      case "ask":
        counts.asked += 1;
        break;
      case "task":
        counts.delegated += 1;
        break;
      case "message":
        counts.wrote += 1;
        break;
      case "yield":
      case "finish":
        break;
      case "other":
        counts.others += 1;
        break;
    }
  }
  const said: (string | false)[] = [
    read.size > 0 && turn.read(read.size),
    counts.searched > 0 && turn.searched(counts.searched),
    counts.listed > 0 && turn.listed(counts.listed),
    counts.fetched > 0 && turn.fetched(counts.fetched),
    edited.size > 0 && turn.edited(edited.size),
    counts.ran > 0 && turn.ran(counts.ran),
    counts.planned > 0 && turn.planned,
    counts.asked > 0 && turn.asked(counts.asked),
    counts.delegated > 0 && turn.delegated(counts.delegated),
    counts.wrote > 0 && turn.wrote(counts.wrote),
    counts.others > 0 && turn.others(counts.others),
  ];
  return said.filter((one) => one !== false);
}

/** Of a call that told what it changed those files, else the one it was asked to change. */
function pathsOf(call: ToolBlock): string[] {
  if (call.changes.length > 0) return call.changes.map(({ path }) => path);
  return call.status === "ok" ? [argument(call.input, "path", "file_path", "notebook_path") ?? call.call] : [];
}
