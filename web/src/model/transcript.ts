/**
 * The messages of a view while events are folded into them: found, changed, taken away, as `src/palaver/core/fold/transcript.py`.
 *
 * Used by the fold alone; lives for one batch. The array is copied once a batch and only changed messages are replaced. An
 * event names its message or call; both are nearly always the latest, so every search goes from the end.
 */

import type { Block, Message, ToolBlock, TurnSummary } from "../protocol/events.gen";

export class Transcript {
  private messages: Message[];
  /** Messages made or copied in this batch: they may be changed in place, nobody has seen them. */
  private readonly mine = new Set<Message>();
  private copied = false;

  constructor(messages: Message[]) {
    this.messages = messages;
  }

  /** The same array when nothing in it changed. */
  get current(): Message[] {
    return this.messages;
  }

  append(message: Message): void {
    this.own().push(message);
    this.mine.add(message);
  }

  /** Whether it was there. */
  remove(id: string): boolean {
    const place = this.placeOf(id);
    if (place >= 0) this.own().splice(place, 1);
    return place >= 0;
  }

  truncate(place: number): void {
    this.own().splice(place);
  }

  change(id: string, seq: number, change: (message: Message) => void): void {
    const place = this.placeOf(id);
    if (place >= 0) change(this.ownMessage(place, seq));
  }

  /** Blocks ordered by index: a finished block may arrive before the one it follows once deltas are compacted away. */
  changeBlock<Event extends { message: string; seq: number; block: number }>(
    event: Event,
    change: (known: Block | null, event: Event) => Block,
  ): void {
    const place = this.placeOf(event.message);
    if (place < 0) return;
    const held = (this.messages[place] as Message).blocks;
    const at = held.findLastIndex((block) => block.index <= event.block);
    const known = held[at]?.index === event.block ? (held[at] as Block) : null;
    const changed = change(known, event);
    if (changed === known) return;
    this.ownMessage(place, event.seq).blocks.splice(known ? at : at + 1, known ? 1 : 0, changed);
  }

  changeCall(call: string, seq: number, change: (tool: ToolBlock) => ToolBlock): void {
    for (let place = this.messages.length - 1; place >= 0; place--) {
      const held = (this.messages[place] as Message).blocks;
      const at = held.findLastIndex((block) => block.type === "tool" && block.call === call);
      if (at < 0) continue;
      const changed = change(held[at] as ToolBlock);
      if (changed !== held[at]) this.ownMessage(place, seq).blocks[at] = changed;
      return;
    }
  }

  /** On the last message of a turn that ended otherwise than planned. */
  markEnd(summary: TurnSummary, seq: number): void {
    const place = this.messages.findLastIndex((message) => message.turn === summary.id && isShown(message));
    if (place >= 0) this.ownMessage(place, seq).ended = summary;
  }

  /** The last message of a turn; of one that left none, the last thing said before it, which it had to answer. */
  endOf(turn: string): string | null {
    const shown = this.messages.filter(isShown);
    const end = shown.findLast((message) => message.turn === turn);
    return (end ?? shown.findLast(({ role }) => role === "user" || role === "assistant"))?.id ?? null;
  }

  has(id: string): boolean {
    return this.placeOf(id) >= 0;
  }

  private placeOf(id: string): number {
    return this.messages.findLastIndex((message) => message.id === id);
  }

  private own(): Message[] {
    if (!this.copied) {
      this.messages = this.messages.slice();
      this.copied = true;
    }
    return this.messages;
  }

  /** A message to change: the one this batch has made already, or a copy put in its place. */
  private ownMessage(place: number, seq: number): Message {
    const messages = this.own();
    let message = messages[place] as Message;
    if (!this.mine.has(message)) {
      message = { ...message, blocks: message.blocks.slice() };
      messages[place] = message;
      this.mine.add(message);
    }
    message.updated_seq = seq;
    return message;
  }
}

function isShown({ hidden, status, blocks }: Message): boolean {
  return !hidden && status !== "superseded" && blocks.length > 0;
}
