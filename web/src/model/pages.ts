/**
 * Older history, a page at a time, put before what is held. Pure.
 *
 * Called by the store. Messages are known by their seq, so a page that overlaps or repeats adds nothing twice.
 */

import type { Message, State } from "../protocol/events.gen";
import type { AnyEvent } from "../protocol/guards";

/** About three screens, and half a second of nothing on a slow line. */
export const PAGE_SIZE = 100;

/** Seq to ask for what precedes the messages at hand, or null when nothing does. */
export function olderThan(state: State): number | null {
  return state.offset > 0 ? (state.messages[0]?.seq ?? state.seq + 1) : null;
}

/**
 * The state with a page put in: `items` are all messages between the first of them and `before`. Held messages in that
 * range give way to what the server says, unless the one held is newer.
 */
export function withPage(state: State, items: readonly Message[], before: number, limit = PAGE_SIZE): State {
  const from = items.length < limit ? 0 : (items[0]?.seq ?? before);
  const held = new Map(state.messages.map((message) => [message.seq, message]));
  const older = state.messages.filter((message) => message.seq < from);
  const newer = state.messages.filter((message) => message.seq >= before);
  const page = items.filter((item) => item.seq < before).map((item) => newerOf(held.get(item.seq), item));
  const kept = state.messages.length - older.length - newer.length;
  const offset = from === 0 ? 0 : Math.max(0, state.offset - (page.length - kept));
  return { ...state, offset, messages: [...older, ...page, ...newer] };
}

function newerOf(held: Message | undefined, item: Message): Message {
  return held !== undefined && held.updated_seq >= item.updated_seq ? held : item;
}

/** A snapshot with the pages before it that were loaded earlier, as far as the count of messages says they still fit. */
export function withHeldPages(snapshot: State, held: State): State {
  const first = snapshot.messages[0]?.seq;
  if (first === undefined) return snapshot;
  const older = held.messages.filter((message) => message.seq < first);
  if (older.length === 0 || held.offset + older.length !== snapshot.offset) return snapshot;
  return { ...snapshot, offset: held.offset, messages: [...older, ...snapshot.messages] };
}

/**
 * Whether an event changes a message that is not held: a page that is on its way may then be older than the event, and
 * must be asked for again.
 */
export function touchesUnheld(state: State, event: AnyEvent): boolean {
  if (event.type === "message.truncated") return event.index < state.offset;
  if ("message" in event && event.type !== "message.added" && event.type !== "answer.started") {
    return !state.messages.some((message) => message.id === event.message);
  }
  if ("call" in event && event.call != null) {
    return !state.messages.some(({ blocks }) => blocks.some((block) => block.type === "tool" && block.call === event.call));
  }
  return false;
}
