/**
 * Commands the server refused, in its words, until they are dismissed. Messages and answers show their refusal where they
 * stand; this is for everything else: a title, a queued message that had left, history changed while the agent works.
 */

import type { Command } from "../../protocol/events.gen";
import { said, text } from "../../text";
import type { OutboxEntry } from "../../transport/commands";
import { Icon } from "../controls/Icon";
import { usePick, useStore } from "../store";

// Shown in their own place, or of no interest to anybody.
const ELSEWHERE: ReadonlySet<Command["type"]> = new Set(["send_message", "retry_from", "resolve_request", "set_draft", "clear_draft"]);

export function Notices() {
  const store = useStore();
  const outbox = usePick((snapshot) => snapshot.outbox);
  const refused = outbox.filter((entry) => entry.status === "failed" && !ELSEWHERE.has(entry.command.type));
  return (
    <div className="notices" role="status">
      {refused.map((entry) => (
        <p key={entry.id} className="notice-line">
          <Icon name="warn" />
          <span>{wordsOf(entry)}</span>
          <button type="button" className="icon-button small" aria-label={text.notices.dismiss} onClick={() => store.discard(entry.id)}>
            <Icon name="close" />
          </button>
        </p>
      ))}
    </div>
  );
}

function wordsOf(entry: OutboxEntry): string {
  return entry.error ? said(entry.error.message) : text.notices.refused;
}
