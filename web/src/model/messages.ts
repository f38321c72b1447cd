/** How a message begins. Called by the fold alone. Pure. */

import type { AnswerStarted, Message, MessageAdded, Turn } from "../protocol/events.gen";
import { ofContent } from "./blocks";

export function added(event: MessageAdded): Message {
  return {
    ...empty(event, event.role ?? "user"),
    blocks: event.blocks == null ? ofContent(event.content ?? []) : event.blocks.slice(),
    origin: event.origin ?? null,
    agent: event.agent ?? null,
    model: event.model ?? null,
    hidden: event.hidden ?? false,
    event_kind: event.event_kind ?? null,
    client_request_id: event.client_request_id ?? null,
    data: event.data ?? null,
  };
}

/** The answer of one model call, before its first word. */
export function begun(event: AnswerStarted, turn: Turn | null): Message {
  return {
    ...empty(event, "assistant"),
    status: "streaming",
    agent: turn?.agent ?? null,
    model: event.model || (turn?.model ?? null),
    switch: turn?.switch ?? null,
  };
}

function empty(event: MessageAdded | AnswerStarted, role: Message["role"]): Message {
  return {
    id: event.message,
    role,
    seq: event.seq,
    updated_seq: event.seq,
    ts: event.ts,
    blocks: [],
    status: "done",
    turn: event.turn ?? null,
    origin: null,
    agent: null,
    model: null,
    finish_reason: null,
    usage: null,
    hidden: false,
    event_kind: null,
    edited: false,
    client_request_id: null,
    exchange: event.exchange ?? null,
    knowledge: null,
    switch: null,
    ended: null,
    data: null,
  };
}
