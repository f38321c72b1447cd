/** Where a screen reader is told, politely: starts, ends, requests, finished sentences. Nothing to see. */

import { Suspense } from "react";
import { Announced } from "../later";
import { usePick } from "../store";

export function Announcer() {
  const { id, items } = usePick((snapshot) => snapshot.announcement);
  return (
    <div className="sr-only" aria-live="polite" aria-atomic="true">
      <Suspense fallback={null}>{items.length > 0 && <Announced key={id} items={items} />}</Suspense>
    </div>
  );
}
