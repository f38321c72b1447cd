/** A process in words. Pure. */

import type { ApiError } from "../../transport/api";
import type { ProcessEntry } from "../../transport/api.later";
import { elapsed } from "../../measures";
import { said } from "../../sentences";
import { places } from "../../text.places";

/** The same process in two answers: a number is used again by the system one day, hence the time. */
export function keyOf({ kind, pid, conversation, command, started_at }: ProcessEntry): string {
  return `${kind}:${pid ?? `${conversation} ${command}`}:${started_at ?? ""}`;
}

/** Why it was not ended, and what to do. */
export function refusalOf({ status, message }: ApiError): string {
  if (status === 404) return places.processTable.gone;
  if (status === 409) return message ? said(message) : places.processTable.busyRefusal;
  if (status === 403) return places.frame.forbidden;
  return `${places.processTable.endFailed} ${said(message)}`;
}

export function stateOf({ kind, busy, idle_s }: ProcessEntry): string {
  if (kind === "background") return places.processTable.background;
  return busy ? places.processTable.busy : places.processTable.idle(elapsed(idle_s * 1000));
}
