/** What a person wrote: on its way, refused, or in the log. It can be edited in place, which answers again from there. */

import { memo, Suspense, type ReactNode } from "react";
import type { UserRow } from "../../model/rows";
import { isSteered } from "../../model/steered";
import type { Part } from "../../protocol/events.gen";
import { bytes, clock, exactTime } from "../../measures";
import { said } from "../../sentences";
import { text } from "../../text";
import { blobUrl } from "../../transport/api";
import type { OutboxEntry } from "../../transport/commands";
import { useConversationId, useScope } from "../conversation/scope";
import { copyText } from "../controls/Copy";
import { Icon } from "../controls/Icon";
import { plainly } from "../controls/visible";
import { Menu, type MenuAction } from "../controls/Menu";
import { usePageActions } from "../actions";
import { useAgentName } from "../agents";
import { EditMessage, KeptPicture, KnowledgeLine } from "../later";
import { ScreenLink } from "../frame/ScreenLink";
import { addressOf } from "../route";
import { faceOf, isAnothers, useMe, type Me } from "../me";
import type { Store } from "../../model/store";
import { useDisclosed, usePicked, useStore } from "../store";

// Longer than this, a message is a document: it opens on demand.
const LONG_CHARS = 1400;
const LONG_LINES = 16;

export function UserMessage({ row }: { row: UserRow }) {
  const { id, editing, setEditing } = useScope();
  const store = useStore();
  const page = usePageActions();
  const busy = usePicked(useConversationId(), ({ state }) => state.turn !== null) ?? false;
  const { message } = row;
  if (editing?.messageId === message.id) {
    return (
      <Suspense fallback={null}>
        <EditMessage row={row} />
      </Suspense>
    );
  }

  const actions: MenuAction[] = [{ label: text.message.copy, icon: "copy", onSelect: () => void copyText(row.text) }];
  // What another agent said is not the reader's to change.
  if (!busy && !message.origin?.agent) {
    actions.push({
      label: text.message.edit,
      icon: "edit",
      writes: true,
      onSelect: () => setEditing({ messageId: message.id, text: row.text }),
    });
  }
  const blob = message.blocks.find((block) => block.type === "text" && block.blob !== null);
  // Only the beginning of a very long message is at hand here.
  if (!busy && blob === undefined) {
    actions.push({ label: text.message.regenerateFrom, icon: "retry", writes: true, onSelect: () => answerAgain(store, id, row) });
  }
  actions.push({ label: text.message.branch, icon: "branch", writes: true, onSelect: () => page.branch(id, message.id) });
  return (
    <>
      <div className="user">
        {message.origin?.agent && <Sender agent={message.origin.agent} conversation={message.origin.conversation ?? null} />}
        <Words place={row.key} value={row.text} />
        <Images urls={row.images} />
        {blob?.type === "text" && blob.blob && (
          <a className="open-full" href={blobUrl(blob.blob.id)} target="_blank" rel="noopener">
            {text.message.full(bytes(blob.blob.size))}
          </a>
        )}
        <Byline row={row} />
        <div className="row-actions">
          <time className="row-time tabular" dateTime={new Date(row.ts).toISOString()} title={exactTime(row.ts)}>
            {clock(row.ts)}
          </time>
          <Menu label={text.message.menu} actions={actions} className="icon-button small">
            <Icon name="more" />
          </Menu>
        </div>
      </div>
      {message.knowledge && <KnowledgeLine place={row.key} knowledge={message.knowledge} />}
    </>
  );
}

/** Another agent, and where it speaks from. */
function Sender({ agent, conversation }: { agent: string; conversation: string | null }) {
  const name = useAgentName(agent);
  return (
    <p className="user-sender">
      <Icon name="users" />
      {conversation === null ? (
        name
      ) : (
        <ScreenLink to={addressOf(conversation)}>{name}</ScreenLink>
      )}
    </p>
  );
}

