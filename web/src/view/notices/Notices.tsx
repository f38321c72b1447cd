/**
 * Commands the server refused, in its words, until they are dismissed. Messages and answers show their refusal where they
 * stand; this is for everything else: a title, a queued message that had left, history changed while the agent works.
 */

import type { Command } from "../../protocol/events.gen";
import { said } from "../../sentences";
import { text } from "../../text";
import type { OutboxEntry } from "../../transport/commands";
import { Icon } from "../controls/Icon";
import { usePick, useStore } from "../store";

// Shown in their own place, or of no interest to anybody.
const ELSEWHERE: ReadonlySet<Command["type"]> = new Set(["send_message", "retry_from", "resolve_request", "decide_tools", "set_draft", "clear_draft"]);

interface NoticesProps {
  /** What went wrong beside commands. */
  trouble: string | null;
  onDismiss: () => void;
}

export function Notices({ trouble, onDismiss }: NoticesProps) {
  const store = useStore();
  const outbox = usePick((snapshot) => snapshot.outbox);
  const refused = outbox.filter((entry) => entry.status === "failed" && !ELSEWHERE.has(entry.command.type));
  return (
    <div className="notices" role="status">
      {trouble !== null && <Notice words={trouble} onDismiss={onDismiss} />}
      {refused.map((entry) => (
        <Notice key={entry.id} words={wordsOf(entry)} onDismiss={() => store.discard(entry.id)} />
      ))}
    </div>
  );
}

function Notice({ words, onDismiss }: { words: string; onDismiss: () => void }) {
  return (
    <p className="notice-line">
      <Icon name="warn" />
      <span>{words}</span>
      <button type="button" className="icon-button small" aria-label={text.notices.dismiss} onClick={onDismiss}>
        <Icon name="close" />
      </button>
    </p>
  );
}

function wordsOf(entry: OutboxEntry): string {
  return entry.error ? said(entry.error.message) : text.notices.refused;
}
