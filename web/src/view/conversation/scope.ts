/** What the parts of one conversation share: which one it is, and what is being edited in it. */

import { createContext, use } from "react";

export interface Editing {
  messageId: string;
  text: string;
}

export interface ConversationScope {
  id: string;
  editing: Editing | null;
  setEditing: (editing: Editing | null) => void;
  /** A queued message being changed, by its id. */
  editingQueued: string | null;
  setEditingQueued: (item: string | null) => void;
}

export const ScopeContext = createContext<ConversationScope | null>(null);

export function useScope(): ConversationScope {
  const scope = use(ScopeContext);
  if (scope === null) throw new Error("no conversation above this component");
  return scope;
}

/** The id alone changes never, so rows that need no more are not drawn again when somebody edits. */
export const ConversationIdContext = createContext("");

export function useConversationId(): string {
  return use(ConversationIdContext);
}
