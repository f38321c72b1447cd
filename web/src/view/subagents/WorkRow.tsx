/**
 * A call that set another agent to work: a task for a subagent, or a message. One that did not come to that (it is asked for,
 * was refused, or belongs to a program with subagents of its own) is shown like any other call.
 */

import { useConversationId } from "../conversation/scope";
import { ExchangeBlock } from "../exchanges/ExchangeBlock";
import { usePicked } from "../store";
import { PlainToolRow, type ToolRowProps } from "../tools/ToolRow";
import { SubagentBlock } from "./SubagentBlock";
import "../../style/work.css";

export default function WorkRow({ place, block }: ToolRowProps) {
  const id = useConversationId();
  const child = usePicked(id, ({ state }) => state.subagents.find((known) => known.call === block.call));
  const exchange = usePicked(id, ({ state }) =>
    state.exchanges.find((known) => known.id === block.call && known.direction === "out"),
  );
  if (child) return <SubagentBlock place={place} block={block} child={child} />;
  if (exchange) return <ExchangeBlock place={place} block={block} exchange={exchange} />;
  return <PlainToolRow place={place} block={block} />;
}