/** The same message once more, without what followed it. */
function answerAgain(store: Store, id: string, { message, text: words, images }: UserRow): void {
  const state = store.getSnapshot().open.get(id)?.state;
  const place = state?.messages.findIndex((known) => known.id === message.id) ?? -1;
  if (!state || place < 0) return;
  const pictures = images.map((url): Part => ({ type: "image_url", image_url: { url } }));
  const content: string | Part[] = pictures.length === 0 ? words : [{ type: "text", text: words }, ...pictures];
  store.command(id, { type: "retry_from", index: state.offset + place, content });
}

/** Who wrote it and through what, when that is not the reader in a page like this. */
function Byline({ row }: { row: UserRow }) {
  const me = useMe();
  const { origin, edited } = row.message;
  const face = faceOf(origin);
  const steered = usePicked(useConversationId(), ({ state }) => isSteered(state.messages, row.message));
  const line = text.join(
    !origin?.agent && whoElse(row, me),
    face && text.message.via(face),
    steered && text.message.steered,
    edited && text.message.edited,
  );
  return line ? <p className="user-byline">{line}</p> : null;
}

/** Null: the reader. */
function whoElse({ message: { origin } }: UserRow, me: Me): string | null {
  if (origin?.agent) return text.message.agent(origin.agent);
  return origin && isAnothers(origin, me) ? (origin.user ?? null) : null;
}

export function nameOfUser(row: UserRow, me: Me): string {
  return text.message.from(whoElse(row, me) ?? text.message.you, clock(row.ts));
}

export function Words({ place, value }: { place: string; value: string }) {
  const [all, setAll] = useDisclosed(`all:${place}`);
  const long = value.length > LONG_CHARS || value.split("\n", LONG_LINES + 1).length > LONG_LINES;
  if (value === "") return null;
  return (
    <>
      <p className={long && !all ? "user-text clamped" : "user-text"}>{plainly(value)}</p>
      {long && (
        <button type="button" className="link-button" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? text.message.less : text.message.more}
        </button>
      )}
    </>
  );
}

export function Images({ urls }: { urls: readonly string[] }) {
  if (urls.length === 0) return null;
  return (
    <ul className="user-images">
      {urls.map((url, at) => (
        <li key={at}>
          <Picture url={url} />
        </li>
      ))}
    </ul>
  );
}

/** Nothing remote is fetched by looking at a message: only our own uploads and images inside the message are shown. */
export function Picture({ url }: { url: string }) {
  if (url.startsWith("/api/")) {
    return (
      <Suspense fallback={null}>
        <KeptPicture url={url} />
      </Suspense>
    );
  }
  const own = url.startsWith("data:image/") || url.startsWith("blob:");
  if (!own) {
    return (
      <a href={/^https?:/.test(url) ? url : undefined} target="_blank" rel="noopener noreferrer">
        {url}
      </a>
    );
  }
  return <img className="picture" src={url} alt={text.message.image} loading="lazy" decoding="async" />;
}

/** A message that is not in the log yet: on its way, waiting for the connection, or refused. */
export const PendingMessage = memo(function PendingMessage({ entry }: { entry: OutboxEntry }) {
  const { command } = entry;
  if (command.type !== "send_message" && command.type !== "retry_from") return null;
  const parts: Part[] = typeof command.content === "string" ? [{ type: "text", text: command.content }] : command.content;
  const words = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
  const images = parts.flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : []));
  return (
    <div className={entry.status === "failed" ? "user failed" : "user pending"}>
      <Words place={entry.id} value={words} />
      <Images urls={images} />
      <PendingState entry={entry} />
    </div>
  );
});

export function PendingState({ entry }: { entry: OutboxEntry }): ReactNode {
  const store = useStore();
  if (entry.status === "failed") {
    return (
      <p className="user-byline is-bad" role="alert">
        <span>
          {text.message.failed}
          {entry.error && `: ${said(entry.error.message)}`}
        </span>
        <button type="button" className="link-button" onClick={() => store.retry(entry.id)}>
          {text.message.retry}
        </button>
        <button type="button" className="link-button" onClick={() => store.discard(entry.id)}>
          {text.message.discard}
        </button>
      </p>
    );
  }
  return (
    <p className="user-byline">{entry.status === "waiting" ? text.message.waitingForConnection : text.message.sending}</p>
  );
}
