/** What a screen reader is told, politely: starts, ends, requests, finished sentences. Nothing to see. */

import type { Announcement } from "../../model/announce";
import { text } from "../../text";
import { usePick } from "../store";

export function Announcer() {
  const { id, items } = usePick((snapshot) => snapshot.announcement);
  return (
    <div className="sr-only" aria-live="polite" aria-atomic="true">
      <p key={id}>{items.map(wordsOf).join(" ")}</p>
    </div>
  );
}

function wordsOf(announcement: Announcement): string {
  switch (announcement.kind) {
    case "turn_started":
      return text.announce.turnStarted;
    case "turn_ended":
      if (announcement.outcome === "failed") return text.announce.turnFailed;
      return announcement.outcome === "interrupted" ? text.announce.interrupted : text.announce.turnDone;
    case "request_opened": {
      const what = announcement.title ?? announcement.tool ?? "";
      if (announcement.request === "approval") return text.announce.approval(what);
      return announcement.request === "plan" ? text.announce.plan : text.announce.question(what);
    }
    case "text":
      return announcement.text;
  }
}
