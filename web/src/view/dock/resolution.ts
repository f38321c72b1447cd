/** How a request ended, in words: what was decided and by whom. */

import type { Request } from "../../protocol/events.gen";
import { text } from "../../text";
import { faceOf, isAnothers, isHere, type Me } from "../me";

export function sayResolution(request: Request, me: Me): string {
  return text.join(sayDecision(request), sayWho(request, me));
}

function sayDecision({ kind, status, resolution }: Request): string {
  switch (status) {
    case "expired":
      return text.answered.expired;
    case "cancelled":
      return text.answered.cancelled;
    case "superseded":
      return text.answered.superseded;
    case "open":
      return text.tool.waiting;
    case "answered":
      break;
  }
  if (kind === "question") return text.answered.question;
  const allowed = resolution?.verdict === "allow";
  if (kind === "plan") {
    if (allowed) return text.answered.planApproved;
    return resolution?.text ? text.answered.planRevised : text.answered.planRejected;
  }
  if (!allowed) return resolution?.then === "stop" ? text.answered.deniedStop : text.answered.denied;
  return text.answered.allowedScope[resolution?.scope ?? "once"];
}

function sayWho({ status, resolution }: Request, me: Me): string | null {
  const by = resolution?.by;
  if (status !== "answered" || !by) return null;
  if (isHere(by, me)) return text.answered.byYou;
  const face = faceOf(by);
  const who = isAnothers(by, me) ? text.answered.by(by.user ?? "") : text.answered.elsewhere;
  return text.join(who, face && text.message.via(face));
}
