/**
 * Messages that wait for their turn, in order. Editing holds one back on the server, so it cannot leave half-changed;
 * removing is final there, and "Put back" sends it again, held if it was.
 */

import { useEffect, useRef, useState } from "react";
import type { Part, QueueItem } from "../../protocol/events.gen";
import { text } from "../../text";
import { work } from "../../text.work";
import type { OutboxEntry } from "../../transport/commands";
import { useAutoGrow } from "../composer/grow";
import { useScope } from "../conversation/scope";
import { Icon } from "../controls/Icon";
import { answerIn, sayQueued } from "../exchanges/say";
import { usePick, usePicked, useStore } from "../store";
import { PendingState } from "../transcript/UserMessage";
import { faceOf, useMe } from "../me";
import { sayCommand } from "./patience";
import { heldOf, isPaused, sayPaused, stoppedTurn } from "./paused";

// Time to change one's mind.
const UNDO_MS = 5000;

const NONE: readonly QueueItem[] = [];
const NOTHING_SENT: readonly OutboxEntry[] = [];

export function wordsOf(content: readonly Part[]): string {
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** What no person wrote cannot be sent again as a person's, and a command not as a message. */
function isOwn(item: QueueItem): boolean {
  return sayQueued(item, String) === null && item.command === null;
}

export default function QueueStrip({ id }: { id: string }) {
  const queue = usePicked(id, ({ state }) => state.queue) ?? NONE;
  const outbox = usePicked(id, (known) => known.outbox) ?? NOTHING_SENT;
  const busy = usePicked(id, ({ state }) => state.turn !== null) ?? false;
  const steerable = usePicked(id, ({ state }) => state.turn?.steerable) ?? false;
  const stopped = usePicked(id, ({ state }) => stoppedTurn(state)) ?? null;
  const me = useMe();
  const { editingQueued, setEditingQueued } = useScope();
  const [removed, setRemoved] = useState<QueueItem | null>(null);
  const store = useStore();
  // What is edited here is held by the edit, and says so itself.
  const held = heldOf(queue.filter((item) => item.id !== editingQueued));
  const pending = busy
    ? outbox.filter(({ command, accepted }) => command.type === "send_message" && !queue.some((item) => item.id === accepted?.id))
    : [];
  // What had left before runs already: sent again it would run twice. A refusal is shown with all others.
  const takenOut = (item: QueueItem): Promise<boolean> =>
    store.answered(store.command(id, { type: "remove_queued", item: item.id })).then(
      ({ applied }) => applied !== false,
      () => false,
    );
  useEffect(() => {
    if (removed === null) return;
    const timer = setTimeout(() => setRemoved(null), UNDO_MS);
    return () => clearTimeout(timer);
  }, [removed]);

  if (queue.length === 0 && pending.length === 0 && removed === null) return null;
  return (
    <section className="queue" aria-label={work.queue.label} data-region tabIndex={-1}>
      {isPaused(held, stopped) && (
        <p className="queue-paused" role="status">
          <span className="queue-icon">
            <Icon name="hold" />
          </span>
          <span className="queue-text">{sayPaused(stopped, me)}</span>
          {editingQueued === null && held > 1 && (
            <button type="button" className="button small" title={work.queue.releaseAllHint} onClick={() => store.command(id, { type: "edit_queued", held: false })}>
              {work.queue.releaseAll}
            </button>
          )}
        </p>
      )}
      <ol className="queue-list">
        {queue.map((item, at) => (
          <li key={item.id} className={item.held ? "queue-item is-held" : "queue-item"}>
            {editingQueued === item.id && item.command === null ? (
              <EditQueued id={id} item={item} staysHeld={item.held && isPaused(heldOf(queue), stopped)} onDone={() => setEditingQueued(null)} />
            ) : (
              <Queued
                item={item}
                first={at === 0}
                among={held > 1}
                onEdit={() => setEditingQueued(item.id)}
                onRelease={() => store.command(id, { type: "edit_queued", item: item.id, held: false })}
                onRemove={() => void takenOut(item).then((isOut) => isOut && isOwn(item) && setRemoved(item))}
                onSteer={
                  steerable && !item.held && item.delivery === "turn" && isOwn(item)
                    ? () => void takenOut(item).then((isOut) => isOut && store.send(id, item.content, { delivery: "boundary" }))
                    : null
                }
              />
            )}
          </li>
        ))}
        {pending.map((entry) => (
          <li key={entry.id} className="queue-item">
            <span className="queue-text ellipsis">{entry.command.type === "send_message" && wordsOfContent(entry.command.content)}</span>
            <PendingState entry={entry} />
          </li>
        ))}
      </ol>
      {removed && (
        <p className="queue-undo" role="status">
          {work.queue.removed}
          <button
            type="button"
            className="link-button"
            autoFocus={document.activeElement === document.body}
            onClick={() => {
              const { content, delivery, priority, merge, held, agent, mode } = removed;
              store.send(id, content, { delivery, priority, merge, held, agent, mode });
              setRemoved(null);
            }}
          >
            {work.queue.putBack}
          </button>
        </p>
      )}
    </section>
  );
}

/** Beside Stop, while something waits: the turn ends and the queue does not go on. */
export function StopAndHold({ id }: { id: string }) {
  const turn = usePicked(id, ({ state }) => (state.queue.some((item) => !item.held) ? state.turn?.id : undefined));
  const store = useStore();
  if (turn === undefined) return null;
  return (
    <button
      type="button"
      className="button quiet small stop-and-hold"
      aria-label={work.queue.stopAndHoldHint}
      title={work.queue.stopAndHoldHint}
      onClick={() => store.command(id, { type: "interrupt", turn, hold_queue: true })}
    >
      <Icon name="hold" />
      <span>{work.queue.stopAndHold}</span>
    </button>
  );
}

function wordsOfContent(content: string | Part[]): string {
  return typeof content === "string" ? content : wordsOf(content);
}

interface QueuedProps {
  item: QueueItem;
  first: boolean;
  /** One of several that were held together: its own button stands back behind the one for all. */
  among: boolean;
  onEdit: () => void;
  onRelease: () => void;
  onRemove: () => void;
  /** Null where it cannot be sent into the running turn. */
  onSteer: (() => void) | null;
}

function Queued({ item, first, among, onEdit, onRelease, onRemove, onSteer }: QueuedProps) {
  const images = item.content.filter((part) => part.type === "image_url").length;
  const face = faceOf(item.origin);
  const agents = usePick((snapshot) => snapshot.agents.items);
  const whose = sayQueued(item, (id) => agents.find((agent) => agent.id === id)?.name ?? id);
  const command = sayCommand(item);
  const words = text.join(
    item.held ? work.queue.held : item.delivery === "boundary" ? work.queue.steer : first && work.queue.nextUp,
    images > 0 && work.queue.image(images),
    face && text.message.via(face),
  );
  return (
    <>
      <span className="queue-icon">
        <Icon name={item.held ? "hold" : command ? "cut" : item.trigger === "idle" ? "bell" : whose ? "letter" : item.delivery === "boundary" ? "steer" : "list"} />
      </span>
      {whose && <span className="queue-whose">{whose}</span>}
      <span className="queue-text ellipsis">{command ?? (item.trigger === "callback" ? answerIn(wordsOf(item.content)) : wordsOf(item.content))}</span>
      <span className="queue-state">{words}</span>
      {item.held && (
        <button type="button" className={among ? "button quiet small" : "button small"} title={work.queue.releaseHint} onClick={onRelease}>
          {work.queue.release}
        </button>
      )}
      {onSteer && (
        <button type="button" className="icon-button small" aria-label={work.queue.steerNow} title={work.queue.steerNow} onClick={onSteer}>
          <Icon name="steer" />
        </button>
      )}
      {whose === null && command === null && (
        <button type="button" className="icon-button small" aria-label={work.queue.edit} title={work.queue.edit} onClick={onEdit}>
          <Icon name="edit" />
        </button>
      )}
      <button type="button" className="icon-button small" aria-label={work.queue.remove} title={work.queue.remove} onClick={onRemove}>
        <Icon name="close" />
      </button>
    </>
  );
}

interface EditQueuedProps {
  id: string;
  item: QueueItem;
  /** Of a queue that is paused: editing one does not send it. Read once, before the edit itself holds it. */
  staysHeld: boolean;
  onDone: () => void;
}

function EditQueued({ id, item, staysHeld, onDone }: EditQueuedProps) {
  const store = useStore();
  const [after] = useState(staysHeld);
  const [value, setValue] = useState(() => wordsOf(item.content));
  const field = useRef<HTMLTextAreaElement>(null);
  const settled = useRef(false);
  const latest = useRef(value);
  latest.current = value;
  useAutoGrow(field, value);

  useEffect(() => {
    // It may have left the queue in the meantime; holding what is gone is nobody's concern.
    const hold = (held: boolean): void => {
      const command = store.command(id, { type: "edit_queued", item: item.id, held });
      store.answered(command).catch(() => store.discard(command));
    };
    hold(true);
    settled.current = false;
    return () => {
      if (settled.current) return;
      const waits = store.getSnapshot().open.get(id)?.state.queue.some((known) => known.id === item.id);
      // Left without an answer (another conversation was opened): it must not stay held for ever. And if it left the queue
      // under the editor, what was written is not lost.
      if (waits) hold(after);
      else if (store.getSnapshot().open.get(id)?.draft === "") store.setDraft(id, latest.current);
    };
  }, [store, id, item.id, after]);

  const finish = (content: string | null): void => {
    settled.current = true;
    const images = item.content.filter((part) => part.type === "image_url");
    const changed = content === null ? {} : { content: images.length === 0 ? content : [{ type: "text" as const, text: content }, ...images] };
    const command = store.command(id, { type: "edit_queued", item: item.id, held: after, ...changed });
    // Refused: it left before the change arrived. What was written is not lost with it.
    store.answered(command).catch(() => {
      if (content === null) store.discard(command);
      else if (store.getSnapshot().open.get(id)?.draft === "") store.setDraft(id, content);
    });
    onDone();
  };

  return (
    <div className="queue-edit">
      <textarea
        ref={field}
        className="bare-field"
        rows={1}
        autoFocus
        aria-label={work.queue.edit}
        value={value}
        onChange={(event) => setValue(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Escape") {
            event.preventDefault();
            event.stopPropagation();
            finish(null);
          } else if (event.key === "Enter" && !event.shiftKey && value.trim() !== "") {
            event.preventDefault();
            finish(value);
          }
        }}
      />
      <div className="edit-bar">
        <span className="hint">{work.queue.editing}</span>
        <button type="button" className="button quiet small" onClick={() => finish(null)}>
          {work.queue.cancel}
        </button>
        <button type="button" className="button primary small" disabled={value.trim() === ""} onClick={() => finish(value)}>
          {work.queue.save}
        </button>
      </div>
    </div>
  );
}
