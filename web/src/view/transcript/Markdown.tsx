/** An agent's text. The model has parsed it into parts; a part that did not change is not touched again. */

import { memo } from "react";
import type { MarkdownPart } from "../../model/markdown";
import { CodeBlock } from "../code/CodeBlock";

interface MarkdownProps {
  place: string;
  parts: readonly MarkdownPart[];
}

export function Markdown({ place, parts }: MarkdownProps) {
  return (
    <div className="md">
      {parts.map((part) => (
        <Part key={part.key} place={`${place}:${part.key}`} part={part} />
      ))}
    </div>
  );
}

const Part = memo(function Part({ place, part }: { place: string; part: MarkdownPart }) {
  if (part.kind === "code") {
    return <CodeBlock place={place} language={part.language} code={part.code} open={part.open} />;
  }
  // Safe by construction: the model renders with raw HTML off and links by an allow-list of schemes.
  return <div className="md-part" dangerouslySetInnerHTML={{ __html: part.html }} />;
});
