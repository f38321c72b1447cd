/**
 * Whether a message joined a turn that was already at work. The log does not say it of a message, but where it stands does: a
 * turn's own answer comes before it. Pure; called by what draws a person's message.
 */

import type { Message } from "../protocol/events.gen";

/** What came before a message does not change, so it is looked for once. */
const known = new WeakMap<Message, boolean>();

export function isSteered(messages: readonly Message[], message: Message): boolean {
  if (message.turn === null || message.role !== "user") return false;
  // Asked with every token: the first that is held is not looked for in all the others.
  if (messages[0] === message) return false;
  const answer = known.get(message);
  if (answer !== undefined) return answer;
  const place = messages.lastIndexOf(message);
  let before = place - 1;
  while (messages[before]?.turn === message.turn && messages[before]?.role !== "assistant") before -= 1;
  // Before the first that is held nothing is known: an older page may tell.
  if (place < 0 || before < 0) return false;
  const steered = messages[before]?.turn === message.turn;
  known.set(message, steered);
  return steered;
}
