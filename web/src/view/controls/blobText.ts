/** A text that is kept beside the log because it is long, fetched when somebody wants to see it. */

import { useEffect, useState } from "react";
import { blobUrl } from "../../transport/api";
import { signedFetch } from "../../transport/pagekey";

export interface BlobText {
  /** Null: not here yet. */
  readonly text: string | null;
  readonly failed: boolean;
}

export function useBlobText(blob: string | null): BlobText {
  const [text, setText] = useState<string | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (blob === null) return;
    const leaving = new AbortController();
    signedFetch(blobUrl(blob), { signal: leaving.signal })
      .then((answer) => (answer.ok ? answer.text() : Promise.reject(new Error(answer.statusText))))
      .then(setText, () => {
        if (!leaving.signal.aborted) setFailed(true);
      });
    return () => leaving.abort();
  }, [blob]);
  return { text, failed };
}
