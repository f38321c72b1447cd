/**
 * System notices about what waits: whether the person of this device wants them, and what each says. Remembered on this device;
 * nothing is asked of the browser before somebody switches them on.
 */

import type { WaitingRequest } from "../../protocol/wire";
import { text } from "../../text";
import { later } from "../../text.later";
import { visible } from "../controls/visible";
import { whatOf } from "../dock/what";

const KEY = "palaver.notices";

export type Permission = "off" | "on" | "denied" | "missing";

export function permission(): Permission {
  if (!("Notification" in window)) return "missing";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && wanted() ? "on" : "off";
}

function wanted(): boolean {
  try {
    return localStorage.getItem(KEY) === "on";
  } catch {
    return false;
  }
}

export async function switchNotices(on: boolean): Promise<Permission> {
  try {
    localStorage.setItem(KEY, on ? "on" : "off");
  } catch {
    // No storage, no memory of it: they stay off.
  }
  if (on && "Notification" in window && Notification.permission === "default") await Notification.requestPermission();
  return permission();
}

/** What came since: each request is told once, and what was there at first is not news. */
export class Told {
  private known: Set<string> | null = null;

  fresh(items: readonly WaitingRequest[]): readonly WaitingRequest[] {
    const known = this.known;
    this.known = new Set([...(known ?? []), ...items.map(({ request }) => request.id)]);
    return known === null ? [] : items.filter(({ request }) => !known.has(request.id));
  }
}

export interface Notice {
  title: string;
  body: string;
}

export function noticeOf({ title, request }: WaitingRequest, agent: string): Notice {
  return { title: later.waiting.notice(agent), body: text.join(sayWhat(request), title) };
}

function sayWhat(request: WaitingRequest["request"]): string {
  if (request.kind === "question") return request.questions[0]?.question ?? later.question.label;
  if (request.kind === "plan") return request.plan?.summary ?? later.planRequest.ask;
  return visible(request.title ?? whatOf(request));
}
