/** How a request ended, in words: what was decided and by whom. */

import type { Request } from "../../protocol/events.gen";
import { text } from "../../text";
import { faceOf, witness } from "../witness";

export function sayResolution(request: Request): string {
  return text.join(sayDecision(request), sayWho(request));
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

function sayWho(request: Request): string | null {
  if (request.status !== "answered") return null;
  if (witness.here(request.id)) return text.answered.byYou;
  const face = faceOf(request.resolution?.by);
  if (witness.elsewhere(request.id)) return text.join(text.answered.elsewhere, face && text.message.via(face));
  return face && text.message.via(face);
}
