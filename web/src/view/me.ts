/**
 * Who looks at this page, and through what a thing came, so that "you" and "elsewhere" are true. Both sides are lasting (the
 * log's origin, and what the session and this browser remember), so a reload changes no words.
 */

import { createContext, use } from "react";
import type { Origin } from "../protocol/events.gen";
import { text } from "../text";

export interface Me {
  readonly user: string | null;
  /** This browser, by the name it gives itself with every command. */
  readonly client: string;
}

export const MeContext = createContext<Me>({ user: null, client: "" });

export function useMe(): Me {
  return use(MeContext);
}

/** Done in this very browser. */
export function isHere(origin: Origin, me: Me): boolean {
  return origin.client === me.client && !isAnothers(origin, me);
}

/** Done by another person. */
export function isAnothers({ user }: Origin, me: Me): boolean {
  return user != null && me.user !== null && user !== me.user;
}

/** The face a thing came through, in words; null when it is a page like this one. */
export function faceOf(origin: Origin | null | undefined): string | null {
  const face = origin?.face ?? "native";
  if (face === "native" || face === "web" || face === "agents") return null;
  return text.message.faces[face] ?? face;
}
