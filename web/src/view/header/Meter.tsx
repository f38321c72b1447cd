/** How full the model's context is, as a ring; it opens to the numbers behind it: tokens, cost, changed files. */

import { useId, useRef } from "react";
import type { State } from "../../protocol/events.gen";
import { text } from "../../text";
import { usePicked } from "../store";

const NOTHING_USED: State["usage"] = {};
const RADIUS = 6.5;
const ROUND = 2 * Math.PI * RADIUS;

export function Meter({ id: conversation }: { id: string }) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const context = usePicked(conversation, ({ state }) => state.context) ?? null;
  const usage = usePicked(conversation, ({ state }) => state.usage) ?? NOTHING_USED;
  const cost_usd = usePicked(conversation, ({ state }) => state.cost_usd) ?? 0;
  const files = usePicked(conversation, ({ state }) => state.files) ?? [];
  const spent = (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  if (context === null && spent === 0 && files.length === 0) return null;

  const share = context?.window_tokens ? Math.min(1, context.used_tokens / context.window_tokens) : 0;
  const tone = share >= 0.9 ? "is-bad" : share >= 0.75 ? "is-wait" : "";

  return (
    <>
      <button
        ref={button}
        type="button"
        className={`icon-button meter ${tone}`}
        aria-label={text.header.context}
        title={context ? text.header.contextUsed(context.used_tokens, context.window_tokens, context.estimated) : text.header.context}
        popoverTarget={id}
      >
        <svg viewBox="0 0 18 18" aria-hidden="true">
          <circle className="meter-track" cx="9" cy="9" r={RADIUS} />
          <circle
            className="meter-fill"
            cx="9"
            cy="9"
            r={RADIUS}
            strokeDasharray={`${ROUND * share} ${ROUND}`}
            transform="rotate(-90 9 9)"
          />
        </svg>
      </button>
      <div
        ref={box}
        id={id}
        className="menu meter-box"
        popover="auto"
        onToggle={(event) => {
          if (event.newState !== "open" || !box.current || !button.current) return;
          const anchor = button.current.getBoundingClientRect();
          const width = box.current.getBoundingClientRect().width;
          box.current.style.top = `${anchor.bottom + 4}px`;
          box.current.style.left = `${Math.max(8, anchor.right - width)}px`;
        }}
      >
        <h2>{text.header.context}</h2>
        <p>
          {context
            ? text.header.contextUsed(context.used_tokens, context.window_tokens, context.estimated)
            : text.header.contextUnknown}
        </p>
        {context?.compressed && <p>{text.header.compressed}</p>}
        {spent > 0 && <p>{text.header.usage(usage.input_tokens ?? 0, usage.output_tokens ?? 0)}</p>}
        {(usage.cached_tokens ?? 0) > 0 && <p>{text.header.cached(usage.cached_tokens ?? 0)}</p>}
        <p>{cost_usd > 0 ? text.header.cost(cost_usd) : text.header.costNone}</p>
        {files.length > 0 && (
          <>
            <h2>{text.header.files(files.length)}</h2>
            <ul className="file-list">
              {files.map((file) => (
                <li key={file.path}>
                  <span className="mono ellipsis">{file.path}</span>
                  <span className="is-good tabular">{file.additions > 0 && text.tool.added(file.additions)}</span>
                  <span className="is-bad tabular">{file.deletions > 0 && text.tool.removed(file.deletions)}</span>
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </>
  );
}
