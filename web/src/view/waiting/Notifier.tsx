/**
 * Tells of what waits for a person, and of turns that ended, while nobody looks at the page: with notices of the system where
 * they are wanted, in the tab's title and on the app's icon in any case. Draws nothing.
 */

import { useEffect, useRef } from "react";
import { Ends } from "../../model/happened";
import { usePageActions } from "../actions";
import { addressOf } from "../route";
import { usePick, useStore, useWaitingCount } from "../store";
import { addUnseen } from "../unseen";
import { closeNotices, isMuted, noticeOf, noticeOfEnd, permission, showNotice, Told } from "./notify";

export default function Notifier() {
  const store = useStore();
  const page = usePageActions();
  const requests = usePick((snapshot) => snapshot.requests);
  const list = usePick((snapshot) => snapshot.list);
  const waiting = useWaitingCount();
  const told = useRef(new Told());
  const ends = useRef(new Ends());

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
  return null;
}
