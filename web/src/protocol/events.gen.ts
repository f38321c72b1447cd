// Made by `python -m palaver.schema.generate` from src/palaver/schema. Do not edit.

/**
 * Everything that crosses Palaver's wire: events, commands, their answers and the folded view.
 */
export type Protocol = KnownEvent | Command | Accepted | CreateConversation | State | Listing | WireError;
export type KnownEvent =
  | TextDelta
  | ThinkingDelta
  | ToolOutputDelta
  | ToolInputDelta
  | ConversationCreated
  | ConversationUpdated
  | ConversationDeleted
  | DraftSet
  | DraftCleared
  | QueueAdded
  | QueueEdited
  | QueueRemoved
  | MessageAdded
  | MessageEdited
  | MessageRemoved
  | MessageTruncated
  | TurnStarted
  | TurnStatus
  | TurnFinished
  | TurnInterrupted
  | AnswerStarted
  | TextFinished
  | ThinkingFinished
  | AnswerFinished
  | CitationAdded
  | ToolCalled
  | ToolStarted
  | ToolFinished
  | RequestOpened
  | RequestResolved
  | SubagentStarted
  | SubagentFinished
  | ExchangeSent
  | ExchangeReturned
  | ContextMeasured
  | ContextCompressed
  | KnowledgeRecalled
  | FilesChanged
  | PlanUpdated
  | ProcessStarted
  | ProcessFinished
  | ModelSwitched
  | MissionSet
  | MissionCleared
  | MissionTriggered
  | AgentOverridden
  | GrantAdded
  | GrantRemoved
  | LogCompacted;
export type Part = TextPart | ImagePart;
export type Delivery = "turn" | "boundary";
export type Role = "user" | "assistant" | "system" | "event" | "plan" | "summary";
export type Block = TextBlock | ThinkingBlock | ImageBlock | ToolBlock;
export type Progress = "streaming" | "done" | "interrupted" | "superseded";
export type ToolStatus = "input" | "called" | "waiting" | "running" | "ok" | "error" | "denied" | "interrupted";
export type Activity = "model_loading" | "thinking" | "calling_tool" | "working" | "idle";
export type Outcome = "completed" | "task" | "plan" | "yielded" | "limited" | "failed" | "interrupted";
export type Stopped = "user" | "restart" | "shutdown" | "limit" | "backend_exit" | "storage" | "deleted" | "parent";
export type RequestKind = "approval" | "question" | "plan";
export type Scope = "once" | "conversation" | "agent" | "project";
export type RequestStatus = "open" | "answered" | "expired" | "cancelled" | "superseded";
export type Verdict = "allow" | "deny";
export type Then = "continue" | "stop";
export type Command =
  | SendMessage
  | EditQueued
  | RemoveQueued
  | Interrupt
  | ResolveRequest
  | DecideTools
  | StopProcess
  | RemoveGrant
  | UpdateConversation
  | SetParams
  | DeleteConversation
  | EditMessage
  | RemoveMessage
  | TruncateMessages
  | RetryFrom
  | Regenerate
  | ReturnToolResult
  | RestoreMessages
  | SetDraft
  | ClearDraft;
export type Status =
  "idle" | "generating" | "executing_tools" | "paused" | "waiting_ide" | "waiting_user_input" | "completed" | "error";

