/**
 * From a text frame of the socket to lines the page can trust.
 *
 * An event is checked against the shapes that the schema generates, because the page must skip exactly the events that
 * the server's own fold skips: unknown types, and known ones with a field that cannot be read. Those are kept as opaque
 * events, so that `seq` moves on. Called by the feed; must never throw on what a server sends.
 */

import type { KnownEvent } from "./events.gen";
import type { ControlLine } from "./wire";

/** An event this page does not know, or cannot read. The fold only moves `seq` on. */
export interface OpaqueEvent {
  type: "opaque";
  /** The type it carries on the wire. */
  of: string;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  raw: unknown;
}

export type AnyEvent = KnownEvent | OpaqueEvent;

export type ServerLine = { kind: "event"; event: AnyEvent } | { kind: "control"; line: ControlLine };

/** The lines of one frame. What is not JSON, or has neither a `type` nor a place to go, is left out. */
export function parseFrame(_text: string): ServerLine[] {
  throw new Error("stub");
}

/** One parsed event object: known and readable, or opaque. */
export function readEvent(_raw: unknown): AnyEvent | null {
  throw new Error("stub");
}
