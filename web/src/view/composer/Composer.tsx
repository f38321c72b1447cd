/** Writing into a conversation: send at rest, queue while the agent works, steer where it can be steered, stop always. */

import { memo, Suspense, useEffect, useRef, type KeyboardEvent } from "react";
import { text } from "../../text";
import { useScope } from "../conversation/scope";
import { Icon } from "../controls/Icon";
import { commandKey, onAsked } from "../keys";
import { StopAndHold } from "../later";
import { usePick, usePicked, useStore } from "../store";
import { contentOf, useAttachments } from "./attachments";
import { ComposerBox, type ComposerHandle } from "./ComposerBox";
import { AgentChoice } from "./AgentChoice";
import { Mode, ModeBanner } from "./Mode";

interface ComposerProps {
  id: string;
  onStop: () => void;
}

const NO_PARAMS = {};

export const Composer = memo(function Composer({ id, onStop }: ComposerProps) {
  const store = useStore();
  const { setEditingQueued } = useScope();
  const draft = usePicked(id, (known) => known.draft) ?? "";
  const params = usePicked(id, ({ state }) => state.params) ?? NO_PARAMS;
  const lastQueued = usePicked(id, ({ state }) => state.queue.findLast((item) => item.command === null)?.id) ?? null;
  const busy = usePicked(id, ({ state }) => state.turn !== null) ?? false;
  const steerable = usePicked(id, ({ state }) => state.turn?.steerable) ?? false;
  const project = usePicked(id, ({ state }) => state.project) ?? null;
  const attachments = useAttachments(id);
  const box = useRef<ComposerHandle>(null);
  const connected = usePick(({ connection }) => connection.kind === "open" || connection.kind === "catching_up" || connection.kind === "version_mismatch");
  const trouble = usePick(({ connection }) => connection.kind === "reconnecting" || connection.kind === "offline");

  useEffect(() => onAsked("compose", () => box.current?.focus()), []);

  const send = (delivery: "turn" | "boundary"): void => {
    store.send(id, contentOf(draft, attachments.items), { delivery });
    store.setDraft(id, "");
    attachments.clear();
  };

  const onKey = (event: KeyboardEvent<HTMLTextAreaElement>, canSend: boolean): boolean => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (canSend) send(busy && steerable ? "boundary" : "turn");
      return true;
    }
    if (event.key === "ArrowUp" && draft === "" && lastQueued !== null) {
      event.preventDefault();
      setEditingQueued(lastQueued);
      return true;
    }
    return false;
  };

  return (
    <div className="composer-frame" data-region>
      <ModeBanner id={id} />
      <ComposerBox
        ref={box}
        value={draft}
        onChange={(value) => store.setDraft(id, value)}
        placeholder={busy ? text.composer.placeholderBusy : text.composer.placeholder}
        attachments={attachments}
        autoFocus={!matchMedia("(pointer: coarse)").matches}
        onKey={onKey}
        completes={{ project, conversation: id }}
        onSend={() => send("turn")}
        notice={!connected && trouble ? text.composer.offline : null}
        tools={
          <>
            <Mode id={id} params={params} />
            <AgentChoice id={id} params={params} />
          </>
        }
        buttons={(canSend) => (
          <>
            {busy && steerable && canSend && (
              <button
                type="button"
                className="button quiet small"
                title={text.composer.steerHint}
                onClick={() => send("boundary")}
              >
                <Icon name="steer" />
                {text.composer.steer} <kbd>{commandKey}↵</kbd>
              </button>
            )}
            {busy && (
              <Suspense fallback={null}>
                <StopAndHold id={id} />
              </Suspense>
            )}
            {busy && (
              <button type="button" className="round-button stop" aria-label={text.header.stop} title={text.header.stop} onClick={onStop}>
                <Icon name="stop" />
              </button>
            )}
            {(!busy || canSend) && (
              <button
                type="button"
                className="round-button"
                aria-label={busy ? text.composer.queue : text.composer.send}
                title={busy ? text.composer.queue : text.composer.send}
                disabled={!canSend}
                onClick={() => send("turn")}
              >
                <Icon name="send" />
              </button>
            )}
          </>
        )}
      />
    </div>
  );
});
