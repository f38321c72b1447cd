// Loaded into Pi by Palaver. Pi itself asks for nothing: here every tool call waits until Palaver has judged it.
// A call that is not plainly allowed does not run. The answer may change the input or say why not.
// A session that is begun from here carries our sign, so that an import of Pi's history leaves it out.
export default function (pi: any) {
  pi.on("session_start", async (_event: any, ctx: any) => {
    const begun = ctx.sessionManager.getEntries().some((entry: any) => entry.type === "message");
    if (!begun) pi.appendEntry("palaver", {});
  });
  pi.on("tool_call", async (event: any, ctx: any) => {
    const title = JSON.stringify({
      palaver: "permission",
      call: event.toolCallId,
      tool: event.toolName,
      input: event.input,
    });
    const answer = await ctx.ui.select(title, ["allow", "deny"], { signal: ctx.signal });
    let said: any;
    try {
      said = JSON.parse(answer);
    } catch {
      said = undefined;
    }
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
