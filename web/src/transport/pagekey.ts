/**
 * The page key: the second half of a browser's sign-in, which goes with every request and socket beside the cookie.
 *
 * Browsers send the cookie to every port of a host; the key stays in the storage of this origin, which its tabs share. Must
 * never stand in an address.
 */

import { localValues } from "./storage";

const UNDER = "palaver.key";

export function keepPageKey(key: string | null): void {
  localValues.set(UNDER, key);
}

/** The browser's `fetch`, signed. */
export const signedFetch: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  // Read each time: another tab may have signed in anew.
  headers.set("palaver-key", localValues.get(UNDER) ?? "");
  return fetch(input, { credentials: "same-origin", ...init, headers });
};

/** What a WebSocket offers: the only header that a page can give it. */
export function socketProtocols(): string[] {
  const key = localValues.get(UNDER);
  return key ? ["palaver", `palaver.key.${key}`] : ["palaver"];
}
