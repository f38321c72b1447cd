/**
 * `fold(state, events) → state`: the view of a conversation from its log, as `src/palaver/core/fold/evolve.py` says it.
 *
 * `tests/golden` holds both to the same answers. Pure, no DOM; called by the store once a batch. A message (and a block) that
 * did not change keeps its identity, which is what the view's memory keys on. Must never fail on an event: what it cannot
 * place, it skips. What each event does to its part is in the modules named like the parts.
 */

import type {
  AnswerFinished,
  ContextCompressed,
  ConversationUpdated,
  MessageTruncated,
  RequestOpened,
  RequestResolved,
  State,
  TurnFinished,
  TurnInterrupted,
} from "../protocol/events.gen";
import type { AnyEvent } from "../protocol/guards";
import * as blocks from "./blocks";
import * as compressions from "./compressions";
import * as exchanges from "./exchanges";
import * as messages from "./messages";
import * as queue from "./queue";
import * as requests from "./requests";
import { statusOf } from "./status";
import { Transcript } from "./transcript";
import * as turns from "./turns";
import * as work from "./work";

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

export function fold(state: State, events: readonly AnyEvent[]): State {
  if (events.length === 0) return state;
  const draft = new Draft(state);
  for (const event of events) draft.apply(event);
  return draft.finish();
}

/** A view while a batch is folded into it. Lives for one call of `fold`. */
class Draft {
  private readonly state: State;
  private readonly said: Transcript;

  constructor(state: State) {
    this.state = { ...state };
    this.said = new Transcript(state.messages);
  }

  finish(): State {
    this.state.messages = this.said.current;
    this.state.status = statusOf(this.state);
    return this.state;
  }

  apply(event: AnyEvent): void {
    this.place(event);
    this.state.seq = event.seq;
    this.state.updated_at = event.ts;
  }

