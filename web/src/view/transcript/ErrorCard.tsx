/** A turn that failed: what happened, what to do about it, and the way there. */

import { lazy, Suspense, useState } from "react";
import type { ErrorRow } from "../../model/rows";
import { said } from "../../sentences";
import { later } from "../../text.later";
import { useConversationId } from "../conversation/scope";
import { Icon } from "../controls/Icon";
import { visible } from "../controls/visible";
import { ScreenLink } from "../frame/ScreenLink";
import { useDisclosed, usePicked, useStore } from "../store";

const TrustReview = lazy(() => import("../trust/TrustReview"));

/** What is mended where backends are installed, signed in to and tried. */
const HELPED_BY_BACKENDS: ReadonlySet<string> = new Set(["not_installed", "not_logged_in", "protocol_broken", "exited", "provider_refused"]);

export default function ErrorCard({ row }: { row: ErrorRow }) {
  const store = useStore();
  const id = useConversationId();
  const [open, setOpen] = useDisclosed(row.key);
  const isLatest = usePicked(id, ({ state }) => state.turn === null && state.last_turn?.id === row.turn.id) ?? false;
  const { error } = row;
  const untrusted = untrustedSettings(error);
  const [reviewing, setReviewing] = useState(false);
  return (
    <div className="error-card">
      <h2 className="error-heading">
        <Icon name="warn" />
        {untrusted ? later.error.untrusted : (later.error.heading[error.code] ?? later.error.other)}
      </h2>
      <p>{visible(said(error.message))}</p>
      <p className="error-advice">{untrusted ? later.error.untrustedAdvice : (later.error.advice[error.code] ?? later.error.otherAdvice)}</p>
      <div className="error-bar">
        {isLatest && (
          <button type="button" className="button small" onClick={() => store.command(id, { type: "regenerate" })}>
            <Icon name="retry" />
            {later.error.retry}
          </button>
        )}
        {untrusted && (
          <button type="button" className="button small" onClick={() => setReviewing(true)}>
            {later.error.review}
          </button>
        )}
        {HELPED_BY_BACKENDS.has(error.code) && <ScreenLink to="/backends">{later.error.backends}</ScreenLink>}
        <span className="hint mono">{error.code}</span>
      </div>
      {error.details && Object.keys(error.details).length > 0 && (
        <details className="error-details" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>{later.error.details}</summary>
          <pre className="plain-box" tabIndex={0}>
            {visible(JSON.stringify(error.details, null, 2))}
          </pre>
        </details>
      )}
      {untrusted && reviewing && (
        <Suspense fallback={null}>
          <TrustReview {...untrusted} onClose={() => setReviewing(false)} />
        </Suspense>
      )}
    </div>
  );
}

/** The settings for which a program was not started, where that is what failed. */
function untrustedSettings({ code, details }: ErrorRow["error"]): { project: string; program: string } | null {
  const { project, program } = details ?? {};
  return code === "forbidden" && typeof project === "string" && typeof program === "string" ? { project, program } : null;
}
