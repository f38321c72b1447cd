/** How a request ended, in words: what was decided and by whom. */

import type { Request } from "../../protocol/events.gen";
import { text } from "../../text";
import { asking } from "../../text.asking";
import { visible } from "../controls/visible";
import { faceOf, isAnothers, isHere, type Me } from "../me";

export function sayResolution(request: Request, me: Me): string {
  return text.join(sayDecision(request), sayWho(request, me));
}

function sayDecision({ kind, status, resolution, offers }: Request): string {
  switch (status) {
    case "expired":
      return asking.answered.expired;
    case "cancelled":
      return asking.answered.cancelled;
    case "superseded":
      return asking.answered.superseded;
    case "open":
      return text.tool.waiting;
    case "answered":
      break;
  }
  if (kind === "question") return resolution?.verdict === "deny" ? asking.answered.skipped : asking.answered.question;
  const allowed = resolution?.verdict === "allow";
  if (kind === "plan") {
    if (allowed) return asking.answered.planApproved;
    return resolution?.text ? asking.answered.planRevised : asking.answered.planRejected;
  }
  if (!allowed) return withMore(resolution?.then === "stop" ? asking.answered.deniedStop : asking.answered.denied, resolution?.text);
  const scope = resolution?.scope ?? "once";
  // What holds from now on is said, not only that something does.
  return withMore(asking.answered.allowedScope[scope], scope === "once" ? null : offers[resolution?.offer ?? 0]?.label);
}

function withMore(decision: string, more: string | null | undefined): string {
  return more ? `${decision}: ${visible(more)}` : decision;
}

function sayWho({ status, resolution }: Request, me: Me): string | null {
  const by = resolution?.by;
  if (status !== "answered" || !by) return null;
  if (isHere(by, me)) return asking.answered.byYou;
  const face = faceOf(by);
  const who = isAnothers(by, me) ? asking.answered.by(by.user ?? "") : asking.answered.elsewhere;
  return text.join(who, face && text.message.via(face));
}
