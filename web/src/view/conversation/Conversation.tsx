/** One conversation on the page: header, transcript, and the dock with everything that waits or is being written. */

import { Suspense, lazy, useCallback, useEffect, useMemo, useState, type ReactNode } from "react";
import type { OpenConversation } from "../../model/store";
import { text } from "../../text";
import { usePageActions } from "../actions";
import { Composer } from "../composer/Composer";
import { layerIsOpen } from "../controls/Dialog";
import { Activity } from "../dock/Activity";
import { PlanLine } from "../dock/PlanLine";
import { QueueStrip } from "../dock/QueueStrip";
import { RequestDock } from "../dock/RequestDock";
import { Header, HeaderFrame } from "../header/Header";
import { onAsked, withCommandKey } from "../keys";
import { usePicked, useStore } from "../store";
import { Transcript } from "../transcript/Transcript";
import { witness } from "../witness";
import { ConversationIdContext, ScopeContext, type Editing } from "./scope";

const Find = lazy(() => import("../find/Find"));

interface ConversationProps {
  id: string;
  at: number | null;
  message: string | null;
  listShown: boolean;
  onShowList: () => void;
}

export function Conversation({ id, at, message, listShown, onShowList }: ConversationProps) {
  const store = useStore();
  const conversation = usePicked(id, (known) => known);

  useEffect(() => {
    store.openConversation(id);
    return () => store.closeConversation(id);
  }, [store, id]);

  const frame = { listShown, onShowList };
  if (conversation === undefined || conversation.phase === "loading") {
    return (
      <Notice {...frame}>
        <p role="status">{text.transcript.loading}</p>
      </Notice>
    );
  }
  if (conversation.phase === "missing" || conversation.state.deleted) return <Missing {...frame} />;
  if (conversation.phase === "failed") {
    return (
      <Notice {...frame}>
        <p role="alert">
          {text.transcript.failed} {conversation.error?.message}
        </p>
        <button type="button" className="button" onClick={() => store.reconnectNow()}>
          {text.transcript.retry}
        </button>
      </Notice>
    );
  }
  return <Ready conversation={conversation} at={at} message={message} {...frame} />;
}

interface FrameProps {
  listShown: boolean;
  onShowList: () => void;
}

interface ReadyProps extends FrameProps {
  conversation: OpenConversation;
  at: number | null;
  message: string | null;
}

function Ready({ conversation, at, message, listShown, onShowList }: ReadyProps) {
  const { id, state } = conversation;
  const [editing, setEditing] = useState<Editing | null>(null);
  const [editingQueued, setEditingQueued] = useState<string | null>(null);
  const [finding, setFinding] = useState(false);
  const scope = useMemo(
    () => ({ id, editing, setEditing, editingQueued, setEditingQueued }),
    [id, editing, editingQueued],
  );
  const stop = useStop(id);

  useEffect(() => {
    if (state.turn) witness.saw(state.turn.id);
  }, [state.turn?.id]);

  useEffect(() => onAsked("find", () => setFinding(true)), []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (withCommandKey(event, "f")) {
        event.preventDefault();
        setFinding(true);
      } else if (event.key === "Escape" && !event.defaultPrevented && !event.isComposing && !layerIsOpen()) {
        if (finding) setFinding(false);
        else if (editing) setEditing(null);
        else stop();
      }
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [finding, editing, stop]);

  return (
    <ConversationIdContext value={id}>
      <ScopeContext value={scope}>
        <Header conversation={conversation} listShown={listShown} onShowList={onShowList} onStop={stop} />
        <main className="talk">
          {finding && (
            <Suspense fallback={null}>
              <Find conversation={conversation} onClose={() => setFinding(false)} />
            </Suspense>
          )}
          <Transcript conversation={conversation} at={at} message={message} />
          <div className="dock">
            <div className="dock-column">
              <Activity conversation={conversation} />
              <PlanLine id={id} plan={state.plan} />
              <RequestDock id={id} requests={state.requests} agent={state.agent} />
              <QueueStrip conversation={conversation} />
              <Composer conversation={conversation} onStop={stop} />
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
    witness.did(turn.id);
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
