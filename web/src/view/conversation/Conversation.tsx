/** One conversation on the page: header, transcript, and the dock with everything that waits or is being written. */

import { Suspense, useCallback, useEffect, useMemo, useState, type ReactNode } from "react";
import { said } from "../../sentences";
import { text } from "../../text";
import { usePageActions } from "../actions";
import { Composer } from "../composer/Composer";
import { layerIsOpen } from "../controls/Dialog";
import { Header, HeaderFrame } from "../header/Header";
import { onAsked, withCommandKey } from "../keys";
import { Activity, Find, PlanLine, ProcessStrip, QueueStrip, RequestDock, Speaker, SubagentStrip, TrustLine } from "../later";
import type { Place } from "../route";
import { useReadsAloud } from "../speech/setting";
import { useMayWrite, usePick, usePicked, useStore, useWaitsBelow } from "../store";
import { Transcript } from "../transcript/Transcript";
import { ConversationIdContext, ScopeContext, type Editing } from "./scope";

interface FrameProps {
  listShown: boolean;
  onShowList: () => void;
}

interface ConversationProps extends FrameProps {
  id: string;
  place: Place;
}

export function Conversation({ id, place, listShown, onShowList }: ConversationProps) {
  const store = useStore();
  const phase = usePicked(id, (known) => (known.state.deleted ? "missing" : known.phase)) ?? "loading";
  const error = usePicked(id, (known) => known.error);

  useEffect(() => {
    store.openConversation(id);
    return () => store.closeConversation(id);
  }, [store, id]);

  const frame = { listShown, onShowList };
  switch (phase) {
    case "loading":
      return (
        <Notice {...frame}>
          <p role="status">{text.transcript.loading}</p>
        </Notice>
      );
    case "missing":
      return <Missing {...frame} />;
    case "failed":
      return (
        <Notice {...frame}>
          <p role="alert">
            {text.transcript.failed} {error && said(error.message)}
          </p>
          <button type="button" className="button" onClick={() => store.reconnectNow()}>
            {text.transcript.retry}
          </button>
        </Notice>
      );
    case "ready":
      return <Ready id={id} place={place} {...frame} />;
  }
}

/**
 * What is drawn here does not change with every token: each part picks what it shows from the store by itself, so that
 * only the transcript and the activity line follow the stream.
 */
function Ready({ id, place, listShown, onShowList }: ConversationProps) {
  const [editing, setEditing] = useState<Editing | null>(null);
  const [editingQueued, setEditingQueued] = useState<string | null>(null);
  const [finding, setFinding] = useState(false);
  const scope = useMemo(() => ({ id, editing, setEditing, editingQueued, setEditingQueued }), [id, editing, editingQueued]);
  const asks = usePicked(id, ({ state }) => state.requests.some((request) => request.status === "open"));
  const hasRequests = useWaitsBelow(id) || asks;
  const hasPlan = usePicked(id, ({ state: { plan } }) => plan !== null && plan.status !== "planned" && plan.items.length > 0);
  const hasTree = usePicked(id, ({ state }) => state.subagents.filter((child) => child.status === "running").length > 1);
  const hasProcesses = usePicked(id, ({ state }) => state.processes.some((process) => process.running));
  const isCopy = usePick(({ copiedAt }) => copiedAt !== null);
  const mayWrite = useMayWrite();
  const aloud = useReadsAloud();
  const stop = useStop(id);

  useEffect(() => onAsked("find", () => setFinding(true)), []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (withCommandKey(event, "f")) {
        event.preventDefault();
        setFinding(true);
      } else if (event.key === "Escape" && !event.defaultPrevented && !event.isComposing && !layerIsOpen()) {
        if (finding) setFinding(false);
        else if (editing) setEditing(null);
        else if (mayWrite) stop();
      }
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [finding, editing, stop, mayWrite]);

  return (
    <ConversationIdContext value={id}>
      <ScopeContext value={scope}>
        <Header id={id} listShown={listShown} onShowList={onShowList} onStop={stop} />
        <main className="talk">
          {finding && (
            <Suspense fallback={null}>
              <Find id={id} onClose={() => setFinding(false)} />
            </Suspense>
          )}
          <Suspense fallback={<div />}>
            <Transcript id={id} place={place} />
          </Suspense>
          <div className="dock" hidden={isCopy}>
            <div className="dock-column">
              <Suspense fallback={null}>
                <Activity id={id} />
                {hasPlan && <PlanLine id={id} />}
                {hasRequests && <RequestDock id={id} />}
                {hasTree && <SubagentStrip id={id} />}
                {hasProcesses && <ProcessStrip id={id} />}
                {aloud && <Speaker id={id} />}
                <QueueStrip id={id} />
                <TrustLine id={id} />
              </Suspense>
              {mayWrite ? <Composer id={id} onStop={stop} /> : <p className="read-only">{text.composer.readOnly}</p>}
            </div>
          </div>
        </main>
      </ScopeContext>
    </ConversationIdContext>
  );
}

/** Stops the running turn. Nothing runs, nothing happens; asking twice is the same as once. */
function useStop(id: string): () => void {
  const store = useStore();
  return useCallback(() => {
    const turn = store.getSnapshot().open.get(id)?.state.turn;
    if (!turn) return;
    store.command(id, { type: "interrupt", turn: turn.id });
  }, [store, id]);
}

function Missing(frame: FrameProps) {
  const actions = usePageActions();
  return (
    <Notice {...frame}>
      <h1 className="notice-heading">{text.transcript.missing}</h1>
      <p>{text.transcript.missingHint}</p>
      <button type="button" className="button" onClick={actions.goHome}>
        {text.transcript.home}
      </button>
    </Notice>
  );
}

function Notice({ listShown, onShowList, children }: FrameProps & { children: ReactNode }) {
  return (
    <>
      <HeaderFrame listShown={listShown} onShowList={onShowList} />
      <main className="notice">{children}</main>
    </>
  );
}
