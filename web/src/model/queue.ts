/** The order of the queue, as `src/palaver/core/queue.py` says it. Called by the fold alone. Pure. */

import type { QueueAdded, QueueEdited, QueueItem } from "../protocol/events.gen";

export function added(queue: readonly QueueItem[], event: QueueAdded): QueueItem[] {
  const item: QueueItem = {
    id: event.item,
    content: event.content,
    delivery: event.delivery ?? "turn",
    ts: event.ts,
    priority: event.priority ?? false,
    merge: event.merge ?? false,
    held: false,
    version: 1,
    agent: event.agent ?? null,
    mode: event.mode ?? null,
    origin: event.origin ?? null,
    client_request_id: event.client_request_id ?? null,
    trigger: event.trigger ?? "message",
    exchange: event.exchange ?? null,
    hops: event.hops ?? 0,
    command: event.command ?? null,
  };
  return placed(queue, item, null);
}

export function edited(queue: QueueItem[], event: QueueEdited): QueueItem[] {
  const item = queue.find((known) => known.id === event.item);
  if (item === undefined) return queue;
  const changed: QueueItem = {
    ...item,
    version: event.version,
    content: event.content ?? item.content,
    held: event.held ?? item.held,
    priority: event.priority ?? item.priority,
  };
  const before = event.before ?? null;
  if (before === null && changed.priority === item.priority) {
    return queue.map((known) => (known.id === item.id ? changed : known));
  }
  return placed(removed(queue, item.id), changed, before);
}

export function removed(queue: readonly QueueItem[], item: string): QueueItem[] {
  return queue.filter((known) => known.id !== item);
}

/** Priority items stand after those before them and before the others; `before` overrides that by hand. */
function placed(queue: readonly QueueItem[], item: QueueItem, before: string | null): QueueItem[] {
  let at = queue.length;
  if (before === null) {
    if (item.priority) at = queue.findLastIndex((known) => known.priority) + 1;
  } else if (before !== "") {
    const named = queue.findIndex((known) => known.id === before);
    if (named >= 0) at = named;
  }
  return queue.toSpliced(at, 0, item);
}
