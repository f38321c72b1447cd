// A chat page on the event bus: one EventSource, one reducer, one render.
// The address keeps the session (#session-id); a page that is opened without one begins a session of its own.
const TRANSIENT = ["Thinking...", "Model loading...", "Running"];
const join = (one, other, between = "\n\n") => [one, other].filter(Boolean).join(between);
const $ = id => document.getElementById(id);

const session = location.hash.slice(1) || crypto.randomUUID();
let [lastSeq, ownSeq] = [0, 0]; // of all events, and of those of this session
let state = { messages: [], waiting: [], queue: [], ask: null, plan: null, note: "" };

// -- Reducer: the only place where state changes

function reduce(state, { type, ...fields }) {
  const { id, text } = fields;
  const at = state.messages.findLastIndex(message => message.role === "agent");
  const current = state.messages[at] ?? {};
  const amend = change => (at < 0 ? state : { ...state, messages: state.messages.with(at, { ...current, ...change }) });
  switch (type) {
    case "PUSH_MESSAGE":
      return { ...state, messages: [...state.messages, { text: "", liveText: "", activityEntries: [], ...fields }] };
    case "SET_THINKING": return amend(fields);
    case "APPEND_TOKEN": return amend({ liveText: current.liveText + text, activitySummary: "" });
    // It takes the place of the tokens it was streamed as.
    case "PUSH_TEXT_SEGMENT": return amend({ text: join(current.text, text), liveText: "" });
    case "SET_ACTIVITY":
      const activityEntries = [...new Set(current.activityEntries).add(text)];
      return amend({ isThinking: false, activitySummary: text, activityEntries });
    case "ACTIVITY_DONE": return amend({ activitySummary: "" });
    case "FINALIZE_MESSAGE": return amend({ text: join(current.text, current.liveText), liveText: "", isGenerating: false });
    case "ADD_SUBAGENT": return amend({ subagentTree: { ...current.subagentTree, [id]: fields } });
    case "MARK_SUBAGENT_DONE":
      return amend({ subagentTree: { ...current.subagentTree, [id]: { ...current.subagentTree?.[id], done: true } } });
    default: // CLEAR_MESSAGES, SET_PLAN, SET_ASK_USER, SET_QUEUE, SET_CONTEXT_USAGE, SET_MODEL_FALLBACK
      return { ...state, ...fields };
  }
}

function dispatch(type, fields) {
  state = reduce(state, { type, ...fields });
  render();
}

function getMessagePhase({ isGenerating, isThinking, activitySummary }) {
  if (!isGenerating) return "done";
  if (isThinking) return "thinking";
  return activitySummary ? "working" : "streaming";
}

// -- Events, by kind and phase

const handlers = {
  "message"({ id, text, data }) {
    if (data.from === "user") state.waiting.push({ id, text, from: data.to });
    if (!state.messages.some(({ isGenerating }) => isGenerating)) deliver([]);
  },
  "token"({ text, data }) {
    dispatch("SET_THINKING", { isThinking: Boolean(data?.thinking) });
    if (!data?.thinking) dispatch("APPEND_TOKEN", { text });
  },
  "text_segment": ({ text }) => dispatch("PUSH_TEXT_SEGMENT", { text }),
  "activity/doing": ({ text }) => text && !TRANSIENT.includes(text) && dispatch("SET_ACTIVITY", { text }),
  "activity/done": () => dispatch("ACTIVITY_DONE"),
  "queue"({ data }) {
    deliver(data.items.map(({ id }) => id));
    dispatch("SET_QUEUE", { queue: data.items });
  },
  "ask_user": ({ data }) => dispatch("SET_ASK_USER", { ask: { ...data, answers: new Map() } }),
  "model_fallback": ({ data }) => dispatch("SET_MODEL_FALLBACK", { note: `${data.actual}: ${data.reason}` }),
  "run/plan_update": ({ data }) => dispatch("SET_PLAN", { plan: data.plan }),
  "run/context_usage": ({ data }) => dispatch("SET_CONTEXT_USAGE", { note: `${data.estimated_tokens} tokens` }),
  "run/subagent_spawned": ({ data }) => dispatch("ADD_SUBAGENT", { id: data.subagent_id, task: data.task }),
  "run/subagent_result": ({ data }) => dispatch("MARK_SUBAGENT_DONE", { id: data.subagent_id }),
  "run/outcome"() {
    dispatch("FINALIZE_MESSAGE");
    dispatch("SET_ASK_USER", { ask: null });
    refetch();
  },
  "run/sync": () => refetch(),
  "run/resync": () => refetch(true),
};

