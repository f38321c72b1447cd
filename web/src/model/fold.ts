/**
 * `fold(state, events) → state`: the view of a conversation from its log, as `src/palaver/core/evolve.py` says it.
 *
 * `tests/golden` holds both to the same answers. Pure, no DOM; called by the store once a batch. The message array is
 * copied once a batch and only changed messages are replaced: a message (and a block) that did not change keeps its
 * identity, which is what the view's memory keys on. Must never fail on an event: what it cannot place, it skips.
 */

import type {
  AnswerFinished,
  Block,
  ContextCompressed,
  ConversationUpdated,
  FileChange,
  FilesChanged,
  Grant,
  GrantAdded,
  GrantRemoved,
  Message,
  MessageRemoved,
  MessageTruncated,
  Process,
  ProcessFinished,
  RequestOpened,
  RequestResolved,
  State,
  ToolBlock,
  TurnFinished,
  TurnInterrupted,
  TurnSummary,
  Usage,
} from "../protocol/events.gen";
import type { AnyEvent } from "../protocol/guards";
import * as blocks from "./blocks";
import { kindOfBoth } from "./changes";
import * as compressions from "./compressions";
import * as exchanges from "./exchanges";
import * as messages from "./messages";
import * as queue from "./queue";
import * as requests from "./requests";
import { statusOf } from "./status";

/** Subagents, grants and changed files that stay in view: each list holds its latest. */
export const KEEP_LATEST = 200;

export const EMPTY_STATE: State = {
  conversation: "",
  seq: 0,
  created_at: 0,
  updated_at: 0,
  title: "",
  title_source: "none",
  agent: "default",
  project: null,
  params: {},
  parent: null,
  status: "idle",
  offset: 0,
  messages: [],
  queue: [],
  requests: [],
  turn: null,
  last_turn: null,
  plan: null,
  subagents: [],
  exchanges: [],
  processes: [],
  grants: [],
  compressions: [],
  files: [],
  context: null,
  usage: {},
  cost_usd: 0,
  draft: "",
  archived: false,
  deleted: false,
};

/** How a turn ends when it did not simply come to its end. */
const ENDS_TO_BE_SEEN: ReadonlySet<TurnSummary["outcome"]> = new Set(["failed", "interrupted", "limited"]);

export function fold(state: State, events: readonly AnyEvent[]): State {
  if (events.length === 0) return state;
  const draft = new Draft(state);
  for (const event of events) draft.apply(event);
  return draft.finish();
}

/** A view while a batch is folded into it. Lives for one call of `fold`. */
class Draft {
  private readonly state: State;
  private messages: Message[];
  /** Messages made or copied in this batch: they may be changed in place, nobody has seen them. */
  private readonly mine = new Set<Message>();
  private copied = false;

  constructor(state: State) {
    this.state = { ...state };
    this.messages = state.messages;
  }

  finish(): State {
    this.state.messages = this.messages;
    this.state.status = statusOf(this.state);
    return this.state;
  }

  apply(event: AnyEvent): void {
    this.place(event);
    this.state.seq = event.seq;
    this.state.updated_at = event.ts;
  }

  // -- messages

  private own(): Message[] {
    if (!this.copied) {
      this.messages = this.messages.slice();
      this.copied = true;
    }
    return this.messages;
  }

  private append(message: Message): void {
    this.own().push(message);
    this.mine.add(message);
  }

  /** A message to change: the one this batch has made already, or a copy put in its place. */
  private ownMessage(place: number, seq: number): Message {
    const messages = this.own();
    let message = messages[place] as Message;
    if (!this.mine.has(message)) {
      message = { ...message, blocks: message.blocks.slice() };
      messages[place] = message;
      this.mine.add(message);
    }
    message.updated_seq = seq;
    return message;
  }

  /** An event names its message; it is nearly always the latest, so a search from the end is short. */
  private placeOf(id: string): number {
    return this.messages.findLastIndex((message) => message.id === id);
  }

  private change(id: string, seq: number, change: (message: Message) => void): void {
    const place = this.placeOf(id);
    if (place >= 0) change(this.ownMessage(place, seq));
  }

