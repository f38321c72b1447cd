/** What any part of the page may ask of the page itself. */

import { createContext, use } from "react";

export interface PageActions {
  goHome: () => void;
  open: (conversation: string, at?: number) => void;
  /** A new conversation with everything up to this message; absent: all of it. */
  branch: (conversation: string, message?: string) => void;
  /** Offers the conversation as a file. */
  share: (conversation: string) => void;
  showPalette: () => void;
  showKeys: () => void;
}

export const ActionsContext = createContext<PageActions | null>(null);

export function usePageActions(): PageActions {
  const actions = use(ActionsContext);
  if (actions === null) throw new Error("no page above this component");
  return actions;
}
