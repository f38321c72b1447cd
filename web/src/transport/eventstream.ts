/**
 * One conversation's log as the server stores it: its events as server-sent events, read with fetch.
 *
 * Called by the event inspector, which wants the bytes; everything else follows the socket. Must never retry: whoever calls
 * decides from where to go on.
 */

import type { SnapshotLine } from "../protocol/wire";
import { ApiError, asApiError, asWireError, parsed } from "./api";
import { signedFetch } from "./pagekey";

export type LogItem =
  | { kind: "event"; line: string }
  /** Instead of a hole. */
  | { kind: "snapshot"; snapshot: SnapshotLine }
  | { kind: "caught_up"; seq: number };

/** What a stream of server-sent events says, from pieces cut anywhere. */
export class EventStreamReader {
  private rest = "";

  push(piece: string): LogItem[] {
    const parts = (this.rest + piece).split("\n\n");
    this.rest = parts.pop() ?? "";
    return parts.flatMap((part) => itemOf(part) ?? []);
  }
}

function itemOf(part: string): LogItem | null {
  const caughtUp = /^: caught up at (\d+)$/m.exec(part);
  if (caughtUp) return { kind: "caught_up", seq: Number(caughtUp[1]) };
  const fields = new Map(part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trimStart()]));
  const data = fields.get("data");
  if (data === undefined) return null;
  if (fields.get("event") !== "snapshot") return { kind: "event", line: data };
  const snapshot = parsed(data);
  return snapshot === undefined ? null : { kind: "snapshot", snapshot: snapshot as SnapshotLine };
}

/** Everything after `after`, then whatever happens, until `signal` says so or the connection ends. */
export async function readLog(conversation: string, after: number, signal: AbortSignal, tell: (items: LogItem[]) => void): Promise<void> {
  try {
    const address = `/api/conversations/${encodeURIComponent(conversation)}/events?after=${after}`;
    const response = await signedFetch(address, { cache: "no-store", signal });
    if (!response.ok) throw new ApiError(response.status, asWireError(response.status, parsed(await response.text())));
    if (response.body === null) return;
    const stream = response.body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>).getReader();
    const reader = new EventStreamReader();
    for (let piece = await stream.read(); !piece.done; piece = await stream.read()) {
      const items = reader.push(piece.value);
      if (items.length > 0) tell(items);
    }
  } catch (cause) {
    throw asApiError(cause);
  }
}
