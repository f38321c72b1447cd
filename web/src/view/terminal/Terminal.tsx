/** What a command printed, with its colours. Follows the end while it grows, unless the reader scrolled up. */

import { memo, useLayoutEffect, useMemo, useRef } from "react";
import { later } from "../../text.later";
import { readAnsi } from "./ansi";

interface TerminalProps {
  output: string;
  live: boolean;
}

// How far from the end still counts as being at it.
const NEAR_END_PX = 24;

export const Terminal = memo(function Terminal({ output, live }: TerminalProps) {
  const box = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  const runs = useMemo(() => readAnsi(output), [output]);

  useLayoutEffect(() => {
    const element = box.current;
    if (element && live && follows.current) element.scrollTop = element.scrollHeight;
  }, [output, live]);

  return (
    <pre
      ref={box}
      className="terminal"
      tabIndex={0}
      aria-label={later.tool.terminal}
      onScroll={(event) => {
        const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
        follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
      }}
    >
      {runs.map((run, at) => (
        <span key={at} className={run.style || undefined}>
          {run.text}
        </span>
      ))}
    </pre>
  );
});
