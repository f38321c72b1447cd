/**
 * The outbox: every command gets a client request id here, waits while there is no connection, and is sent again under
 * the same id until the server answers. So a command takes effect once, whatever the network does.
 *
 * Called by the store. Calls the API's `command`. Must never send a command under a new id, nor drop one unanswered.
 */

import type { Accepted, Command, WireError } from "../protocol/events.gen";

/**
 * `waiting`: not sent, there is no connection. `sending`: on its way, perhaps not for the first time. `accepted`: on the
 * server's disk; gone from the outbox once its event is seen. `failed`: refused; it stays until retried or discarded.
 */
export type OutboxStatus = "waiting" | "sending" | "accepted" | "failed";

export interface OutboxEntry {
  readonly id: string;
  readonly conversation: string;
  readonly command: Command;
  readonly status: OutboxStatus;
  readonly createdAt: number;
  readonly attempts: number;
  readonly accepted: Accepted | null;
  readonly error: WireError | null;
}
