/** An agent's text. The model has parsed it into parts; a part that did not change is not touched again. */

import { memo, useLayoutEffect, useRef } from "react";
import type { MarkdownPart } from "../../model/markdown";
import { CodeBlock } from "../code/CodeBlock";
import { graft } from "./graft";

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
  return <Html html={part.html} />;
});

/** Safe by construction: the model renders with raw HTML off and links by an allow-list of schemes. */
function Html({ html }: { html: string }) {
  const element = useRef<HTMLDivElement>(null);
  const shown = useRef("");
  useLayoutEffect(() => {
    if (element.current) graft(element.current, html, shown.current);
    shown.current = html;
  }, [html]);
  return <div ref={element} className="md-part" />;
}
