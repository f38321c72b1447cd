/** One line at the top edge when the connection is in trouble, and one when it is over. Short troubles are not mentioned. */

import { Suspense, useEffect, useState } from "react";
import type { Connection } from "../../transport/connection";
import { clock } from "../../measures";
import { text } from "../../text";
import { useSeconds } from "../controls/now";
import { CopyBanner } from "../later";
import { usePick, useStore } from "../store";

// A hiccup shorter than this is nobody's business.
const PATIENCE_MS = 2000;
// "Caught up" is read in passing.
const FAREWELL_MS = 4000;

export function ConnectionBanner() {
  const connection = usePick((snapshot) => snapshot.connection);
  const copiedAt = usePick((snapshot) => snapshot.copiedAt);
  const shown = useShown(connection);
  if (copiedAt !== null) {
    return (
      <Suspense fallback={null}>
        <CopyBanner copiedAt={copiedAt} />
      </Suspense>
    );
  }
  if (!shown) return null;
  return <Banner connection={connection} />;
}

/** Trouble is shown once it lasts; its end is shown only to those who saw the trouble. */
function useShown(connection: Connection): boolean {
  const [troubleSeen, setTroubleSeen] = useState(false);
  const { kind } = connection;
  const trouble = kind === "connecting" || kind === "reconnecting" || kind === "offline";
  useEffect(() => {
    if (trouble) {
      const timer = setTimeout(() => setTroubleSeen(true), PATIENCE_MS);
      return () => clearTimeout(timer);
    }
    if (kind !== "open") return;
    const timer = setTimeout(() => setTroubleSeen(false), FAREWELL_MS);
    return () => clearTimeout(timer);
  }, [trouble, kind]);
  if (kind === "signed_out" || kind === "version_mismatch") return true;
  return troubleSeen;
}

function Banner({ connection }: { connection: Connection }) {
  const calm = connection.kind === "open" || connection.kind === "catching_up" || connection.kind === "connecting";
  return (
    <div className={calm ? "banner" : "banner is-trouble"} role="status">
      <Words connection={connection} />
    </div>
  );
}

function Words({ connection }: { connection: Connection }) {
  const store = useStore();
  const now = useSeconds();
  switch (connection.kind) {
    case "connecting":
      return <span>{text.connection.connecting}</span>;
    case "reconnecting":
      return (
        <>
          <span className="tabular">{text.connection.reconnecting(Math.max(0, Math.ceil((connection.retryAt - now) / 1000)))}</span>
          {connection.lastSeen > 0 && <span className="banner-more tabular">{text.connection.lastHeard(clock(connection.lastSeen))}</span>}
          <button type="button" className="link-button" onClick={() => store.reconnectNow()}>
            {text.connection.now}
          </button>
        </>
      );
    case "offline":
      return <span>{text.connection.offline}</span>;
    case "catching_up":
      return <span className="tabular">{text.connection.catchingUp(connection.receivedCount)}</span>;
    case "open":
      return <span className="tabular">{text.connection.caughtUp(connection.caughtUpCount ?? 0)}</span>;
    case "version_mismatch":
      return (
        <>
          <span>{text.connection.version}</span>
          <button type="button" className="link-button" onClick={() => location.reload()}>
            {text.connection.reload}
          </button>
        </>
      );
    case "signed_out":
      return <span>{text.connection.signedOut}</span>;
  }
}
