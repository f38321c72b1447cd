/**
 * System notices about what waits: whether the person of this device wants them, and what each says. Remembered on this device;
 * nothing is asked of the browser before somebody switches them on.
 */

import type { Happening } from "../../model/happened";
import type { WaitingRequest } from "../../protocol/wire";
import { text } from "../../text";
import { device } from "../../text.device";
import { asking } from "../../text.asking";
import { visible } from "../controls/visible";
import { whatOf } from "../dock/what";

const KEY = "palaver.notices";
const MUTED_UNDER = "palaver.notices.muted";

export type NoticeKind = "waiting" | "done" | "failed";

export const NOTICE_KINDS: readonly NoticeKind[] = ["waiting", "done", "failed"];

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

function muted(): readonly string[] {
  try {
    return (localStorage.getItem(MUTED_UNDER) ?? "").split(" ").filter(Boolean);
  } catch {
    return [];
  }
}

export function isMuted(kind: NoticeKind): boolean {
  return muted().includes(kind);
}

export function mute(kind: NoticeKind, on: boolean): void {
  const others = muted().filter((known) => known !== kind);
  try {
    localStorage.setItem(MUTED_UNDER, (on ? [...others, kind] : others).join(" "));
  } catch {
    // No storage, no memory of it: nothing is muted.
  }
}

/**
 * Through the worker where there is one: on a phone a page cannot show any by itself, and a press on it finds the page again
 * after it was closed. `tag` is one for all tabs: the second to tell of a thing only repeats the first.
 */
export function showNotice({ title, body }: Notice, tag: string, address: string, onPress: () => void): void {
  const options = { body, tag, icon: "/icon-192.png" };
  const controlled = "serviceWorker" in navigator && navigator.serviceWorker.controller !== null;
  if (controlled) {
    void navigator.serviceWorker.ready.then((worker) => worker.showNotification(title, { ...options, data: { address } })).catch(() => undefined);
    return;
  }
  const notice = new Notification(title, options);
  notice.onclick = () => {
    window.focus();
    onPress();
    notice.close();
  };
}

/** Whoever is back has no need of them any more. */
export async function closeNotices(): Promise<void> {
  const worker = await navigator.serviceWorker?.getRegistration().catch(() => undefined);
  for (const notice of (await worker?.getNotifications()) ?? []) notice.close();
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
  return { title: asking.waiting.notice(agent), body: text.join(sayWhat(request), title) };
}

export function noticeOfEnd({ kind, title, lastLine }: Happening, agent: string): Notice {
  return { title: device.noticeOf[kind](agent), body: text.join(title || text.list.untitled, lastLine) };
}

function sayWhat(request: WaitingRequest["request"]): string {
  if (request.kind === "question") return visible(request.questions[0]?.question ?? asking.question.label);
  if (request.kind === "plan") return visible(request.plan?.summary ?? asking.planRequest.ask);
  return visible(request.title ?? whatOf(request));
}