  private place(event: AnyEvent): void {
    const state = this.state;
    switch (event.type) {
      // Deltas first: nine events of ten are deltas.
      case "text.delta":
        this.said.changeBlock(event, blocks.textGrown);
        break;
      case "thinking.delta":
        this.said.changeBlock(event, blocks.thinkingGrown);
        break;
      case "tool.output.delta":
        this.said.changeCall(event.call, event.seq, (tool) => blocks.outputGrown(tool, event));
        break;
      case "tool.input.delta":
        this.said.changeBlock(event, blocks.inputGrown);
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
        this.said.append(messages.added(event));
        break;
      case "message.edited":
        this.said.change(event.message, event.seq, (message) => {
          message.blocks = blocks.ofContent(event.content);
          message.edited = true;
        });
        break;
      case "message.removed": {
        const end = this.endOfLastTurn();
        if (!this.said.remove(event.message) && event.index < state.offset) state.offset -= 1;
        this.forgetOutcome(end);
        break;
      }
      case "message.truncated":
        this.truncate(event);
        break;

      case "turn.started":
        state.turn = turns.started(event);
        state.processes = state.processes.filter((process) => process.running);
        state.exchanges = exchanges.begun(state.exchanges, event);
        break;
      case "turn.status":
        if (state.turn) state.turn = turns.busyWith(state.turn, event);
        break;
      case "turn.finished":
      case "turn.interrupted":
        this.endTurn(event);
        break;

      case "answer.started":
        if (event.replaces) {
          this.said.change(event.replaces, event.seq, (message) => {
            message.status = "superseded";
            message.blocks = message.blocks.map(blocks.superseded);
          });
        }
        this.said.append(messages.begun(event, state.turn));
        if (state.turn?.switch) state.turn = { ...state.turn, switch: null };
        break;
      case "text.finished":
        this.said.changeBlock(event, blocks.textFinished);
        break;
      case "thinking.finished":
        this.said.changeBlock(event, blocks.thinkingFinished);
        break;
      case "answer.finished":
        this.finishAnswer(event);
        break;
      case "citation.added":
        this.said.changeBlock(event, blocks.cited);
        break;

      case "tool.called":
        this.said.changeBlock(event, blocks.called);
        break;
      case "tool.started":
        this.said.changeCall(event.call, event.seq, (tool) => blocks.toolStarted(tool, event));
        break;
      case "tool.finished":
        this.said.changeCall(event.call, event.seq, (tool) => blocks.toolFinished(tool, event));
        break;

      case "request.opened":
        this.openRequest(event);
        break;
      case "request.resolved":
        this.resolveRequest(event);
        break;

      case "subagent.started":
        state.subagents = work.subagentStarted(state.subagents, event);
        break;
      case "subagent.finished":
        state.subagents = work.subagentEnded(state.subagents, event);
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
          this.said.change(event.message, event.seq, (message) => {
            message.knowledge = { sources: event.sources ?? [], tokens: event.tokens ?? 0, text: event.text ?? "" };
          });
        }
        break;
      case "files.changed":
        state.files = work.filesChanged(state.files, event);
        if (event.call) this.said.changeCall(event.call, event.seq, (tool) => blocks.filesChanged(tool, event));
        break;
      case "plan.updated":
        state.plan = event.plan ?? null;
        break;
      case "process.started":
        state.processes = work.processStarted(state.processes, event);
        break;
      case "process.finished":
        state.processes = work.processEnded(state.processes, event);
        break;
      case "model.switched":
        if (state.turn) state.turn = turns.switched(state.turn, event);
        break;
      case "grant.added":
        state.grants = work.granted(state.grants, event);
        break;
      case "grant.removed":
        state.grants = work.ungranted(state.grants, event);
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

  private truncate(event: MessageTruncated): void {
    const end = this.endOfLastTurn();
    this.said.truncate(Math.max(0, event.index - this.state.offset));
    if (event.index < this.state.offset) this.state.offset = event.index;
    const first = event.first_seq;
    if (first != null) {
      this.state.compressions = this.state.compressions.filter((known) => known.horizon <= first);
    }
    this.forgetOutcome(end);
  }

  /** The message at which a failed or completed task ended, while the conversation rests. */
  private endOfLastTurn(): string | null {
    const { turn, last_turn: last } = this.state;
    return turn === null && last !== null && turns.SEEN_AT_REST.has(last.outcome) ? this.said.endOf(last.id) : null;
  }

  /** If the message at which the last turn ended was taken away, the conversation is idle. */
  private forgetOutcome(end: string | null): void {
    const last = this.state.last_turn;
    if (last !== null && end !== null && !this.said.has(end)) this.state.last_turn = turns.withoutOutcome(last);
  }

  private finishAnswer(event: AnswerFinished): void {
    this.spend(event);
    this.said.change(event.message, event.seq, (message) => {
      if (message.status !== "superseded") message.status = event.interrupted ? "interrupted" : "done";
      message.finish_reason = event.finish_reason;
      message.usage = event.usage ?? null;
      message.model = event.model || message.model;
      message.data = event.provider ?? message.data;
    });
  }

  private spend(event: AnswerFinished | ContextCompressed): void {
    if (this.state.turn) this.state.turn = turns.spent(this.state.turn, event);
  }

  private endTurn(event: TurnFinished | TurnInterrupted): void {
    const state = this.state;
    // The end of a turn that is over, or was never begun, ends no other.
    if (state.turn === null || state.turn.id !== (event.turn ?? "")) return;
    const summary = turns.ended(state.turn, event);
    state.turn = null;
    state.last_turn = summary;
    state.usage = turns.summed(state.usage, event.usage ?? {});
    state.cost_usd += event.cost_usd ?? 0;
    if (turns.ENDS_TO_BE_SEEN.has(summary.outcome)) this.said.markEnd(summary, event.seq);
  }

  private openRequest(event: RequestOpened): void {
    if (requests.find(this.state.requests, event.request) !== undefined) return;
    this.state.requests = [...this.state.requests, requests.opened(event)];
    if (event.call) this.said.changeCall(event.call, event.seq, (tool) => blocks.waiting(tool, event));
  }

  private resolveRequest(event: RequestResolved): void {
    const request = requests.find(this.state.requests, event.request);
    // The first resolution is the resolution.
    if (request?.status !== "open") return;
    this.state.requests = requests.resolved(this.state.requests, event);
    if (request.call) this.said.changeCall(request.call, event.seq, blocks.answered);
  }
}
