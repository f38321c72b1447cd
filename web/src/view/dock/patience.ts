/** What a command that waits in the queue will do, in words. Pure. */

import type { QueueItem } from "../../protocol/events.gen";
import { work } from "../../text.work";

/** Null for a message: it says itself. */
export function sayCommand({ command }: QueueItem): string | null {
  if (command === null) return null;
  const { does, then } = work.queue;
  const { type, from_index, index = from_index } = command;
  switch (type) {
    case "truncate_messages":
      return then(does.truncate(place(index)));
    case "retry_from":
      return then(does.retry(place(index)));
    case "edit_message":
      return then(does.edit);
    case "remove_message":
      return then(does.remove);
    case "regenerate":
      return then(does.regenerate);
    case "restore_messages":
    case "fill":
      return then(does.restore);
    default:
      return then(does.other);
  }
}

/** People count from one. */
function place(index: unknown): number {
  return typeof index === "number" ? index + 1 : 1;
}
