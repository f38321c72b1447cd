/**
 * The page key: the second half of a browser's sign-in, beside the cookie. Every request and socket carries a proof of it.
 *
 * Browsers send the cookie to every port of a host; the key stays with this origin, whose tabs share it, and is never sent.
 */

import { localValues } from "./storage";

const UNDER = "palaver.key";
const UNAUTHORIZED = 401;

// Apart, so that the page can begin to draw before it is there; and asked for at once, for nothing is shown without it.
const loadProofs = () => import("./proof");
loadProofs().catch(() => undefined);

export function keepPageKey(key: string | null): void {
  localValues.set(UNDER, key);
}

/** The browser's `fetch`, with a proof. */
export const signedFetch = async (address: string, init?: RequestInit): Promise<Response> => {
  const { forgetChallenge, hear, proveRequest } = await loadProofs();
  const send = async () => {
    const headers = new Headers(init?.headers);
    headers.set("palaver-proof", await proveRequest(init?.method ?? "GET", address));
    return fetch(address, { credentials: "same-origin", ...init, headers });
  };
  try {
    const answer = await send();
    hear(answer);
    // A server that began anew has another challenge, and a browser that repeats a request by itself repeats its proof.
    if (answer.status !== UNAUTHORIZED || localValues.get(UNDER) === null) return answer;
    const second = await send();
    hear(second);
    return second;
  } catch (cause) {
    forgetChallenge();
    throw cause;
  }
};

/** What a WebSocket offers: the only header that a page can give it. */
export async function socketProtocols(address: string): Promise<string[]> {
  const proof = await (await loadProofs()).proveSocket(address);
  return proof ? ["palaver", `palaver.proof.${proof}`] : ["palaver"];
}

/** A socket ended, perhaps with its server. */
export function forgetServer(): void {
  void loadProofs().then(({ forgetChallenge }) => forgetChallenge());
}
