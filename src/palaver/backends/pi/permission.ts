// Loaded into Pi by Palaver. Pi itself asks for nothing: here every tool call waits until Palaver has judged it.
// A call that is not plainly allowed does not run. The answer may change the input or say why not.
// A session that is begun from here carries our sign, so that an import of Pi's history leaves it out.
// Palaver's own tools are registered here too. Palaver carries a call out and answers; an abort ends the wait.
const ANSWER_MS = 5000; // Which tools there are is answered at once; a Pi that is not told does without them.
const OVER = "The turn is over; nothing more comes of this.";

function read(answer: any): any {
  try {
    return JSON.parse(answer);
  } catch {
    return undefined;
  }
}

export default function (pi: any) {
  const own = new Map<string, any>(); // By name, the very schema that was registered: another's tool has another.
  let told: any;

  function register(tool: any) {
    own.set(tool.name, tool.parameters);
    pi.registerTool({
      name: tool.name,
      label: tool.name,
      description: tool.description,
      parameters: tool.parameters,
      executionMode: "parallel",
      execute: async (call: any, input: any, signal: any, _update: any, ctx: any) => {
        const title = JSON.stringify({ palaver: "call", call, tool: tool.name, input });
        const said = read(await ctx.ui.input(title, undefined, { signal }));
        if (said?.ok !== true) throw new Error(said?.text ?? OVER); // How a tool of Pi's fails.
        return { content: [{ type: "text", text: said.text }], details: {} };
      },
    });
  }

  pi.on("session_start", async (_event: any, ctx: any) => {
    const begun = ctx.sessionManager.getEntries().some((entry: any) => entry.type === "message");
    if (!begun) pi.appendEntry("palaver", {});
  });
  pi.on("before_agent_start", async (_event: any, ctx: any) => {
    const answer = await ctx.ui.input(JSON.stringify({ palaver: "tools" }), undefined, { timeout: ANSWER_MS });
    const tools = read(answer);
    if (!Array.isArray(tools) || answer === told) return;
    told = answer;
    tools.forEach(register);
    // What is registered stays so; what is no longer offered is only put aside.
    const others = pi.getActiveTools().filter((name: string) => !own.has(name));
    pi.setActiveTools([...others, ...tools.map((tool: any) => tool.name)]);
  });
  pi.on("tool_call", async (event: any, ctx: any) => {
    const running = pi.getAllTools().find((tool: any) => tool.name === event.toolName);
    const title = JSON.stringify({
      palaver: "permission",
      call: event.toolCallId,
      tool: event.toolName,
      own: running !== undefined && own.get(event.toolName) === running.parameters,
      input: event.input,
    });
    const said = read(await ctx.ui.select(title, ["allow", "deny"], { signal: ctx.signal }));
    if (said?.decision !== "allow") {
      return { block: true, reason: said?.reason ?? "The question was withdrawn; it was not run." };
    }
    if (said.input) {
      for (const name of Object.keys(event.input)) delete event.input[name];
      Object.assign(event.input, said.input);
    }
    return undefined;
  });
}
