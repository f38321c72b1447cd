// Draws chat events. Live messages and the replay of a session go through the same handleEvent, so that a reload
// builds the same page.

export function element(tag, className, text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

export class MessageRenderer {
  toolBlocks = new Map(); // by callId
  thoughts = new Map(); // by responseId, while the model thinks
  streamed = new Set(); // responses of which text came as deltas
  typing = element("div", "typing", "…");

  constructor(log) {
    this.log = log;
  }

  handleEvent(event) {
    this[event.type]?.(event);
  }

  user_message({ text }) {
    this.log.append(element("article", "bubble user", text));
    this.addBubble().append(this.typing);
  }

  text_delta({ responseId, delta }) {
    const bubble = this.bubble(responseId);
    const last = [...bubble.children].findLast(child => child !== this.typing);
    // Text after a tool block is an element of its own: everything stays in the order of streaming.
    if (last?.className === "text") last.append(delta);
    else this.append(bubble, element("div", "text", delta));
    this.streamed.add(responseId);
  }

  text_done({ responseId, text }) {
    if (text && !this.streamed.has(responseId)) this.text_delta({ responseId, delta: text });
    this.typing.remove();
  }

  thinking_start({ responseId }) {
    const thought = element("div", "thinking");
    this.thoughts.set(responseId, thought);
    this.append(this.bubble(responseId), thought);
  }

  thinking_delta({ responseId, delta }) {
    this.thoughts.get(responseId)?.append(delta);
  }

  thinking_done({ responseId, text }) {
    this.thoughts.get(responseId)?.replaceChildren(text);
  }

  tool_call_start({ responseId, callId, toolName, arguments: input }) {
    const block = element("details", "tool pending");
    block.append(element("summary", "", `${toolName} ${input}`), element("pre", "output"));
    this.toolBlocks.set(callId, block);
    this.append(this.bubble(responseId), block);
  }

  tool_output_delta({ callId, delta }) {
    this.toolBlocks.get(callId)?.querySelector(".output").append(delta);
  }

  tool_result({ callId, ok, result, error, truncated }) {
    const block = this.toolBlocks.get(callId);
    if (!block) return;
    const outcome = ok ? "success" : error.code === "tool_interrupted" ? "interrupted" : "error";
    block.className = `tool ${outcome}${truncated ? " truncated" : ""}`;
    block.querySelector(".output").textContent = ok ? result : error.message;
  }

  agent_callback_result({ responseId, result }) {
    this.append(this.bubble(responseId), element("div", "agent-callback", result));
  }

  output_cancelled({ responseId }) {
    const bubble = this.bubble(responseId);
    this.typing.remove();
    if (bubble.childElementCount > 0) bubble.append(element("div", "cancelled", "Interrupted"));
    else bubble.remove();
  }

  // The bubble of a response: the oldest one that still waits for an answer becomes that of the next to begin.
  bubble(responseId) {
    const bubbles = [...this.log.querySelectorAll(".assistant")];
    const known = bubbles.find(bubble => bubble.dataset.response === responseId);
    const bubble = known ?? bubbles.find(bubble => !bubble.dataset.response) ?? this.addBubble();
    bubble.dataset.response = responseId;
    return bubble;
  }

  addBubble() {
    return this.log.appendChild(element("article", "bubble assistant"));
  }

  append(bubble, child) {
    bubble.append(child, this.typing);
  }
}
