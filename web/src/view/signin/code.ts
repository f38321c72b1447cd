/** The one-time code of a sign-in link. It leaves the address before anything else happens: no history, no copy, no share. */

import type { Store } from "../../model/store";
import type { WireError } from "../../protocol/events.gen";

let refusal: WireError | null = null;

/** Why the link did not work, for whoever is not signed in some other way. */
export function codeRefusal(): WireError | null {
  return refusal;
}

function takeCode(): string | null {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const code = fragment.get("code");
  if (code === null) return null;
  fragment.delete("code");
  const rest = fragment.toString();
  history.replaceState(history.state, "", `${location.pathname}${location.search}${rest ? `#${rest}` : ""}`);
  return code === "" ? null : code;
}

/** Begins with the link's code if there is one. A used link is no reason to send away somebody who is signed in already. */
export async function enter(store: Store): Promise<void> {
  const code = takeCode();
  if (code !== null && (await store.signIn({ code }))) return;
  if (code !== null) refusal = store.getSnapshot().session.error;
  store.start();
}
