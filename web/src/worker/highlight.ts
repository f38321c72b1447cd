/** Colours code off the main thread. `view/code` sends jobs; the colouring itself is `model/highlight`, pure and tested. */

import { highlight, type HighlightJob } from "../model/highlight";

self.addEventListener("message", (event: MessageEvent<HighlightJob>) => {
  self.postMessage(highlight(event.data));
});
