/**
 * From a text frame of the socket to lines the page can trust.
 *
 * An event is checked against the shapes that the schema generates, because the page must skip exactly the events that
 * the server's own fold skips: unknown types, and known ones with a field that cannot be read. Those are kept as opaque
 * events, so that `seq` moves on. Called by the feed; must never throw on what a server sends.
 */

import type { KnownEvent } from "./events.gen";
import { EVENTS, type Field, PARTS, STAMP, type Type } from "./shapes.gen";
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

type Plain = Record<string, unknown>;

/** The lines of one frame. What is not JSON, or has neither a `type` nor a place to go, is left out. */
export function parseFrame(text: string): ServerLine[] {
  const lines: ServerLine[] = [];
  for (const line of text.split("\n")) {
    const raw = parsed(line);
    if (!isPlain(raw)) continue;
    if (isControl(raw)) {
      lines.push({ kind: "control", line: raw });
      continue;
    }
    const event = readEvent(raw);
    if (event !== null && event.seq > 0 && event.conversation !== "") lines.push({ kind: "event", event });
  }
  return lines;
}

/** One parsed event object: known and readable, or opaque. Null when it is no event at all. */
export function readEvent(raw: unknown): AnyEvent | null {
  if (!isPlain(raw) || typeof raw["type"] !== "string") return null;
  const fields = Object.hasOwn(EVENTS, raw["type"]) ? EVENTS[raw["type"]] : undefined;
  return fields !== undefined && fit(raw, fields) ? (raw as unknown as KnownEvent) : opaque(raw, raw["type"]);
}

function parsed(line: string): unknown {
  if (line === "") return null;
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

function isPlain(value: unknown): value is Plain {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isControl(raw: Plain): raw is Plain & ControlLine {
  switch (raw["type"]) {
    case "hello":
      return typeof raw["version"] === "string" && typeof raw["epoch"] === "string";
    case "snapshot":
      return typeof raw["conversation"] === "string" && Number.isInteger(raw["seq"]) && isPlain(raw["state"]);
    case "caught_up":
      return typeof raw["conversation"] === "string" && Number.isInteger(raw["seq"]);
    case "listed":
      return Array.isArray(raw["items"]) && Number.isInteger(raw["pos"]);
    case "error":
      return typeof raw["code"] === "string" && typeof raw["message"] === "string";
    case "heartbeat":
    case "pong":
      return true;
    default:
      return false;
  }
}

function opaque(raw: Plain, of: string): OpaqueEvent | null {
  const { seq = 0, id = "", ts = 0, conversation = "" } = raw;
  if (!isInt(seq) || typeof id !== "string" || !isInt(ts) || typeof conversation !== "string") return null;
  return { type: "opaque", of, seq, id, ts, conversation, raw };
}

/** Checks an event in place. Its parts are replaced by what the server's fold would hold: known fields, defaults filled in. */
function fit(raw: Plain, fields: Readonly<Record<string, Field>>): boolean {
  for (const key in raw) {
    const field = own(fields, key) ?? own(STAMP, key);
    if (field === undefined) continue;
    const value = raw[key];
    const known = conform(field[0], value);
    if (known === MISFIT) return false;
    if (known !== value) raw[key] = known;
  }
  for (const key in fields) {
    if (fields[key]?.length === 1 && !(key in raw)) return false;
  }
  raw["seq"] ??= 0;
  raw["id"] ??= "";
  raw["ts"] ??= 0;
  raw["conversation"] ??= "";
  return true;
}

const MISFIT = Symbol("misfit");

function conform(type: Type, value: unknown): unknown {
  if (typeof type === "string") return isPrimitive(type, value) ? value : MISFIT;
  const [sort, inner = "any"] = type;
  switch (sort) {
    case "?":
      return value === null ? null : conform(inner, value);
    case "=":
      return type.indexOf(value as Type, 1) > 0 ? value : MISFIT;
    case "[]":
      return Array.isArray(value) ? all(inner, value) : MISFIT;
    case "{}":
      return isPlain(value) ? allValues(inner, value) : MISFIT;
    case "@":
      return part(inner as string, value);
    case "|": {
      const at = isPlain(value) ? type.indexOf(value["type"] as Type, 1) : -1;
      return at % 2 === 1 ? part(type[at + 1] as string, value) : MISFIT;
    }
    default:
      return MISFIT;
  }
}

function isPrimitive(type: string, value: unknown): boolean {
  switch (type) {
    case "any":
      return true;
    case "int":
      return isInt(value);
    case "num":
      return typeof value === "number";
    case "str":
      return typeof value === "string";
    case "bool":
      return typeof value === "boolean";
    default:
      return false;
  }
}

function isInt(value: unknown): value is number {
  return Number.isInteger(value);
}

function all(type: Type, values: unknown[]): unknown {
  if (type === "any") return values;
  const known = values.map((value) => conform(type, value));
  return known.includes(MISFIT) ? MISFIT : known;
}

function allValues(type: Type, values: Plain): unknown {
  if (type === "any") return values;
  return Object.values(values).some((value) => conform(type, value) === MISFIT) ? MISFIT : values;
}

function part(name: string, value: unknown): unknown {
  const shape = PARTS[name];
  if (shape === undefined || !isPlain(value)) return MISFIT;
  const known: Plain = {};
  for (const key in shape.fields) {
    const [type, ...fallback] = shape.fields[key] as Field;
    if (!Object.hasOwn(value, key)) {
      if (fallback.length === 0) return MISFIT;
      if (!shape.omits) known[key] = fallback[0];
      continue;
    }
    const held = conform(type, value[key]);
    if (held === MISFIT) return MISFIT;
    if (!(shape.omits && fallback.length > 0 && isSame(held, fallback[0]))) known[key] = held;
  }
  return known;
}

/**
 * Whether the server's encoder would leave this value out. It compares by identity, so a default that was written out
 * stays written out, unless there is only one such value: null, a boolean, zero, or something empty.
 */
function isSame(value: unknown, fallback: unknown): boolean {
  if (typeof value === "string") return value === "" && fallback === "";
  if (typeof value !== "object" || value === null) return value === fallback;
  return typeof fallback === "object" && fallback !== null && Object.keys(value).length === 0;
}

function own(fields: Readonly<Record<string, Field>>, key: string): Field | undefined {
  return Object.hasOwn(fields, key) ? fields[key] : undefined;
}
