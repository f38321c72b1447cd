/**
 * The copy of what was last seen on this device: the list, the last conversations, and whose they are.
 *
 * Written by the keeper while somebody is signed in, read by the store when the server does not answer, cleared when nobody is
 * signed in any more. It lives in the browser's database, and only there. Must never hold what two different people saw.
 */

import type { Listing, State } from "../protocol/events.gen";
import type { AgentEntry, Session } from "../protocol/wire";

const DATABASE = "palaver";
const ABOUT = "about";
const STATES = "states";

/** Whoever wants more has a server. */
const KEEP_STATES = 30;

/** Messages of each: about three screens more than is usually on one. */
const KEEP_MESSAGES = 100;

/** One conversation's share of what a browser lends. */
const STATE_CHARS = 2_000_000;

export interface About {
  readonly session: Session;
  readonly agents: readonly AgentEntry[];
  readonly rows: readonly Listing[];
  readonly savedAt: number;
}

interface KeptState {
  id: string;
  savedAt: number;
  state: State;
}

/** Two people of one server, or one person with other rights, are two owners. */
export function ownerOf({ server, user, role }: Session): string {
  return JSON.stringify([server, user, role ?? null]);
}

/** The end of a conversation, with nothing in it that only this moment needs. Null when even that is too much. */
export function abridged(state: State): State | null {
  const over = Math.max(0, state.messages.length - KEEP_MESSAGES);
  const kept = { ...state, offset: state.offset + over, messages: state.messages.slice(over) };
  return JSON.stringify(kept).length > STATE_CHARS ? null : kept;
}

async function open(): Promise<IDBDatabase> {
  const asked = indexedDB.open(DATABASE, 1);
  asked.onupgradeneeded = () => {
    asked.result.createObjectStore(ABOUT);
    asked.result.createObjectStore(STATES, { keyPath: "id" }).createIndex("savedAt", "savedAt");
  };
  return answered(asked);
}

function answered<T>(asked: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error ?? new Error("The browser's database did not answer."));
  });
}

/** One transaction over both, on a connection of its own: nothing stays open that another tab would have to wait for. */
async function within<T>(mode: IDBTransactionMode, run: (about: IDBObjectStore, states: IDBObjectStore) => Promise<T>): Promise<T> {
  const database = await open();
  try {
    const transaction = database.transaction([ABOUT, STATES], mode);
    const done = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error("The copy was not written."));
    });
    const result = await run(transaction.objectStore(ABOUT), transaction.objectStore(STATES));
    await done;
    return result;
  } finally {
    database.close();
  }
}

export async function saveCopy(about: About, states: ReadonlyMap<string, State>): Promise<void> {
  await within("readwrite", async (abouts, kept) => {
    const before = (await answered(abouts.get(ABOUT))) as About | undefined;
    if (before !== undefined && ownerOf(before.session) !== ownerOf(about.session)) kept.clear();
    abouts.put(about, ABOUT);
    for (const [id, state] of states) {
      if (state.deleted) kept.delete(id);
      else kept.put({ id, savedAt: about.savedAt, state } satisfies KeptState);
    }
    const keys = await answered(kept.index("savedAt").getAllKeys());
    for (const key of keys.slice(0, Math.max(0, keys.length - KEEP_STATES))) kept.delete(key);
  });
}

export interface Copy extends About {
  state(id: string): Promise<State | null>;
}

export async function readCopy(): Promise<Copy | null> {
  const about = await within("readonly", async (abouts) => (await answered(abouts.get(ABOUT))) as About | undefined);
  if (about === undefined) return null;
  const state = async (id: string): Promise<State | null> =>
    within("readonly", async (_, states) => ((await answered(states.get(id))) as KeptState | undefined)?.state ?? null);
  return { ...about, state };
}

export async function copySize(): Promise<{ savedAt: number; conversations: number } | null> {
  return within("readonly", async (abouts, states) => {
    const about = (await answered(abouts.get(ABOUT))) as About | undefined;
    const conversations = await answered(states.count());
    return about === undefined ? null : { savedAt: about.savedAt, conversations };
  });
}

export async function clearCopy(): Promise<void> {
  await within("readwrite", async (abouts, states) => {
    abouts.clear();
    states.clear();
  });
}
