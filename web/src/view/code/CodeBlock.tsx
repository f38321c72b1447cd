/** A piece of code: its language, copy, wrap, and colours once they are there. Grows to a screen, then scrolls inside. */

import { memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import { text } from "../../text";
import { Copy } from "../controls/Copy";
import { Icon } from "../controls/Icon";
import { useDisclosed } from "../store";
import { knownHighlight, requestHighlight } from "./highlighter";

// Fewer than its greatest height in style/markdown.css holds.
const LINES_THAT_FIT = 20;

interface CodeBlockProps {
  /** Where it stands, so that wrapping is remembered. */
  place: string;
  language: string;
  code: string;
  /** Its end has not come. */
  open: boolean;
}

export const CodeBlock = memo(function CodeBlock({ place, language, code, open }: CodeBlockProps) {
  const [wrapped, setWrapped] = useDisclosed(`wrap:${place}`);
  const box = useRef<HTMLPreElement>(null);
  const html = useHighlight(language, code, open);

  // Asking for its height makes the browser lay out at once, so not for what cannot be higher than its box.
  const mayOverflow = open && (wrapped || lineCount(code) > LINES_THAT_FIT);
  useLayoutEffect(() => {
    const element = box.current;
    if (element && mayOverflow) element.scrollTop = element.scrollHeight;
  }, [code, mayOverflow]);

  return (
    <figure className="code" aria-label={text.code.label(language || text.code.plain)}>
      <figcaption className="code-bar">
        <span className="code-language">{language || text.code.plain}</span>
        <button
          type="button"
          className="icon-button small"
          aria-pressed={wrapped}
          aria-label={wrapped ? text.code.unwrap : text.code.wrap}
          title={wrapped ? text.code.unwrap : text.code.wrap}
          onClick={() => setWrapped(!wrapped)}
        >
          <Icon name="wrap" />
        </button>
        <Copy label={text.code.copy} content={() => code} />
      </figcaption>
      <pre ref={box} className={wrapped ? "code-box wrapped" : "code-box"} tabIndex={0}>
        {html === null ? <code>{code}</code> : <code dangerouslySetInnerHTML={{ __html: html }} />}
      </pre>
    </figure>
  );
});

function lineCount(code: string): number {
  let count = 1;
  for (let at = code.indexOf("\n"); at >= 0; at = code.indexOf("\n", at + 1)) count++;
  return count;
}

/** Colours for code that is complete; null while there are none. */
export function useHighlight(language: string, code: string, open = false): string | null {
  const [result, setResult] = useState<{ code: string; html: string | null } | null>(null);
  const known = open ? undefined : knownHighlight(language, code);
  useEffect(() => {
    if (open || known !== undefined) return;
    return requestHighlight(language, code, (html) => setResult({ code, html }));
  }, [language, code, open, known]);
  if (known !== undefined) return known;
  return !open && result?.code === code ? result.html : null;
}