export interface TextDelta {
  type: "text.delta";
  message: string;
  block: number;
  text: string;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * Who caused an event and through which face; a face that must not echo a client filters on it.
 */
export interface Origin {
  face?: string;
  client?: string | null;
  user?: string | null;
  agent?: string | null;
  conversation?: string | null;
  agent_token?: boolean;
  human_token?: boolean;
}
export interface ThinkingDelta {
  type: "thinking.delta";
  message: string;
  block: number;
  text: string;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface ToolOutputDelta {
  type: "tool.output.delta";
  call: string;
  text: string;
  stream?: "stderr" | "stdout";
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface ToolInputDelta {
  type: "tool.input.delta";
  message: string;
  block: number;
  call: string;
  name: string;
  text?: string;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface ConversationCreated {
  type: "conversation.created";
  agent?: string;
  title?: string;
  project?: string | null;
  params?: {
    [k: string]: unknown;
  };
  parent?: Parent | null;
  source?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * Where a conversation comes from. `root` is the top of its tree.
 */
export interface Parent {
  conversation: string;
  kind: "branch" | "exchange" | "mission" | "subagent";
  root: string;
  message: string | null;
  call: string | null;
  depth: number;
}
/**
 * Only the given fields change. In `params` a null clears its key.
 */
export interface ConversationUpdated {
  type: "conversation.updated";
  title?: string | null;
  title_source?: ("auto" | "user") | null;
  agent?: string | null;
  params?: {
    [k: string]: unknown;
  } | null;
  archived?: boolean | null;
  project?: string | null;
  parent?: Parent | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface ConversationDeleted {
  type: "conversation.deleted";
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface DraftSet {
  type: "draft.set";
  text: string;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface DraftCleared {
  type: "draft.cleared";
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * A message waits; or a `command` that changes the history does, as it was sent, and `content` is empty.
 */
export interface QueueAdded {
  type: "queue.added";
  item: string;
  content: Part[];
  delivery?: Delivery;
  priority?: boolean;
  merge?: boolean;
  agent?: string | null;
  mode?: string | null;
  trigger?: "callback" | "idle" | "message" | "task";
  hops?: number;
  command?: {
    [k: string]: unknown;
  } | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * Text. When it outgrew an event, `text` holds its beginning and `blob` all of it.
 */
export interface TextPart {
  type: "text";
  text: string;
  blob?: BlobRef | null;
  mime?: string | null;
}
/**
 * A payload too large for its event, kept once under the SHA-256 of its bytes.
 */
export interface BlobRef {
  id: string;
  size: number;
  mime?: string;
}
export interface ImagePart {
  type: "image_url";
  image_url: ImageUrl;
}
export interface ImageUrl {
  url: string;
  detail?: string | null;
}
export interface QueueEdited {
  type: "queue.edited";
  item: string;
  version: number;
  content?: Part[] | null;
  held?: boolean | null;
  priority?: boolean | null;
  before?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface QueueRemoved {
  type: "queue.removed";
  item: string;
  reason: "cancelled" | "delivered";
  why?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * A message by anyone but the running agent. `blocks` instead of `content` for restored and imported ones.
 */
export interface MessageAdded {
  type: "message.added";
  message: string;
  role?: Role;
  content?: Part[];
  blocks?: Block[] | null;
  hidden?: boolean;
  event_kind?: string | null;
  agent?: string | null;
  model?: string | null;
  item?: string | null;
  data?: unknown;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface TextBlock {
  type: "text";
  text: string;
  status: Progress;
  blob: BlobRef | null;
  citations: unknown[];
  index: number;
}
export interface ThinkingBlock {
  type: "thinking";
  text: string;
  status: Progress;
  redacted: boolean;
  signature: string | null;
  provider: unknown;
  duration_ms: number | null;
  index: number;
}
export interface ImageBlock {
  type: "image";
  url: string;
  index: number;
}
export interface ToolBlock {
  type: "tool";
  call: string;
  name: string;
  status: ToolStatus;
  input: unknown;
  input_text: string;
  output: string;
  error: ToolError | null;
  truncated: boolean;
  blob: BlobRef | null;
  total_lines: number | null;
  total_bytes: number | null;
  exit_code: number | null;
  request: string | null;
  grant: string | null;
  provider: unknown;
  started_at: number | null;
  finished_at: number | null;
  changes: FileChange[];
  index: number;
}
export interface ToolError {
  code: string;
  message: string;
}
export interface FileChange {
  path: string;
  kind: "created" | "deleted" | "modified" | "renamed";
  additions: number;
  deletions: number;
  diff: string | null;
  blob: BlobRef | null;
}
export interface MessageEdited {
  type: "message.edited";
  message: string;
  content: Part[];
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface MessageRemoved {
  type: "message.removed";
  message: string;
  index: number;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * Everything from `index` on is gone from the view (never from the log).
 */
export interface MessageTruncated {
  type: "message.truncated";
  index: number;
  first_seq?: number | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface TurnStarted {
  type: "turn.started";
  agent: string;
  backend: string;
  trigger: Trigger;
  model?: string | null;
  parent?: string | null;
  mode?: string | null;
  resumable?: boolean;
  steerable?: boolean;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * Why a turn began, and the messages it consumes.
 */
export interface Trigger {
  kind: "callback" | "idle" | "message" | "process" | "regenerate" | "request" | "task";
  messages: string[];
  request: string | null;
  exchange: string | null;
  hops: number;
}
export interface TurnStatus {
  type: "turn.status";
  status: Activity;
  detail?: string | null;
  retry?: Retry | null;
  yielding?: boolean;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface Retry {
  attempt: number;
  of: number;
  after_s: number;
  reason: string;
}
export interface TurnFinished {
  type: "turn.finished";
  outcome: Outcome;
  usage?: Usage;
  cost_usd?: number | null;
  duration_ms?: number | null;
  error?: WireError | null;
  summary?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * Tokens a provider counted. Cached tokens are part of `input_tokens`.
 */
export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
  reasoning_tokens?: number;
}
/**
 * `message` says what to do; `details` holds what a program may want.
 */
export interface WireError {
  code: string;
  message: string;
  retryable?: boolean;
  details?: {
    [k: string]: unknown;
  };
}
export interface TurnInterrupted {
  type: "turn.interrupted";
  reason: Stopped;
  usage?: Usage;
  cost_usd?: number | null;
  duration_ms?: number | null;
  audio_end_ms?: number | null;
  detail?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * One model call begins to answer. `replaces` names the cut attempt that this one takes the place of.
 */
export interface AnswerStarted {
  type: "answer.started";
  message: string;
  model?: string | null;
  replaces?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface TextFinished {
  type: "text.finished";
  message: string;
  block: number;
  text: string;
  interrupted?: boolean;
  blob?: BlobRef | null;
  unposted?: boolean;
  cancelled?: boolean;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface ThinkingFinished {
  type: "thinking.finished";
  message: string;
  block: number;
  text: string;
  interrupted?: boolean;
  redacted?: boolean;
  signature?: string | null;
  provider?: unknown;
  duration_ms?: number | null;
  cancelled?: boolean;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface AnswerFinished {
  type: "answer.finished";
  message: string;
  finish_reason: string;
  usage?: Usage | null;
  cost_usd?: number | null;
  model?: string | null;
  interrupted?: boolean;
  provider?: unknown;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface CitationAdded {
  type: "citation.added";
  message: string;
  block: number;
  citation: unknown;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * The model asks for a tool; nothing has run. `provider` keeps the provider's own call id, which may repeat.
 */
export interface ToolCalled {
  type: "tool.called";
  message: string;
  block: number;
  call: string;
  name: string;
  input?: unknown;
  provider?: unknown;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * Committed before the tool's first effect: the grant it runs under. From here on its effect may be unknown.
 */
export interface ToolStarted {
  type: "tool.started";
  call: string;
  grant: string;
  request?: string | null;
  hash?: string | null;
  sandbox?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * The one result of a call. `output` replaces what was streamed; `effect` says what happened to the world.
 */
export interface ToolFinished {
  type: "tool.finished";
  call: string;
  ok: boolean;
  output?: string;
  error?: ToolError | null;
  effect?: "done" | "none" | "unknown";
  truncated?: boolean;
  blob?: BlobRef | null;
  total_lines?: number | null;
  total_bytes?: number | null;
  exit_code?: number | null;
  duration_ms?: number | null;
  cancelled?: boolean;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * `hash` binds an approval to exactly what will run; any change asks again.
 */
export interface RequestOpened {
  type: "request.opened";
  request: string;
  kind: RequestKind;
  call?: string | null;
  agent?: string | null;
  tool?: string | null;
  input?: unknown;
  hash?: string | null;
  title?: string | null;
  risk?: string | null;
  sandbox?: string | null;
  preview?: string | null;
  scopes?: Scope[];
  offers?: Offer[];
  questions?: Question[];
  plan?: Plan | null;
  expires_at?: number | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * What a lasting yes to a request may cover. `match` as in a rule; absent: every call of the tool.
 */
export interface Offer {
  label: string;
  match: string | null;
}
export interface Question {
  question: string;
  header: string;
  options: QuestionOption[];
  multi_select: boolean;
}
export interface QuestionOption {
  label: string;
  description: string | null;
  preview: string | null;
}
export interface Plan {
  summary: string;
  items: PlanItem[];
  status: "approved" | "completed" | "executing" | "planned";
  text: string | null;
}
export interface PlanItem {
  title: string;
  description: string | null;
  status: "done" | "in_progress" | "pending" | "skipped";
}
/**
 * The one end of a request. Who answered is the event's `origin`.
 */
export interface RequestResolved {
  type: "request.resolved";
  request: string;
  status: RequestStatus;
  verdict?: Verdict | null;
  then?: Then;
  scope?: Scope;
  asked_scope?: Scope | null;
  offer?: number;
  answers?: Answer[];
  text?: string | null;
  input?: unknown;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * One question's answer.
 */
export interface Answer {
  question_index?: number;
  selected?: string[];
  custom_text?: string | null;
}
export interface SubagentStarted {
  type: "subagent.started";
  subagent: string;
  agent: string;
  task: string;
  call?: string | null;
  run?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface SubagentFinished {
  type: "subagent.finished";
  subagent: string;
  outcome: "cancelled" | "completed" | "failed";
  result?: string | null;
  run?: string | null;
  cost_usd?: number | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * One agent writes to another. The exchange has the id of the call that sent it.
 */
export interface ExchangeSent {
  type: "exchange.sent";
  exchange: string;
  agent: string;
  to?: string | null;
  content?: string;
  mode?: "async" | "sync";
  call?: string | null;
  hops?: number;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
}
/**
 * What came of it so far, on both sides. `complete`, `failed` and `cancelled` are ends: the first of them counts.
 */
export interface ExchangeReturned {
  type: "exchange.returned";
  exchange: string;
  status: "cancelled" | "complete" | "failed" | "queued" | "started" | "timeout";
  response?: string | null;
  duration_ms?: number | null;
  tool_call_count?: number | null;
  run?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
}
export interface ContextMeasured {
  type: "context.measured";
  used_tokens: number;
  window_tokens?: number | null;
  estimated?: boolean;
  stage?: string | null;
  message_count?: number;
  char_count?: number;
  breakdown?: {
    [k: string]: number;
  };
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * A stage was taken: what began before `horizon` is shown to models in its way from now on, the same way each time.
 */
export interface ContextCompressed {
  type: "context.compressed";
  stage: "deduplicate" | "limit" | "repair" | "shorten" | "summarize";
  strength: "absent" | "high" | "low" | "medium";
  before_tokens: number;
  after_tokens: number;
  horizon?: number;
  messages?: string[];
  summary?: string | null;
  usage?: Usage | null;
  cost_usd?: number | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * What was recalled for a message. `text` is what the model is shown with it, now and in every later step.
 */
export interface KnowledgeRecalled {
  type: "knowledge.recalled";
  message?: string | null;
  sources?: KnowledgeSource[];
  tokens?: number;
  text?: string;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * Where something recalled comes from. `ref` is a conversation's id or a path beneath the project.
 */
export interface KnowledgeSource {
  kind: "conversation" | "file" | "note";
  ref: string;
  title: string;
  snippet: string;
  seq: number | null;
}
export interface FilesChanged {
  type: "files.changed";
  files: FileChange[];
  call?: string | null;
  truncated_count?: number;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface PlanUpdated {
  type: "plan.updated";
  plan?: Plan | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface ProcessStarted {
  type: "process.started";
  process: string;
  command: string;
  call?: string | null;
  pid?: number | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface ProcessFinished {
  type: "process.finished";
  process: string;
  exit_code?: number | null;
  end?: "exited" | "restart" | "stopped";
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface ModelSwitched {
  type: "model.switched";
  to_model: string;
  from_model?: string | null;
  reason?: string;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * A project's mission. The one before it ends, and stays in the history.
 */
export interface MissionSet {
  type: "mission.set";
  mission: string;
  text: string;
  agents?: MissionAgent[];
  budget_usd?: number | null;
  project?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
export interface MissionAgent {
  agent: string;
  idle_prompt?: string | null;
  idle_interval_s?: number | null;
}
export interface MissionCleared {
  type: "mission.cleared";
  mission: string;
  project?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * An agent that has rested long enough is woken with its idle prompt.
 */
export interface MissionTriggered {
  type: "mission.triggered";
  mission: string;
  agent: string;
  count: number;
  target?: string | null;
  prompt?: string | null;
  spent_usd?: number | null;
  project?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * What a project says of an agent's resting from now on, as a whole: what is absent is no longer said.
 */
export interface AgentOverridden {
  type: "agent.overridden";
  agent: string;
  idle_prompt?: string | null;
  idle_interval_s?: number | null;
  project?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * A standing rule that a person gave, in the stream of what it covers.
 */
export interface GrantAdded {
  type: "grant.added";
  tool: string;
  scope: Scope;
  decision?: "allow" | "ask" | "deny_abort" | "deny_continue";
  match?: string | null;
  agent?: string | null;
  request?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * A standing rule was taken back.
 */
export interface GrantRemoved {
  type: "grant.removed";
  tool: string;
  match?: string | null;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * Stands for the events `first` to `seq`, deltas that finished blocks made redundant. Carries the chain's value.
 */
export interface LogCompacted {
  type: "log.compacted";
  first: number;
  chain: string;
  seq: number;
  id: string;
  ts: number;
  conversation: string;
  turn?: string | null;
  origin?: Origin | null;
  client_request_id?: string | null;
  body_hash?: string | null;
  exchange?: string | null;
}
/**
 * Queued while a turn runs, else it starts one in the same step. `merge` items waiting together share one turn.
 *
 *     `held`: it waits in the queue until it is let go (`edit_queued`), also when nothing runs.
 */
export interface SendMessage {
  type: "send_message";
  content: string | Part[];
  delivery?: Delivery;
  priority?: boolean;
  merge?: boolean;
  held?: boolean;
  agent?: string | null;
  mode?: string | null;
  client_request_id?: string | null;
}
/**
 * Change, hold or move a message that has not been delivered. `before` is another item's id; `""` means the end.
 *
 *     Without an `item`: hold, or let go in their order, all that wait.
 */
export interface EditQueued {
  type: "edit_queued";
  item?: string | null;
  content?: string | Part[] | null;
  held?: boolean | null;
  priority?: boolean | null;
  before?: string | null;
  client_request_id?: string | null;
}
export interface RemoveQueued {
  type: "remove_queued";
  item: string;
  client_request_id?: string | null;
}
/**
 * Stop the active turn and everything it started. Always accepted; the queue goes on, unless it is to be held.
 *
 *     `hold_queue`: what waits is held back in the same step, also when the named `turn` had ended by then.
 */
export interface Interrupt {
  type: "interrupt";
  turn?: string | null;
  audio_end_ms?: number | null;
  hold_queue?: boolean;
  client_request_id?: string | null;
}
/**
 * Answer an approval, a question or a plan. The first answer wins; later ones are told what was recorded.
 */
export interface ResolveRequest {
  type: "resolve_request";
  request: string;
  verdict?: Verdict | null;
  then?: Then;
  scope?: Scope;
  offer?: number;
  answers?: Answer[];
  text?: string | null;
  input?: unknown;
  client_request_id?: string | null;
}
/**
 * Decide calls that wait for a person, together. Those not named stay open; an empty list means all of them, `accepted`.
 *
 *     `then` says what follows a no: by default the agent goes on with the denial; `stop` lets the accepted ones run and ends
 *     the turn.
 */
export interface DecideTools {
  type: "decide_tools";
  decisions?: ToolDecision[];
  accepted?: boolean;
  then?: Then;
  text?: string | null;
  client_request_id?: string | null;
}
/**
 * A yes or no to one waiting call.
 */
export interface ToolDecision {
  call: string;
  accepted: boolean;
}
/**
 * End a background process and its children.
 */
export interface StopProcess {
  type: "stop_process";
  process: string;
  client_request_id?: string | null;
}
/**
 * Take back what was always allowed here.
 */
export interface RemoveGrant {
  type: "remove_grant";
  tool: string;
  match?: string | null;
  client_request_id?: string | null;
}
export interface UpdateConversation {
  type: "update_conversation";
  title?: string | null;
  agent?: string | null;
  archived?: boolean | null;
  client_request_id?: string | null;
}
/**
 * Merged into the conversation's parameters; null clears one.
 */
export interface SetParams {
  type: "set_params";
  patch: {
    [k: string]: unknown;
  };
  client_request_id?: string | null;
}
export interface DeleteConversation {
  type: "delete_conversation";
  client_request_id?: string | null;
}
export interface EditMessage {
  type: "edit_message";
  message: string;
  content: string | Part[];
  regenerate?: boolean;
  client_request_id?: string | null;
  when_busy?: "queue" | "refuse";
  priority?: boolean;
}
/**
 * `regenerate`: and answer the last message of a person again.
 */
export interface RemoveMessage {
  type: "remove_message";
  message: string;
  regenerate?: boolean;
  client_request_id?: string | null;
  when_busy?: "queue" | "refuse";
  priority?: boolean;
}
/**
 * `flat`: the index counts as OpenAI-shaped clients do, each result of a tool as a message of its own.
 */
export interface TruncateMessages {
  type: "truncate_messages";
  from_index: number;
  flat?: boolean;
  client_request_id?: string | null;
  when_busy?: "queue" | "refuse";
  priority?: boolean;
}
/**
 * Drop everything from `index` on, send `content` there and generate. `flat` as in truncating.
 */
export interface RetryFrom {
  type: "retry_from";
  index: number;
  content: string | Part[];
  flat?: boolean;
  client_request_id?: string | null;
  when_busy?: "queue" | "refuse";
  priority?: boolean;
}
/**
 * Drop what follows the last user message and generate again.
 */
export interface Regenerate {
  type: "regenerate";
  client_request_id?: string | null;
  when_busy?: "queue" | "refuse";
  priority?: boolean;
}
/**
 * The result of a tool that the client itself executes (an editor's tools).
 */
export interface ReturnToolResult {
  type: "return_tool_result";
  call: string;
  content: string;
  failed?: boolean;
  client_request_id?: string | null;
}
/**
 * Fill an empty conversation with messages from a branch source, a trajectory or an import.
 */
export interface RestoreMessages {
  type: "restore_messages";
  messages: Message[];
  client_request_id?: string | null;
  when_busy?: "queue" | "refuse";
  priority?: boolean;
}
export interface Message {
  id: string;
  role: Role;
  seq: number;
  updated_seq: number;
  ts: number;
  blocks: Block[];
  status: Progress;
  turn: string | null;
  origin: Origin | null;
  agent: string | null;
  model: string | null;
  finish_reason: string | null;
  usage: Usage | null;
  hidden: boolean;
  event_kind: string | null;
  edited: boolean;
  client_request_id: string | null;
  exchange: string | null;
  knowledge: Knowledge | null;
  switch: Switch | null;
  ended: TurnSummary | null;
  data: unknown;
}
/**
 * What was recalled before a message was answered, as the model was shown it.
 */
export interface Knowledge {
  sources: KnowledgeSource[];
  tokens: number;
  text: string;
}
/**
 * Another model took over, and why.
 */
export interface Switch {
  to_model: string;
  from_model: string | null;
  reason: string;
}
/**
 * How a turn ended.
 */
export interface TurnSummary {
  id: string;
  outcome: Outcome;
  ended_at: number;
  stopped: Stopped | null;
  by: Origin | null;
  error: WireError | null;
  summary: string | null;
  duration_ms: number | null;
  mode: string | null;
}
export interface SetDraft {
  type: "set_draft";
  text: string;
  client_request_id?: string | null;
}
export interface ClearDraft {
  type: "clear_draft";
  client_request_id?: string | null;
}
/**
 * The answer to a command. `seq` is on disk; `applied` is false when somebody else's answer was recorded before.
 *
 *     Derived from the events the command made, so a repeated command gets the same answer by construction.
 */
export interface Accepted {
  conversation: string;
  seq: number;
  applied?: boolean;
  id?: string | null;
  turn?: string | null;
  queued?: boolean;
  note?: string | null;
}
/**
 * Body of `POST /api/conversations`. With a chosen `id` or a `client_request_id` it can be repeated safely.
 */
export interface CreateConversation {
  id?: string | null;
  client_request_id?: string | null;
  title?: string | null;
  agent?: string | null;
  project?: string | null;
  params?: {
    [k: string]: unknown;
  };
  message?: string | Part[] | null;
  branch?: Branch | null;
}
/**
 * Where a branch starts: everything up to and including `message` (absent: all of it) is copied with new ids.
 */
export interface Branch {
  conversation: string;
  message?: string | null;
}
/**
 * One conversation, folded. `offset` messages precede `messages[0]`: history is paged, not shipped.
 */
export interface State {
  conversation: string;
  seq: number;
  created_at: number;
  updated_at: number;
  title: string;
  title_source: "auto" | "none" | "user";
  agent: string;
  project: string | null;
  params: {
    [k: string]: unknown;
  };
  parent: Parent | null;
  status: Status;
  offset: number;
  messages: Message[];
  queue: QueueItem[];
  requests: Request[];
  turn: Turn | null;
  last_turn: TurnSummary | null;
  plan: Plan | null;
  subagents: Subagent[];
  exchanges: Exchange[];
  processes: Process[];
  grants: Grant[];
  compressions: Compression[];
  files: FileChange[];
  context: ContextMeter | null;
  usage: Usage;
  cost_usd: number;
  draft: string;
  archived: boolean;
  deleted: boolean;
}
/**
 * A message that waits; or, with a `command`, something that will be done to the history.
 */
export interface QueueItem {
  id: string;
  content: Part[];
  delivery: Delivery;
  ts: number;
  priority: boolean;
  merge: boolean;
  held: boolean;
  version: number;
  agent: string | null;
  mode: string | null;
  origin: Origin | null;
  client_request_id: string | null;
  trigger: "callback" | "idle" | "message" | "task";
  exchange: string | null;
  hops: number;
  command: {
    [k: string]: unknown;
  } | null;
}
/**
 * Something that waits for a person. Open ones are in every snapshot; the last resolved ones stay to be seen.
 */
export interface Request {
  id: string;
  kind: RequestKind;
  ts: number;
  status: RequestStatus;
  turn: string | null;
  call: string | null;
  agent: string | null;
  tool: string | null;
  input: unknown;
  hash: string | null;
  title: string | null;
  risk: string | null;
  sandbox: string | null;
  preview: string | null;
  scopes: Scope[];
  offers: Offer[];
  questions: Question[];
  plan: Plan | null;
  expires_at: number | null;
  resolution: Resolution | null;
}
/**
 * How a request ended, as recorded: the one answer every later decider is told.
 */
export interface Resolution {
  status: RequestStatus;
  ts: number;
  verdict: Verdict | null;
  then: Then;
  scope: Scope;
  offer: number;
  answers: unknown[];
  text: string | null;
  input: unknown;
  by: Origin | null;
}
/**
 * The active turn.
 */
export interface Turn {
  id: string;
  agent: string;
  backend: string;
  model: string | null;
  started_at: number;
  trigger: Trigger;
  resumable: boolean;
  steerable: boolean;
  mode: string | null;
  activity: Activity;
  detail: string | null;
  retry: Retry | null;
  usage: Usage;
  cost_usd: number;
  switch: Switch | null;
  yielding: boolean;
}
export interface Subagent {
  conversation: string;
  agent: string;
  task: string;
  call: string | null;
  status: "cancelled" | "completed" | "failed" | "running";
  run: string | null;
  turn: string | null;
  started_at: number | null;
  finished_at: number | null;
  cost_usd: number | null;
}
/**
 * A word from one agent to another and its answer, seen from one of the two conversations.
 */
export interface Exchange {
  id: string;
  agent: string;
  conversation: string | null;
  status: "cancelled" | "complete" | "failed" | "queued" | "sent" | "started" | "timeout";
  direction: "in" | "out";
  mode: "async" | "sync";
  call: string | null;
  callback: boolean;
  hops: number;
  started_at: number | null;
  finished_at: number | null;
  tool_call_count: number | null;
}
export interface Process {
  id: string;
  command: string;
  call: string | null;
  pid: number | null;
  turn: string | null;
  running: boolean;
  exit_code: number | null;
  started_at: number | null;
  finished_at: number | null;
  end: ("exited" | "restart" | "stopped") | null;
}
/**
 * A standing rule that a person gave here. `match` absent: every call of the tool.
 */
export interface Grant {
  tool: string;
  scope: Scope;
  decision: "allow" | "ask" | "deny_abort" | "deny_continue";
  match: string | null;
  agent: string | null;
  request: string | null;
  ts: number;
}
/**
 * From here on a model is shown less of what began before `horizon`; the log and the page keep all of it.
 */
export interface Compression {
  stage: "deduplicate" | "limit" | "repair" | "shorten" | "summarize";
  horizon: number;
  strength: "absent" | "high" | "low" | "medium";
  ts: number;
  seq: number;
  before_tokens: number;
  after_tokens: number;
  summary: string | null;
}
export interface ContextMeter {
  used_tokens: number;
  window_tokens: number | null;
  estimated: boolean;
  compressed: boolean;
  breakdown: {
    [k: string]: number;
  };
}
/**
 * A conversation in a list: enough for a row, cheap enough for ten thousand.
 */
export interface Listing {
  id: string;
  title: string;
  agent: string;
  project: string | null;
  status: Status;
  created_at: number;
  updated_at: number;
  seq: number;
  last_line: string;
  message_count: number;
  queue_size: number;
  open_requests: number;
  turn: string | null;
  last_turn: string | null;
  archived: boolean;
  deleted: boolean;
  parent: string | null;
  parent_kind: ("branch" | "exchange" | "mission" | "subagent") | null;
  root: string | null;
  open_exchanges: number;
  cost_usd: number;
  resolved_at: number | null;
  grants: number;
  pos: number;
}
