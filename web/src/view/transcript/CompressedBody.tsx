/** What a model is shown in place of the messages above: how each stage shortened them, and the summary. */

import type { CompressedRange } from "../../model/compressed";
import { later } from "../../text.later";

export default function CompressedBody({ range }: { range: CompressedRange }) {
  return (
    <div className="compressed-body">
      <p>{later.compressed.lead}</p>
      <ol className="compressed-stages">
        {range.stages.map((stage) => (
          <li key={stage.seq}>
            <span>{later.compressed.stages[stage.stage]}</span>
            <span className="tabular">{later.compressed.tokens(stage.before_tokens, stage.after_tokens)}</span>
          </li>
        ))}
      </ol>
      {range.summary && (
        <>
          <p className="tool-heading">{later.compressed.summary}</p>
          <p className="thinking-text">{range.summary}</p>
        </>
      )}
    </div>
  );
}
