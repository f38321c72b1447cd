/** The answer of another agent that came back by itself and began a turn, with the way to the message it answers. */

import { renderMarkdown } from "../../model/markdown";
import type { NoteRow } from "../../model/rows";
import { work } from "../../text.work";
import { useAgentName } from "../agents";
import { useConversationId } from "../conversation/scope";
import { Icon } from "../controls/Icon";
import { ScreenLink } from "../frame/ScreenLink";
import { addressOf } from "../route";
import { useDisclosed, usePicked } from "../store";
import { firstLine } from "../subagents/say";
import { Markdown } from "../transcript/Markdown";
import { placeOf } from "./ExchangeBlock";
import { answerIn, callOf } from "./say";
import "../../style/work.css";

export default function Callback({ row }: { row: NoteRow }) {
  const here = useConversationId();
  const { exchange: id, origin } = row.message;
  const [open, setOpen] = useDisclosed(row.key, true);
  const exchange = usePicked(here, ({ state }) => state.exchanges.find((known) => known.id === id && known.direction === "out"));
  const asked = usePicked(here, ({ state }) => (id === null ? undefined : callOf(state.messages, id)?.id));
  const agent = origin?.agent ?? exchange?.agent ?? "";
  const name = useAgentName(agent);
  const conversation = origin?.conversation ?? exchange?.conversation;
  const answer = answerIn(row.text);
  return (
    <div className={exchange?.status === "failed" ? "tool work agent-callback error is-error" : "tool work agent-callback"}>
      <button type="button" className="tool-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="tool-icon">
          <Icon name="letter" />
        </span>
        <span className="tool-verb">{agent ? work.exchange.answerOf(name) : work.exchange.answer}</span>
        <span className="tool-object">{!open && firstLine(answer)}</span>
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
      </button>
      {open && (
        <div className="tool-body">
          <Markdown place={row.key} parts={renderMarkdown(answer)} />
          <p className="work-foot">
            {asked && <ScreenLink to={placeOf(here, asked)}>{work.exchange.up}</ScreenLink>}
            {conversation && <ScreenLink to={addressOf(conversation)}>{work.subagent.open}</ScreenLink>}
          </p>
        </div>
      )}
    </div>
  );
}
