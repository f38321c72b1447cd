/** How full the model's context is, as a ring with the cost beside it. It opens, pressed or pointed at, to MeterBox. */

import { Suspense, useEffect, useId, useRef, useState, type PointerEvent } from "react";
import type { State } from "../../protocol/events.gen";
import { money, percent } from "../../measures";
import { text } from "../../text";
import { FilesDialog, MeterBox } from "../later";
import { usePicked } from "../store";

const NOTHING_USED: State["usage"] = {};
const RADIUS = 6.5;
const ROUND = 2 * Math.PI * RADIUS;
// Passing over it is not asking; leaving it for the box is not leaving.
const POINTED_MS = 250;
const GAP_PX = 4;
const EDGE_PX = 8;

export default function Meter({ id: conversation }: { id: string }) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  // Opened by pointing at it: it goes with the pointer, and a click keeps it instead of closing it.
  const inPassing = useRef(false);
  const [open, setOpen] = useState(false);
  const [showingFiles, setShowingFiles] = useState(false);
  const context = usePicked(conversation, ({ state }) => state.context) ?? null;
  const usage = usePicked(conversation, ({ state }) => state.usage) ?? NOTHING_USED;
  // What a running turn cost so far joins the sum at its end.
  const turnCost = usePicked(conversation, ({ state }) => state.turn?.cost_usd) ?? 0;
  const cost = (usePicked(conversation, ({ state }) => state.cost_usd) ?? 0) + turnCost;
  const hasFiles = usePicked(conversation, ({ state }) => state.files.length > 0) ?? false;
  const spent = (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  useEffect(() => {
    if (!open) return;
    // A window of another width has its button elsewhere.
    const { innerWidth } = window;
    const close = (): void => {
      if (window.innerWidth !== innerWidth) box.current?.hidePopover();
    };
    window.addEventListener("resize", close);
    return () => window.removeEventListener("resize", close);
  }, [open]);
  if (context === null && spent === 0 && !hasFiles && cost === 0) return null;

  const share = shareOf(context);
  const tone = share >= 0.9 ? "is-bad" : share >= 0.75 ? "is-wait" : "";
  const pointed = (open: boolean) => (event: PointerEvent) => {
    if (event.pointerType !== "mouse") return;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      if (open && !box.current?.matches(":popover-open")) {
        inPassing.current = true;
        box.current?.showPopover();
      } else if (!open && inPassing.current && !box.current?.matches(":focus-within")) box.current?.hidePopover();
    }, POINTED_MS);
  };

  return (
    <>
      <button
        ref={button}
        type="button"
        className={cost > 0 ? `meter has-cost ${tone}` : `icon-button meter ${tone}`}
        aria-label={text.join(text.header.context, share > 0 && percent(share), cost > 0 && money(cost))}
        popoverTarget={id}
        onPointerEnter={pointed(true)}
        onPointerLeave={pointed(false)}
        onPointerDown={() => clearTimeout(timer.current)}
        onClick={(event) => {
          if (inPassing.current) event.preventDefault();
          inPassing.current = false;
        }}
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
        {cost > 0 && <span className="meter-cost tabular">{money(cost)}</span>}
      </button>
      <div
        ref={box}
        id={id}
        className="menu meter-box"
        popover="auto"
        onPointerEnter={pointed(true)}
        onPointerLeave={pointed(false)}
        onToggle={(event) => {
          setOpen(event.newState === "open");
          if (event.newState !== "open") inPassing.current = false;
          if (event.newState !== "open" || !box.current || !button.current) return;
          const anchor = button.current.getBoundingClientRect();
          const width = box.current.getBoundingClientRect().width;
          box.current.style.top = `${anchor.bottom + GAP_PX}px`;
          box.current.style.left = `${Math.max(EDGE_PX, anchor.right - width)}px`;
        }}
      >
        {open && (
          <Suspense fallback={null}>
            <MeterBox
              id={conversation}
              onShowFiles={() => {
                box.current?.hidePopover();
                setShowingFiles(true);
              }}
            />
          </Suspense>
        )}
      </div>
      {showingFiles && (
        <Suspense fallback={null}>
          <FilesDialog id={conversation} onClose={() => setShowingFiles(false)} />
        </Suspense>
      )}
    </>
  );
}

/** 0 when the window is not known. */
export function shareOf(context: State["context"]): number {
  return context?.window_tokens ? Math.min(1, context.used_tokens / context.window_tokens) : 0;
}
