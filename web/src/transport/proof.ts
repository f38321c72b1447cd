/**
 * Proofs of the page key: what goes with every request and socket in place of the key, each good for one of them.
 *
 * Loaded by pagekey.ts when the first request is made. Whoever answers at this address may not be our server any more, so the
 * key itself is never sent: the browser keeps it where scripts can use it but not read it. Where a page has no such keys (plain
 * HTTP beyond this machine, no database), the key stays in the storage of this origin. people/proofs.py checks what is made here.
 */

import { localValues } from "./storage";

const UNDER = "palaver.key";
const STORE = "keys";

/** The server keeps one for five minutes at least. */
const FRESH_MS = 120_000;

/** In place of a method: no request of HTTP has it. */
const SOCKET = "SOCKET";

const CHALLENGE = "palaver-challenge";

type Sign = (text: string) => Promise<ArrayBuffer | Uint8Array>;

let challenge: { text: string; heardAt: number } | null = null;
let asking: Promise<void> | null = null;
let signer: { name: string; session: string; sign: Sign } | null = null;

/** Somebody else may answer next. */
export function forgetChallenge(): void {
  challenge = null;
}

/** What an answer says for the next proof. */
export function hear(answer: Response): void {
  const text = answer.headers.get(CHALLENGE);
  if (text !== null) challenge = { text, heardAt: Date.now() };
}

/** Empty: there is no key, and nobody is signed in. */
export async function proveRequest(method: string, address: string): Promise<string> {
  const { pathname, search } = new URL(address, location.href);
  return prove(method, pathname + search);
}

export async function proveSocket(address: string): Promise<string> {
  return proveRequest(SOCKET, address);
}

async function prove(method: string, target: string): Promise<string> {
  if (localValues.get(UNDER) === null) return "";
  const [key, current] = await Promise.all([currentSigner(), freshChallenge()]);
  if (key === null) return "";
  const once = base64(crypto.getRandomValues(new Uint8Array(9)));
  const mac = await key.sign([current, once, method, location.host, target].join("\n"));
  return [key.session, current, once, base64(new Uint8Array(mac))].join(".");
}

async function freshChallenge(): Promise<string> {
  if (challenge === null || Date.now() - challenge.heardAt > FRESH_MS) {
    // Whoever else wants one meanwhile waits for the same.
    asking ??= fetch("/api/health", { cache: "no-store", headers: { "palaver-proof": "" } })
      .then(hear)
      .finally(() => {
        asking = null;
      });
    await asking;
  }
  if (challenge === null) throw new TypeError("the server named no challenge");
  return challenge.text;
}

/** The key of the sign-in that holds now: another tab may have signed in anew. */
async function currentSigner(): Promise<typeof signer> {
  const name = localValues.get(UNDER);
  if (name === null) return null;
  if (signer?.name === name) return signer;
  const [session = "", secret] = name.split(".");
  const sign = secret === undefined ? await keptSigner(session) : await newSigner(session, secret);
  signer = sign && { name: localValues.get(UNDER) ?? name, session, sign };
  return signer;
}

async function keptSigner(session: string): Promise<Sign | null> {
  const key = await inStore<CryptoKey | undefined>("readonly", (store) => store.get(session)).catch(() => undefined);
  return key ? signerWith(key) : null;
}

/** Moves the key to where no script can read it; a name remains in its place. */
async function newSigner(session: string, secret: string): Promise<Sign> {
  const bytes = new TextEncoder().encode(secret);
  if (!globalThis.crypto?.subtle) {
    const { hmacSha256 } = await import("./hmac");
    return async (text) => hmacSha256(bytes, new TextEncoder().encode(text));
  }
  const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  try {
    await inStore("readwrite", (store) => {
      store.clear();
      return store.put(key, session);
    });
    if (localValues.get(UNDER) === `${session}.${secret}`) localValues.set(UNDER, session);
  } catch {
    // A browser that keeps no keys, as some private windows: it stays where it is.
  }
  return signerWith(key);
}

function signerWith(key: CryptoKey): Sign {
  return (text) => crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text));
}

function inStore<Answer>(mode: IDBTransactionMode, ask: (store: IDBObjectStore) => IDBRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(UNDER, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const database = opening.result;
      const change = database.transaction(STORE, mode);
      const request = ask(change.objectStore(STORE));
      change.oncomplete = () => {
        database.close();
        resolve(request.result as Answer);
      };
      change.onabort = () => {
        database.close();
        reject(change.error);
      };
    };
  });
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
