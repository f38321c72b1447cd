/** Shows a system notice for each request that comes while nobody looks at the page. Draws nothing. */

import { useEffect, useRef } from "react";
import { usePageActions } from "../actions";
import { usePick, useStore } from "../store";
import { noticeOf, permission, Told } from "./notify";

export default function Notifier() {
  const store = useStore();
  const page = usePageActions();
  const requests = usePick((snapshot) => snapshot.requests);
  const told = useRef(new Told());
  useEffect(() => {
    if (requests.phase !== "ready") return;
    const fresh = told.current.fresh(requests.items);
    if (!document.hidden || permission() !== "on") return;
    const { agents } = store.getSnapshot();
    for (const item of fresh) {
      const { title, body } = noticeOf(item, agents.items.find(({ id }) => id === item.agent)?.name ?? item.agent);
      // The tag is one for all tabs: the second to tell of a request only repeats the first.
      const notice = new Notification(title, { body, tag: item.request.id });
      notice.onclick = () => {
        window.focus();
        page.open(item.conversation);
        notice.close();
      };
    }
  }, [requests, store, page]);
  return null;
}
