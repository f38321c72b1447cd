/**
 * Files that the server keeps (attachments, long texts), fetched with the page key: an address alone is refused. Shown or
 * opened as object URLs, and only what can do no harm in this origin: pictures and plain text. The rest is saved.
 */

import { useEffect, useState } from "react";
import { signedFetch } from "../../transport/pagekey";

/** The browser has read it by then. */
const OPEN_MS = 60_000;

const PICTURES = /^image\/(?:png|jpeg|gif|webp)$/;

/** The picture under this address as an object URL; null until it is there. */
export function useKeptPicture(url: string): string | null {
  const [shown, setShown] = useState<string | null>(null);
  useEffect(() => {
    const leaving = new AbortController();
    let made: string | null = null;
    fetchKept(url, leaving.signal).then(
      (file) => {
        if (leaving.signal.aborted || !PICTURES.test(file.type)) return;
        made = URL.createObjectURL(file);
        setShown(made);
      },
      () => undefined,
    );
    return () => {
      leaving.abort();
      setShown(null);
      if (made !== null) URL.revokeObjectURL(made);
    };
  }, [url]);
  return shown;
}

/** In a tab of its own, which was opened by the click: later the browser would not let us. */
export async function openKept(url: string, tab: Window | null): Promise<void> {
  if (tab !== null) tab.opener = null;
  const file = await fetchKept(url).catch(() => null);
  if (file === null) {
    tab?.close();
    return;
  }
  const isText = file.type.startsWith("text/plain");
  const address = URL.createObjectURL(isText ? file.slice(0, file.size, "text/plain;charset=utf-8") : file);
  setTimeout(() => URL.revokeObjectURL(address), OPEN_MS);
  if (tab !== null && (isText || PICTURES.test(file.type))) {
    tab.location.replace(address);
    return;
  }
  tab?.close();
  const link = Object.assign(document.createElement("a"), { href: address, download: url.split("/").at(-1) ?? "" });
  link.click();
}

async function fetchKept(url: string, signal?: AbortSignal): Promise<Blob> {
  const answer = await signedFetch(url, signal && { signal });
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.blob();
}
