/**
 * What happens beside the words of a conversation, in the view: subagents, processes, grants, changed files, as
 * `src/palaver/core/fold/activity.py`. Called by the fold alone. Pure.
 */

import type {
  FileChange,
  FilesChanged,
  Grant,
  GrantAdded,
  GrantRemoved,
  Process,
  ProcessFinished,
  ProcessStarted,
  Subagent,
  SubagentFinished,
  SubagentStarted,
} from "../protocol/events.gen";
import { kindOfBoth } from "./changes";

/** Subagents, grants and changed files that stay in view: each list holds its latest. */
export const KEEP_LATEST = 200;

function latest<Item>(known: readonly Item[], added: Item): Item[] {
  return [...known, added].slice(-KEEP_LATEST);
}

export function subagentStarted(known: readonly Subagent[], event: SubagentStarted): Subagent[] {
  return latest(known, {
    conversation: event.subagent,
    agent: event.agent,
    task: event.task,
    call: event.call ?? null,
    status: "running",
    run: event.run ?? null,
    turn: event.turn ?? null,
    started_at: event.ts,
    finished_at: null,
    cost_usd: null,
  });
}

/** The first end is the end. */
export function subagentEnded(known: readonly Subagent[], event: SubagentFinished): Subagent[] {
  return known.map((child) =>
    child.conversation === event.subagent && child.status === "running"
      ? { ...child, status: event.outcome, finished_at: event.ts, cost_usd: event.cost_usd ?? null }
      : child,
  );
}

export function processStarted(known: readonly Process[], event: ProcessStarted): Process[] {
  const started = {
    id: event.process,
    command: event.command,
    call: event.call ?? null,
    pid: event.pid ?? null,
    turn: event.turn ?? null,
    running: true,
    exit_code: null,
    started_at: event.ts,
    finished_at: null,
    end: null,
  };
  return [...known, started];
}

/** The first end is the end. */
export function processEnded(known: readonly Process[], { process, ts, exit_code = null, end = "exited" }: ProcessFinished): Process[] {
  return known.map((one) => (one.id === process && one.running ? { ...one, running: false, exit_code, finished_at: ts, end } : one));
}

export function granted(known: readonly Grant[], event: GrantAdded): Grant[] {
  const { tool, scope, ts, decision = "allow", match = null, agent = null, request = null } = event;
  return latest(ungranted(known, event), { tool, scope, decision, match, agent, request, ts });
}

export function ungranted(known: readonly Grant[], event: GrantAdded | GrantRemoved): Grant[] {
  return known.filter(({ tool, match }) => tool !== event.tool || match !== (event.match ?? null));
}

/** What became of each path, last changed last. A call tells of its own change alone, and shows the diff itself; what is
 * told without a call is all that there is to tell of a file. */
export function filesChanged(known: readonly FileChange[], event: FilesChanged): FileChange[] {
  const files = new Map(known.map((file) => [file.path, file]));
  for (const file of event.files) {
    const before = files.get(file.path);
    files.delete(file.path);
    files.set(file.path, event.call ? withEarlier(before, file) : file);
  }
  return [...files.values()].slice(-KEEP_LATEST);
}

function withEarlier(before: FileChange | undefined, change: FileChange): FileChange {
  if (before === undefined) return { ...change, diff: null };
  return {
    ...change,
    kind: kindOfBoth(before.kind, change.kind),
    additions: before.additions + change.additions,
    deletions: before.deletions + change.deletions,
    diff: null,
  };
}
