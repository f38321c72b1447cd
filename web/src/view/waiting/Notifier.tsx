/**
 * Tells of what waits for a person, and of turns that ended, while nobody looks at the page: with notices of the system where
 * they are wanted, in the tab's title and on the app's icon in any case. Of a turn that failed in a conversation that is not in
 * view it tells on the page too.
 */

import { useEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { Ends, type Happening } from "../../model/happened";
import { text } from "../../text";
import { later } from "../../text.later";
import { usePageActions } from "../actions";
import { Icon } from "../controls/Icon";
import { plainly } from "../controls/visible";
import { ScreenLink } from "../frame/ScreenLink";
import { addressOf, useRoute } from "../route";
import { usePick, useStore, useWaitingCount } from "../store";
import { addUnseen } from "../unseen";
import { closeNotices, isMuted, noticeOf, noticeOfEnd, permission, showNotice, Told } from "./notify";

/** The latest of them: whoever is away for long looks at the list. */
const MOST_FAILURES = 3;

export default function Notifier() {
  const store = useStore();
  const page = usePageActions();
  const requests = usePick((snapshot) => snapshot.requests);
  const list = usePick((snapshot) => snapshot.list);
  const waiting = useWaitingCount();
  const told = useRef(new Told());
  const ends = useRef(new Ends());
  const { conversation } = useRoute();
  const [failures, setFailures] = useState<readonly Happening[]>([]);

  useEffect(() => {
    if (requests.phase !== "ready") return;
    const fresh = told.current.fresh(requests.items);
    if (!document.hidden || permission() !== "on" || isMuted("waiting")) return;
    const { agents } = store.getSnapshot();
    for (const item of fresh) {
      const notice = noticeOf(item, agents.items.find(({ id }) => id === item.agent)?.name ?? item.agent);
      showNotice(notice, item.request.id, addressOf(item.conversation), () => page.open(item.conversation));
    }
  }, [requests, store, page]);

  useEffect(() => {
    if (list.phase !== "ready") return;
    const happened = ends.current.take(list.byId);
    const failed = happened.filter(({ kind }) => kind === "failed");
    if (failed.length > 0) setFailures((known) => [...known, ...failed].slice(-MOST_FAILURES));
    if (!document.hidden) return;
    addUnseen(happened.length);
    if (permission() !== "on") return;
    const { agents } = store.getSnapshot();
    for (const one of happened) {
      if (isMuted(one.kind)) continue;
      const notice = noticeOfEnd(one, agents.items.find(({ id }) => id === one.agent)?.name ?? one.agent);
      showNotice(notice, one.key, addressOf(one.conversation), () => page.open(one.conversation));
    }
  }, [list, store, page]);

  useEffect(() => {
    const badge = waiting > 0 ? navigator.setAppBadge?.(waiting) : navigator.clearAppBadge?.();
    // An icon that shows no number shows none.
    badge?.catch(() => undefined);
  }, [waiting]);

  useEffect(() => {
    const onVisible = (): void => {
      if (!document.hidden) void closeNotices();
    };
    document.addEventListener("visibilitychange", onVisible);
    return () => document.removeEventListener("visibilitychange", onVisible);
  }, []);
  useEffect(() => {
    // What is in view shows it in its own place.
    setFailures((known) => (known.some((one) => one.conversation === conversation) ? known.filter((one) => one.conversation !== conversation) : known));
  }, [conversation, failures]);
  const host = failures.length === 0 ? null : document.querySelector(".notices");
  return (
    host &&
    createPortal(
      failures.map((one) => <Failure key={one.key} one={one} onDismiss={() => setFailures((known) => known.filter((other) => other !== one))} />),
      host,
    )
  );
}

function Failure({ one, onDismiss }: { one: Happening; onDismiss: () => void }) {
  return (
    <p className="notice-line">
      <Icon name="warn" />
      <span>
        {later.notices.turnFailed} <ScreenLink to={addressOf(one.conversation)}>{plainly(one.title) || text.list.untitled}</ScreenLink>
      </span>
      <button type="button" className="icon-button small" aria-label={later.notices.dismiss} onClick={onDismiss}>
        <Icon name="close" />
      </button>
    </p>
  );
}
