/**
 * A conversation as the flat list of rows the transcript draws: what a row holds. rowbook.ts makes them.
 *
 * A row keeps its identity as long as what it shows does not change, so a token changes exactly one row. Data only; the
 * words for it are in text.ts.
 */

import type {
  FileChange,
  ImageBlock,
  Message,
  Progress,
  Role,
  Stopped,
  Switch,
  TextBlock,
  ThinkingBlock,
  ToolBlock,
  Turn,
  TurnSummary,
  WireError,
} from "../protocol/events.gen";
import type { CompressedRange } from "./compressed";

interface Placed {
  /** Stable and unique within the conversation; also the key of disclosure and selection. */
  readonly key: string;
  /** Seq of the message it belongs to (of the turn's end for marks): for deep links and search hits. */
  readonly seq: number;
  readonly ts: number;
}

interface OfMessage extends Placed {
  readonly messageId: string;
}

/** The first row of a message carries who speaks; the others continue it. */
interface OfAgent extends OfMessage {
  readonly first: boolean;
  readonly agent: string | null;
  readonly model: string | null;
  readonly messageStatus: Progress;
  /** Null in copies (a branch, an import), which have no turns. */
  readonly turn: string | null;
}

export interface UserRow extends OfMessage {
  readonly kind: "user";
  readonly message: Message;
  readonly text: string;
  readonly images: readonly string[];
}

export interface TextRow extends OfAgent {
  readonly kind: "text";
  readonly block: TextBlock;
  /** Set on the last block of a message that was cut by a limit or refused. */
  readonly finishReason: string | null;
}

export interface ThinkingRow extends OfAgent {
  readonly kind: "thinking";
  readonly block: ThinkingBlock;
}

export interface ImageRow extends OfAgent {
  readonly kind: "image";
  readonly block: ImageBlock;
}

export interface ToolRow extends OfAgent {
  readonly kind: "tool";
  readonly block: ToolBlock;
}

/** A run of reading and searching calls, shown as one line until asked. */
export interface ToolGroupRow extends OfAgent {
  readonly kind: "tool_group";
  readonly tools: readonly ToolRow[];
  /** The calls with the thinking between them, in order. */
  readonly members: readonly (ToolRow | ThinkingRow)[];
}

/**
 * The work of one turn: every call, thought and text before its final text. Made by turnwork.ts from the rows of the turn; it
 * stands before them, and hides them while it is closed.
 */
export interface TurnWorkRow extends OfAgent {
  readonly kind: "work";
  readonly calls: readonly ToolBlock[];
  readonly live: boolean;
  readonly open: boolean;
  /** From its first step to the end of its last call; null while the turn runs. */
  readonly durationMs: number | null;
  /** The rows it hides while it is closed. */
  readonly hidden: readonly Row[];
}

/** A message by nobody in particular: a process that ended, a summary, a system note. */
export interface NoteRow extends OfMessage {
  readonly kind: "note";
  readonly role: Exclude<Role, "user" | "assistant">;
  readonly eventKind: string | null;
  readonly message: Message;
  readonly text: string;
}

/** Before the first answer of a model that took over. */
export interface SwitchRow extends OfMessage {
  readonly kind: "switch";
  readonly switch: Switch;
}

/** An answer that was cut off and made again: what came of it is kept, folded. */
export interface AttemptRow extends OfMessage {
  readonly kind: "attempt";
  readonly text: string;
}

/** The model is shown less of what stands above. */
export interface CompressedRow extends Placed {
  readonly kind: "compressed";
  readonly range: CompressedRange;
}

/** The change report of a turn that is over. */
export interface ChangesRow extends Placed {
  readonly kind: "changes";
  readonly changes: readonly FileChange[];
}

export interface InterruptedRow extends Placed {
  readonly kind: "interrupted";
  /** Known for the latest turn only. */
  readonly stopped: Stopped | null;
  readonly turn: TurnSummary | null;
  /** The latest thing in the conversation: Continue and Edit-and-resend make sense. */
  readonly last: boolean;
}

export interface ErrorRow extends Placed {
  readonly kind: "error";
  readonly error: WireError;
  readonly turn: TurnSummary;
}

export interface DayRow extends Placed {
  readonly kind: "day";
  /** Midnight, local time. */
  readonly day: number;
}

/** The end of the transcript while a turn runs. */
export interface ActivityRow extends Placed {
  readonly kind: "activity";
  readonly turn: Turn;
  /** The tool that runs or waits, if one does. */
  readonly tool: ToolBlock | null;
  readonly waiting: "approval" | "question" | "plan" | null;
}

export type Row =
  | UserRow
  | TextRow
  | ThinkingRow
  | ImageRow
  | ToolRow
  | ToolGroupRow
  | NoteRow
  | SwitchRow
  | AttemptRow
  | CompressedRow
  | ChangesRow
  | InterruptedRow
  | ErrorRow
  | DayRow
  | ActivityRow;
