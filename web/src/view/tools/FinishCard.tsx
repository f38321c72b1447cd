/** The end of a task, as its agent reports it. What changed on disk stands below it, with the turn's end. */

import { useMemo } from "react";
import { renderMarkdown } from "../../model/markdown";
import { later } from "../../text.later";
import { Icon } from "../controls/Icon";
import { Markdown } from "../transcript/Markdown";
import { argument } from "./say";
import { PlainToolRow, type ToolRowProps } from "./ToolRow";

export default function FinishCard({ place, block }: ToolRowProps) {
  const summary = argument(block.input, "summary", "report", "message") ?? "";
  const parts = useMemo(() => renderMarkdown(summary), [summary]);
  if (block.status !== "ok" || summary === "") return <PlainToolRow place={place} block={block} />;
  return (
    <section className="finish" aria-label={later.finish.heading}>
      <h2 className="finish-heading">
        <Icon name="check" />
        {later.finish.heading}
      </h2>
      <Markdown place={`finish:${place}`} parts={parts} />
    </section>
  );
}
