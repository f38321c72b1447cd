/**
 * Commands the server refused, in its words, until they are dismissed. Messages and answers show their refusal where they
 * stand; this is for everything else: a title, a queued message that had left, history changed while the agent works.
 */

import { Suspense } from "react";
import type { Command } from "../../protocol/events.gen";
import { NoticeLines } from "../later";
import { usePick } from "../store";

// Shown in their own place, or of no interest to anybody.
const ELSEWHERE: ReadonlySet<Command["type"]> = new Set(["send_message", "retry_from", "resolve_request", "decide_tools", "set_draft", "clear_draft"]);

export interface NoticesProps {
  /** What went wrong beside commands. */
  trouble: string | null;
  onDismiss: () => void;
}

export function Notices(props: NoticesProps) {
  const outbox = usePick((snapshot) => snapshot.outbox);
  const refused = outbox.filter((entry) => entry.status === "failed" && !ELSEWHERE.has(entry.command.type));
  return (
    <div className="notices" role="status">
      <Suspense fallback={null}>{(props.trouble !== null || refused.length > 0) && <NoticeLines {...props} refused={refused} />}</Suspense>
    </div>
  );
}
