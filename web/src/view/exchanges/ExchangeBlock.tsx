/** A message to another agent: to whom and what became of it in one line; opens to the message, what was done, the answer. */

import { renderMarkdown } from "../../model/markdown";
import type { Exchange, ToolBlock } from "../../protocol/events.gen";
import { said } from "../../sentences";
import { text } from "../../text";
import { later } from "../../text.later";
import { work } from "../../text.work";
import { useAgentName } from "../agents";
import { useConversationId } from "../conversation/scope";
import { Icon } from "../controls/Icon";
import { ScreenLink } from "../frame/ScreenLink";
import { addressOf } from "../route";
import { useDisclosed, usePicked } from "../store";
import { firstLine } from "../subagents/say";
import { Peek } from "../subagents/Peek";
import { useWaiting } from "../subagents/waiting";
import { toneClass } from "../tools/say";
import { Markdown } from "../transcript/Markdown";
import { LiveTime } from "../transcript/Thinking";
import { Words } from "../transcript/UserMessage";
import { answerIn, callbackOf, contentOf, outcomeOf, sayNone, sayStatus } from "./say";

interface ExchangeBlockProps {
  place: string;
  block: ToolBlock;
  exchange: Exchange;
}

const TONE: Record<Exchange["status"], ToolBlock["status"]> = {
  sent: "running",
  started: "running",
  queued: "ok",
  timeout: "ok",
  complete: "ok",
  failed: "error",
  cancelled: "interrupted",
};

export function ExchangeBlock({ place, block, exchange }: ExchangeBlockProps) {
  const [open, setOpen] = useDisclosed(place);
  const name = useAgentName(exchange.agent);
  const waiting = useWaiting(exchange.conversation ?? "");
  const asked = waiting > 0 && exchange.finished_at === null;
  const live = exchange.status === "sent" || exchange.status === "started";
  return (
    <div className={`tool work ${toneClass(asked ? "waiting" : TONE[exchange.status])}`}>
      <button type="button" className="tool-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className={live ? "tool-icon alive" : "tool-icon"}>
          <Icon name="letter" />
        </span>
        <span className="tool-verb">{work.exchange.to(name)}</span>
        <span className="tool-object">{firstLine(contentOf(block))}</span>
        {live && exchange.started_at !== null && <LiveTime since={exchange.started_at} />}
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
        <span className="tool-result">{asked ? work.subagent.states.waiting : sayStatus(exchange)}</span>
      </button>
      {open && <Body place={place} block={block} exchange={exchange} name={name} />}
    </div>
  );
}

function Body({ place, block, exchange, name }: ExchangeBlockProps & { name: string }) {
  const here = useConversationId();
  const [watching, setWatching] = useDisclosed(`peek:${place}`);
  const outcome = outcomeOf(block);
  const callback = usePicked(here, ({ state }) => callbackOf(state.messages, exchange.id));
  const brought = callback?.blocks.find((part) => part.type === "text")?.text;
  const answer = outcome.response ?? (brought === undefined ? null : answerIn(brought));
  const calls = useCallCount(exchange, outcome.toolCallCount ?? exchange.tool_call_count);
  return (
    <div className="tool-body">
      <div className="tool-section">
        <p className="tool-heading">{work.exchange.message}</p>
        <Words place={`letter:${place}`} value={contentOf(block)} />
      </div>
      {watching && exchange.conversation && <Peek conversation={exchange.conversation} agent={name} exchange={exchange.id} />}
      <div className="tool-section">
        <p className="tool-heading">{work.exchange.answer}</p>
        {answer ? <Markdown place={`answer:${place}`} parts={renderMarkdown(answer)} /> : <p className="tool-none">{sayNone(exchange)}</p>}
        {block.error && <p className="tool-error">{said(block.error.message)}</p>}
      </div>
      <p className="work-foot">
        <span>{text.join(calls !== null && work.exchange.calls(calls), outcome.durationMs !== null && later.tool.took(outcome.durationMs))}</span>
        {exchange.conversation && (
          <>
            <button type="button" className="link-button" aria-expanded={watching} onClick={() => setWatching(!watching)}>
              {watching ? work.exchange.hide : work.exchange.show(name)}
            </button>
            <ScreenLink to={addressOf(exchange.conversation)}>{work.subagent.open}</ScreenLink>
          </>
        )}
        {callback && <ScreenLink to={placeOf(here, callback.id)}>{work.exchange.down}</ScreenLink>}
      </p>
    </div>
  );
}

/** What the other side was told to have called; else what is seen there, while it is looked at. */
function useCallCount({ conversation, id }: Exchange, told: number | null): number | null {
  const seen = usePicked(conversation ?? "", ({ state }) => {
    const messages = state.messages.filter((message) => message.exchange === id);
    return messages.length === 0 ? null : messages.flatMap(({ blocks }) => blocks).filter(({ type }) => type === "tool").length;
  });
  return told ?? seen ?? null;
}

/** The address of a message. */
export function placeOf(conversation: string, message: string): string {
  return `${addressOf(conversation)}#m=${encodeURIComponent(message)}`;
}
