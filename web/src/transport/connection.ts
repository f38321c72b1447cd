/** What the connection banner says. Made by the feed, drawn by the view; times are milliseconds of the feed's clock. */

export type Connection =
  /** The first connection of this page. */
  | { kind: "connecting" }
  /** `caughtUpCount`: events that arrived after a loss, until something else happens; null after an ordinary start. */
  | { kind: "open"; since: number; caughtUpCount: number | null }
  /** `lastSeen`: when the server was last heard, 0 if never. */
  | { kind: "reconnecting"; attempt: number; retryAt: number; lastSeen: number }
  /** The browser says there is no network; the `online` event brings the next try. */
  | { kind: "offline"; lastSeen: number }
  | { kind: "catching_up"; receivedCount: number }
  | { kind: "signed_out" }
  /** Everything works, but the server has a newer page: offer to reload. */
  | { kind: "version_mismatch"; page: string; server: string };
