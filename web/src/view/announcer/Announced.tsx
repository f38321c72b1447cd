/** Announcements in words. */

import type { Announcement } from "../../model/announce";
import { later } from "../../text.later";

export default function Announced({ items }: { items: readonly Announcement[] }) {
  return <p>{items.map(wordsOf).join(" ")}</p>;
}

function wordsOf(announcement: Announcement): string {
  switch (announcement.kind) {
    case "turn_started":
      return later.announce.turnStarted;
    case "turn_ended":
      if (announcement.outcome === "failed") return later.announce.turnFailed;
      return announcement.outcome === "interrupted" ? later.announce.interrupted : later.announce.turnDone;
    case "request_opened": {
      const what = announcement.title ?? announcement.tool ?? "";
      if (announcement.request === "approval") return later.announce.approval(what);
      return announcement.request === "plan" ? later.announce.plan : later.announce.question(what);
    }
    case "text":
      return announcement.text;
  }
}