// A message to a busy agent is announced at once, and has its place where it leaves the queue.
function deliver(queued) {
  const delivered = state.waiting.filter(({ id }) => !queued.includes(id));
  state.waiting = state.waiting.filter(({ id }) => queued.includes(id));
  for (const { text, from } of delivered) {
    dispatch("FINALIZE_MESSAGE");
    dispatch("PUSH_MESSAGE", { role: "user", text });
    dispatch("PUSH_MESSAGE", { role: "agent", from, isGenerating: true });
  }
}

// -- Calls

async function call(path, body) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(path, body && { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const isRunning = ({ status }) => status === "running";
const listRuns = () => call(`/api/agent-runs?session_id=${session}`);

// The transcript as the server has it, which is complete also where events were missed. While a run goes on and none
// were, the page's own is newer.
async function refetch(missed = false) {
  const seen = ownSeq;
  const runs = (await listRuns()).sort((one, other) => one.started_at - other.started_at);
  const contexts = await Promise.all(runs.map(({ run_id }) => call(`/api/agent-context?run_id=${run_id}&view=raw`)));
  if (!missed && runs.some(isRunning)) return;
  if (ownSeq !== seen) return refetch(missed);
  dispatch("CLEAR_MESSAGES", { messages: [] });
  for (const { run, messages } of contexts)
    for (const message of messages) {
      const live = isRunning(run) && message === messages.at(-1) && message.role === "agent";
      dispatch("PUSH_MESSAGE", live ? { ...message, text: "", liveText: message.text, isGenerating: true } : message);
    }
}

async function respond(question_id, answers) {
  await call("/api/ask-user-response", { question_id, answers });
  dispatch("SET_ASK_USER", { ask: null });
}

// -- View: drawn anew from the state

function element(tag, className, text = "", children = []) {
  const made = Object.assign(document.createElement(tag), { className, textContent: text });
  made.append(...children);
  return made;
}

function messageView(message) {
  const phase = getMessagePhase(message);
  const tree = Object.values(message.subagentTree ?? {}).map(({ task, done }) => `${done ? "✓" : "…"} ${task}`);
  const lines = [...tree, ...message.activityEntries].map(line => element("div", "activity", line));
  const text = phase === "thinking" ? "Thinking…" : join(message.text, message.liveText);
  return element("article", `${message.role} ${phase}`, "", [...lines, element("div", "text", text)]);
}

function questionView({ question_id, questions, answers }) {
  return questions.map(({ question, options }, question_index) =>
    element("div", "question", question, options.map(({ label }) => {
      const button = element("button", "", label);
      button.onclick = () => {
        answers.set(question_index, { question_index, selected: [label] });
        if (answers.size === questions.length) respond(question_id, [...answers.values()]);
      };
      return button;
    })));
}

function render() {
  const { messages, queue, ask, plan, note } = state;
  $("log").replaceChildren(...messages.map(messageView));
  $("plan").replaceChildren(...(plan?.items ?? []).map(({ title, status }) => element("li", status, title)));
  $("ask").replaceChildren(...(ask ? questionView(ask) : []));
  $("queue").replaceChildren(...queue.map(({ preview }) => element("li", "", preview)));
  $("stop").hidden = !messages.some(({ isGenerating }) => isGenerating);
  $("note").textContent = note;
}

$("composer").onsubmit = event => {
  event.preventDefault();
  call("/api/chat", { agent_id: "default", session_id: session, message: $("text").value });
  event.target.reset();
};
$("stop").onclick = async () => {
  for (const { run_id } of (await listRuns()).filter(isRunning)) await call("/api/agent-cancel", { run_id });
};
new EventSource("/api/events").onmessage = ({ data }) => {
  const event = JSON.parse(data);
  if (event.seq <= lastSeq) return;
  lastSeq = event.seq;
  if (event.session_id !== session) return;
  ownSeq = event.seq;
  handlers[join(event.kind, event.phase, "/")]?.(event);
};
location.hash = session;
refetch(true);
