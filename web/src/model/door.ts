/**
 * Who we are to the server: signed in, signed out, or before a server that does not answer, where this device's copy is shown.
 *
 * Owned by the store, which it tells what to show and to take away; lets the feed connect. The feed asks here again when nobody
 * answers it.
 */

import type { WireError } from "../protocol/events.gen";
import type { Credentials } from "../protocol/wire";
import { ApiError, asApiError } from "../transport/api";
import { backoffMs } from "../transport/backoff";
import type { Feed } from "../transport/feed";
import type { OfflineCopy, Ports } from "../transport/ports";
import type { Alarms } from "./pace";
import type { SessionState, Snapshot } from "./snapshot";

/** That somebody was signed in on this device, so that an end of it can be called one. */
const SIGNED_IN_UNDER = "palaver.signed_in";

/** What it wants of the store. */
interface House {
  getSnapshot(): Snapshot;
  publish(change: Partial<Snapshot>): void;
  flush(): void;
  showCopy(copy: OfflineCopy): void;
  /** Nothing of what was shown stays. */
  clear(): void;
  /** Nor of what was written. */
  forget(): void;
}

export class Door {
  private readonly ports: Ports;
  private readonly feed: Feed;
  private readonly alarms: Alarms;
  private readonly house: House;
  private checking = false;
  /** Shown while the server does not answer. */
  copy: OfflineCopy | null = null;

  constructor(ports: Ports, feed: Feed, alarms: Alarms, house: House) {
    this.ports = ports;
    this.feed = feed;
    this.alarms = alarms;
    this.house = house;
  }

  async check(attempt = 0): Promise<void> {
    if (this.checking) return;
    this.checking = true;
    const answer = await this.ports.api.session().catch(asApiError);
    this.checking = false;
    const { session } = this.house.getSnapshot();
    if (!(answer instanceof ApiError)) this.enter({ phase: "signed_in", session: answer, error: null });
    // Why a link or a token was refused stays to be read.
    else if (answer.signedOut) this.leave(session.error);
    else if (session.phase !== "signed_in") {
      // Once signed in the feed's own tries bring us back here.
      this.house.publish({ session: { phase: "unreachable", session: this.copy?.session ?? null, error: answer.error } });
      if (this.copy === null) void this.showCopy();
      this.alarms.set("session", backoffMs(attempt, this.ports.random), () => void this.check(attempt + 1));
    }
  }

  /** At once, if it is the server that does not answer. */
  checkNow(): boolean {
    const waits = this.house.getSnapshot().session.phase === "unreachable";
    if (waits) {
      this.alarms.clear("session");
      void this.check();
    }
    return waits;
  }

  async signIn(credentials: Credentials): Promise<boolean> {
    this.house.publish({ session: { phase: "checking", session: null, error: null } });
    const answer = await this.ports.api.signIn(credentials).catch(asApiError);
    if (answer instanceof ApiError) {
      this.house.publish({ session: { phase: "signed_out", session: null, error: answer.error } });
      return false;
    }
    const { key, ...session } = answer;
    this.ports.keepPageKey(key);
    this.enter({ phase: "signed_in", session, error: null });
    return true;
  }

  async signOut(): Promise<void> {
    await this.ports.api.signOut().catch(() => undefined);
    this.house.forget();
    this.leave(null, "left");
    this.house.flush();
  }

  leave(error: WireError | null, ended?: "left"): void {
    const wasIn = this.ports.device.get(SIGNED_IN_UNDER) !== null;
    if (ended !== undefined) {
      this.ports.device.set(SIGNED_IN_UNDER, null);
      this.ports.keepPageKey(null);
    }
    if (this.copy !== null) {
      this.dropCopy();
      this.house.clear();
      this.house.flush();
    }
    this.feed.signOut();
    const why = ended ?? (wasIn ? ("expired" as const) : undefined);
    this.house.publish({ session: { phase: "signed_out", session: null, error, ...(why && { ended: why }) } });
  }

  private enter(session: SessionState): void {
    this.dropCopy();
    this.ports.device.set(SIGNED_IN_UNDER, "yes");
    this.house.publish({ session });
    this.feed.start();
  }

  private async showCopy(): Promise<void> {
    const copy = await this.ports.offlineCopy();
    const { session } = this.house.getSnapshot();
    if (copy === null || session.phase !== "unreachable") return;
    this.copy = copy;
    this.house.publish({ session: { ...session, session: copy.session }, copiedAt: copy.savedAt, agents: { phase: "ready", items: copy.agents } });
    this.house.showCopy(copy);
  }

  private dropCopy(): void {
    this.copy = null;
    if (this.house.getSnapshot().copiedAt !== null) this.house.publish({ copiedAt: null });
  }
}