  /** Blocks ordered by index: a finished block may arrive before the one it follows once deltas are compacted away. */
  private changeBlock<Event extends { message: string; seq: number; block: number }>(
    event: Event,
    change: (known: Block | null, event: Event) => Block,
  ): void {
    const place = this.placeOf(event.message);
    if (place < 0) return;
    const held = (this.messages[place] as Message).blocks;
    const at = held.findLastIndex((block) => block.index <= event.block);
    const known = held[at]?.index === event.block ? (held[at] as Block) : null;
    const changed = change(known, event);
    if (changed === known) return;
    this.ownMessage(place, event.seq).blocks.splice(known ? at : at + 1, known ? 1 : 0, changed);
  }

  private changeCall(call: string, seq: number, change: (tool: ToolBlock) => ToolBlock): void {
    for (let place = this.messages.length - 1; place >= 0; place--) {
      const held = (this.messages[place] as Message).blocks;
      const at = held.findLastIndex((block) => block.type === "tool" && block.call === call);
      if (at < 0) continue;
      const changed = change(held[at] as ToolBlock);
      if (changed !== held[at]) this.ownMessage(place, seq).blocks[at] = changed;
      return;
    }
  }

  // -- one event

  private place(event: AnyEvent): void {
    const state = this.state;
    switch (event.type) {
      // Deltas first: nine events of ten are deltas.
      case "text.delta":
        this.changeBlock(event, blocks.textGrown);
        break;
      case "thinking.delta":
        this.changeBlock(event, blocks.thinkingGrown);
        break;
      case "tool.output.delta":
        this.changeCall(event.call, event.seq, (tool) => blocks.outputGrown(tool, event));
        break;
      case "tool.input.delta":
        this.changeBlock(event, blocks.inputGrown);
        break;

      case "conversation.created":
        state.conversation = event.conversation;
        state.created_at = event.ts;
        state.title = event.title ?? "";
        state.title_source = event.title ? "user" : "none";
        state.agent = event.agent ?? "default";
        state.project = event.project ?? null;
        state.params = event.params ?? {};
        state.parent = event.parent ? { ...event.parent, depth: event.parent.depth ?? 0 } : null;
        break;
      case "conversation.updated":
        this.update(event);
        break;
      case "conversation.deleted":
        state.deleted = true;
        break;
      case "draft.set":
        state.draft = event.text;
        break;
      case "draft.cleared":
        state.draft = "";
        break;

      case "queue.added":
        state.queue = queue.added(state.queue, event);
        state.exchanges = exchanges.queued(state.exchanges, event);
        break;
      case "queue.edited":
        state.queue = queue.edited(state.queue, event);
        break;
      case "queue.removed":
        state.queue = queue.removed(state.queue, event.item);
        break;

      case "message.added":
        this.append(messages.added(event));
        break;
      case "message.edited":
        this.change(event.message, event.seq, (message) => {
          message.blocks = blocks.ofContent(event.content);
          message.edited = true;
        });
        break;
      case "message.removed":
        this.remove(event);
        break;
      case "message.truncated":
        this.truncate(event);
        break;

      case "turn.started":
        state.turn = {
          id: event.turn ?? "",
          agent: event.agent,
          backend: event.backend,
          model: event.model ?? null,
          started_at: event.ts,
          // What a log of before it was thought of does not say.
          trigger: { ...event.trigger, hops: event.trigger.hops ?? 0 },
          resumable: event.resumable ?? false,
          steerable: event.steerable ?? false,
          mode: event.mode ?? null,
          activity: "thinking",
          detail: null,
          retry: null,
          usage: {},
          cost_usd: 0,
          switch: null,
          yielding: false,
        };
        state.processes = state.processes.filter((process) => process.running);
        state.exchanges = exchanges.begun(state.exchanges, event);
        break;
      case "turn.status":
        if (state.turn) {
          const { status, detail = null, retry = null, yielding = false } = event;
          state.turn = { ...state.turn, activity: status, detail, retry, yielding: state.turn.yielding || yielding };
        }
        break;
      case "turn.finished":
      case "turn.interrupted":
        this.endTurn(event);
        break;

      case "answer.started":
        if (event.replaces) {
          this.change(event.replaces, event.seq, (message) => {
            message.status = "superseded";
            message.blocks = message.blocks.map(blocks.superseded);
          });
        }
        this.append(messages.begun(event, state.turn));
        if (state.turn?.switch) state.turn = { ...state.turn, switch: null };
        break;
      case "text.finished":
        this.changeBlock(event, blocks.textFinished);
        break;
      case "thinking.finished":
        this.changeBlock(event, blocks.thinkingFinished);
        break;
      case "answer.finished":
        this.finishAnswer(event);
        break;
      case "citation.added":
        this.changeBlock(event, blocks.cited);
        break;

      case "tool.called":
        this.changeBlock(event, blocks.called);
        break;
      case "tool.started":
        this.changeCall(event.call, event.seq, (tool) => blocks.toolStarted(tool, event));
        break;
      case "tool.finished":
        this.changeCall(event.call, event.seq, (tool) => blocks.toolFinished(tool, event));
        break;

      case "request.opened":
        this.openRequest(event);
        break;
      case "request.resolved":
        this.resolveRequest(event);
        break;

      case "subagent.started":
        state.subagents = latest(state.subagents, {
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
        break;
      case "subagent.finished":
        state.subagents = state.subagents.map((child) =>
          child.conversation === event.subagent && child.status === "running"
            ? { ...child, status: event.outcome, finished_at: event.ts, cost_usd: event.cost_usd ?? null }
            : child,
        );
        break;
      case "exchange.sent":
        state.exchanges = exchanges.sent(state.exchanges, event);
        break;
      case "exchange.returned":
        state.exchanges = exchanges.told(state.exchanges, event);
        break;

      case "context.measured":
        state.context = {
          used_tokens: event.used_tokens,
          window_tokens: event.window_tokens ?? null,
          estimated: event.estimated ?? true,
          compressed: state.context?.compressed ?? false,
          breakdown: event.breakdown ?? {},
        };
        break;
      case "context.compressed":
        this.spend(event);
        state.context = {
          used_tokens: event.after_tokens,
          window_tokens: state.context?.window_tokens ?? null,
          estimated: true,
          compressed: true,
          breakdown: {},
        };
        state.compressions = compressions.bounded([...state.compressions, compressions.compressed(event)]);
        break;
      case "knowledge.recalled":
        if (event.message) {
          this.change(event.message, event.seq, (message) => {
            message.knowledge = { sources: event.sources ?? [], tokens: event.tokens ?? 0, text: event.text ?? "" };
          });
        }
        break;
      case "files.changed":
        state.files = changedFiles(state.files, event);
        if (event.call) this.changeCall(event.call, event.seq, (tool) => blocks.filesChanged(tool, event));
        break;
      case "plan.updated":
        state.plan = event.plan ?? null;
        break;
      case "process.started":
        state.processes = [
          ...state.processes,
          {
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
          },
        ];
        break;
      case "process.finished":
        state.processes = state.processes.map((known) => processEnded(known, event));
        break;
      case "model.switched":
        if (state.turn) {
          const { to_model, from_model = null, reason = "" } = event;
          state.turn = { ...state.turn, model: to_model, switch: { to_model, from_model, reason } };
        }
        break;
      case "grant.added":
        state.grants = latest(without(state.grants, event), grant(event));
        break;
      case "grant.removed":
        state.grants = without(state.grants, event);
        break;

      case "mission.set":
      case "mission.cleared":
      case "mission.triggered":
      case "agent.overridden":
      case "log.compacted":
      case "opaque":
        break; // Nothing in a conversation's view depends on these; `seq` moves on.
      default:
        event satisfies never;
    }
  }

  private update(event: ConversationUpdated): void {
    const state = this.state;
    if (event.title != null) {
      state.title = event.title;
      state.title_source = event.title_source || "user";
    }
    state.agent = event.agent || state.agent;
    if (event.params != null) {
      const merged = Object.entries({ ...state.params, ...event.params });
      state.params = Object.fromEntries(merged.filter(([, value]) => value !== null));
    }
    state.archived = event.archived ?? state.archived;
    state.project = event.project || state.project;
    state.parent = event.parent ?? state.parent;
  }

  private remove(event: MessageRemoved): void {
    const place = this.placeOf(event.message);
    if (place >= 0) this.own().splice(place, 1);
    else if (event.index < this.state.offset) this.state.offset -= 1;
  }

  private truncate(event: MessageTruncated): void {
    this.own().splice(Math.max(0, event.index - this.state.offset));
    if (event.index < this.state.offset) this.state.offset = event.index;
    const first = event.first_seq;
    if (first != null) {
      this.state.compressions = this.state.compressions.filter((known) => known.horizon <= first);
    }
  }

  private finishAnswer(event: AnswerFinished): void {
    this.spend(event);
    this.change(event.message, event.seq, (message) => {
      if (message.status !== "superseded") message.status = event.interrupted ? "interrupted" : "done";
      message.finish_reason = event.finish_reason;
      message.usage = event.usage ?? null;
      message.model = event.model || message.model;
      message.data = event.provider ?? message.data;
    });
  }

  private spend(event: AnswerFinished | ContextCompressed): void {
    const turn = this.state.turn;
    if (turn && (event.usage || event.cost_usd)) {
      const cost_usd = turn.cost_usd + (event.cost_usd ?? 0);
      this.state.turn = { ...turn, usage: summed(turn.usage, event.usage ?? {}), cost_usd };
    }
  }

  private endTurn(event: TurnFinished | TurnInterrupted): void {
    const state = this.state;
    // The end of a turn that is over, or was never begun, ends no other.
    if (state.turn === null || state.turn.id !== (event.turn ?? "")) return;
    const { mode } = state.turn;
    const finished = event.type === "turn.finished" ? event : null;
    state.turn = null;
    const summary: TurnSummary = {
      id: event.turn ?? "",
      outcome: finished ? finished.outcome : "interrupted",
      ended_at: event.ts,
      stopped: event.type === "turn.interrupted" ? event.reason : null,
      by: event.origin ?? null,
      error: finished?.error ?? null,
      summary: finished?.summary ?? null,
      duration_ms: event.duration_ms ?? null,
      mode,
    };
    state.last_turn = summary;
    state.usage = summed(state.usage, event.usage ?? {});
    state.cost_usd += event.cost_usd ?? 0;
    if (ENDS_TO_BE_SEEN.has(summary.outcome)) this.markEnd(summary, event.seq);
  }

  private markEnd(summary: TurnSummary, seq: number): void {
    const place = this.messages.findLastIndex(
      ({ turn, hidden, status, blocks }) => turn === summary.id && !hidden && status !== "superseded" && blocks.length > 0,
    );
    if (place >= 0) this.ownMessage(place, seq).ended = summary;
  }

  private openRequest(event: RequestOpened): void {
    if (requests.find(this.state.requests, event.request) !== undefined) return;
    this.state.requests = [...this.state.requests, requests.opened(event)];
    if (event.call) this.changeCall(event.call, event.seq, (tool) => blocks.waiting(tool, event));
  }

  private resolveRequest(event: RequestResolved): void {
    const request = requests.find(this.state.requests, event.request);
    // The first resolution is the resolution.
    if (request?.status !== "open") return;
    this.state.requests = requests.resolved(this.state.requests, event);
    if (request.call) this.changeCall(request.call, event.seq, blocks.answered);
  }
}

function latest<Item>(known: readonly Item[], added: Item): Item[] {
  return [...known, added].slice(-KEEP_LATEST);
}

/** The first end is the end. */
function processEnded(known: Process, event: ProcessFinished): Process {
  if (known.id !== event.process || !known.running) return known;
  const { exit_code = null, end = "exited" } = event;
  return { ...known, running: false, exit_code, finished_at: event.ts, end };
}

function grant(event: GrantAdded): Grant {
  const { tool, scope, ts } = event;
  const { decision = "allow", match = null, agent = null, request = null } = event;
  return { tool, scope, decision, match, agent, request, ts };
}

function without(grants: readonly Grant[], event: GrantAdded | GrantRemoved): Grant[] {
  return grants.filter((known) => known.tool !== event.tool || known.match !== (event.match ?? null));
}

/** What became of each path, last changed last. A call tells of its own change alone, and shows the diff itself; what is
 * told without a call is all that there is to tell of a file. */
function changedFiles(known: readonly FileChange[], event: FilesChanged): FileChange[] {
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

const COUNTS = ["input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"] as const;

/** Zero counts are left out, as on the wire. */
function summed(one: Usage, other: Usage): Usage {
  const sum: Usage = {};
  for (const name of COUNTS) {
    const count = (one[name] ?? 0) + (other[name] ?? 0);
    if (count !== 0) sum[name] = count;
  }
  return sum;
}
