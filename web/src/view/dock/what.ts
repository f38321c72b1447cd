/** What a request is about, in one line. Pure. */

import { kindOf } from "../../model/toolkind";
import type { Request } from "../../protocol/events.gen";
import { asking } from "../../text.asking";
import { later } from "../../text.later";
import { visible } from "../controls/visible";
import { objectOf } from "../tools/say";

/** What an approval would allow: "run a command", "change a file: src/x.py". */
export function whatOf(request: Request): string {
  const { kinds } = asking.approval;
  if (request.tool === null) return visible(request.title ?? later.tool.unknown);
  // A server may call its tool anything, `bash` too: who carries it out is part of what is asked.
  const kind = request.tool.startsWith("mcp__") ? "other" : kindOf(request.tool);
  if (kind === "edit" || kind === "write" || kind === "patch") {
    const object = visible(objectOf(request.tool, request.input));
    return object ? `${kinds[kind]}: ${object}` : kinds[kind];
  }
  if (kind === "shell" || kind === "fetch") return kinds[kind];
  return kinds.other(visible(request.tool));
}

/** Who wants what, of whatever kind. */
export function whatIs(request: Request, agent: string): string {
  switch (request.kind) {
    case "approval":
      if (request.tool === null) return visible(request.title ?? asking.approval.spendLabel);
      return request.title ? `${agent}: ${visible(request.title)}` : asking.approval.asks(agent, whatOf(request));
    case "question":
      return `${agent}: ${visible(request.questions[0]?.question ?? asking.question.label)}`;
    case "plan":
      return asking.planRequest.asks(agent);
  }
}
