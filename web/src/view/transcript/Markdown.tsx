/** An agent's text. The model has parsed it into parts; a part that did not change is not touched again. */

import { memo, useLayoutEffect, useRef, type ReactElement } from "react";
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
      {parts.map((part) => elementOf(part, place))}
    </div>
  );
}

/** React passes over an element it knows. A long answer has hundreds of parts, of which the last ones change with every token. */
const elements = new WeakMap<MarkdownPart, ReactElement<PartProps>>();

function elementOf(part: MarkdownPart, place: string): ReactElement {
  const known = elements.get(part);
  const here = `${place}:${part.key}`;
  if (known?.props.place === here) return known;
  const element = <Part key={part.key} place={here} part={part} />;
  elements.set(part, element);
  return element;
}

interface PartProps {
  place: string;
  part: MarkdownPart;
}

const Part = memo(function Part({ place, part }: PartProps) {
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
