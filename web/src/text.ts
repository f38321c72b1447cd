/**
 * Every word that the first picture may show. Views import from here; nothing else holds visible text. How numbers and times
 * are said is in measures.ts.
 *
 * What only opens on demand says its words from text.*.ts, so that they are not waited for.
 *
 * The voice: short, plain, says what happened and what to do. Sentences end with a period, labels do not.
 */

import { count, duration, exit, number, tokens } from "./measures";
import type { ToolKind } from "./model/toolkind";
import { list } from "./sentences";

export const text = {
  name: "Palaver",
  title: (waiting: number, unseen: number, conversation: string | null) =>
    `${waiting > 0 ? `(${waiting}) ` : unseen > 0 ? "• " : ""}${conversation ? `${conversation} · ` : ""}Palaver`,
  join: (...words: (string | null | undefined | false)[]) => words.filter(Boolean).join(" · "),

  list: {
    label: "Conversations",
    fresh: "New conversation",
    search: "Search",
    searchLabel: "Search all conversations",
    clear: "Clear search",
    open: "Show conversations",
    close: "Hide conversations",
    groups: { waiting: "Waiting for you", active: "Active", today: "Today", older: "Older", archived: "Archived" },
    untitled: "New conversation",
    unread: "unread",
    waiting: (n: number) => (n > 0 ? `Waiting for you: ${n}` : "Nothing waits for you"),
    loading: "Loading conversations …",
    failed: "The list could not be loaded.",
    retry: "Try again",
    more: "Show more",
    emptyHeading: "Nothing here yet",
    empty: "Write a message to begin. Every conversation stays here, on every device, whatever happens to this window.",
    showArchived: "Show archived",
    hideArchived: "Hide archived",
    rowMenu: (title: string) => `Actions for ${title}`,
    rename: "Rename",
    archive: "Archive",
    unarchive: "Bring back",
    remove: "Delete …",
    newTab: "Open in a new tab",
    preview: "Preview",
    share: "Export …",
    inspect: "Inspect events",
    browse: "Browse all",
    copy: "Offline copy",
    archived: "archived",
    status: {
      waiting: (n: number) => (n > 1 ? `${n} requests wait for you` : "waits for you"),
      running: "working",
      failed: "failed",
      queued: (n: number) => `${n} queued`,
    },
    branchOf: (title: string) => `branched from ${title}`,
    branch: "branched from another conversation",
  },

  header: {
    branch: "Branch this conversation",
    rename: "Rename conversation",
    titleLabel: "Title",
    stop: "Stop",
    menu: "Conversation actions",
    find: "Find in conversation",
    copyId: "Copy conversation id",
    archived: "archived",
    readOnly: "read only",
    status: {
      idle: "Ready",
      generating: "Working",
      compacting: "Compacting",
      executing_tools: "Running tools",
      paused: "Needs your approval",
      waiting_ide: "Waiting for the editor",
      waiting_user_input: "Waiting for you",
      completed: "Task done",
      error: "Failed",
    },
    context: "Context and cost",
    settings: "Conversation settings",
    mission: "Mission of this folder",
    parent: {
      branch: (title: string) => `Branch of ${title}`,
      subagent: (title: string) => `Works for ${title}`,
      exchange: (title: string) => `Asked by ${title}`,
      mission: (title: string) => `Part of ${title}`,
    },
    parentUnknown: "another conversation",
  },

  processes: {
    exited: (code: number | null) => (code === null ? "ended" : exit(code)),
    restart: "ended with the server",
    ended: "Process ended",
    wasStopped: "Process stopped",
  },

  changes: {
    summary: (files: number) => `Changed ${count(files, "file")}`,
  },

  compressed: {
    divider: (saved: number, strength: string) => `The model sees a shorter version of what is above (−${saved} %${strength ? `, ${strength}` : ""})`,
    name: "Shortened for the model",
    strength: { absent: "", low: "lightly", medium: "medium", high: "strongly" },
  },

  knowledge: {
    line: (notes: number, conversations: number, files: number) =>
      `Recalled ${list(
        notes > 0 && count(notes, "note"),
        conversations > 0 && count(conversations, "conversation"),
        files > 0 && count(files, "file"),
      )}`,
    tokens: (n: number) => `${tokens(n)} tokens`,
  },

  modelSwitch: {
    line: (to: string, from: string | null) => (from === null ? `${to} took over` : `${to} took over from ${from}`),
    because: (reason: string) => reason.replace(/[.\s]+$/, ""),
  },

  modes: {
    banner: {
      plan: "Plan mode: the agent looks around and proposes a plan. It changes nothing until you approve it.",
      auto: "Auto: commands and edits run without asking, inside the sandbox.",
      full: "Full access: everything runs without asking, on the whole machine.",
    } as Record<string, string>,
    leave: "Ask first",
    hints: {
      ask: "Reads freely, asks before anything else",
      plan: "Reads and plans, changes nothing",
      accept_edits: "Edits files without asking",
      auto: "Runs everything inside the sandbox",
      full: "Runs everything, asks nothing",
    } as Record<string, string>,
    refused: "The server did not accept this mode.",
    noFull: "Not on this server: its palaver.toml does not say “full_enabled = true”",
    noFullBanner: "Full access is chosen, but this server does not allow it: the agent goes on asking.",
    grants: "Always allowed here",
  },

  fresh: {
    modelAndMore: "Model and settings …",
    /** What an agent runs on: a program by its name, a model by its own. */
    runsOn: (backend: string, model: string | null) => {
      const programs: Record<string, string> = { claude: "Claude Code", codex: "Codex", pi: "Pi", acp: "A program on the server" };
      const runner = programs[backend];
      if (runner) return model ? `${runner} with ${model}` : runner;
      if (backend === "demo") return "A demonstration without a model";
      return `Answers with ${model ?? "the server's model"}`;
    },
    chosen: (agent: string, model: string | null) => `Agent: ${agent}${model ? `, model ${model}` : ""}`,
  },

  transcript: {
    label: "Conversation",
    start: "Start of the conversation",
    loadingOlder: "Loading older messages …",
    olderFailed: "Older messages could not be loaded.",
    retry: "Try again",
    loading: "Opening …",
    missing: "There is no such conversation",
    missingHint: "It was deleted, or the address is wrong.",
    home: "All conversations",
    failed: "The conversation could not be opened.",
    empty: "No messages yet.",
    newSince: "New since you left",
    work: "Work of this turn",
    newBelow: (n: number) => (n > 0 ? `${number(n)} new` : "To the end"),
  },

  message: {
    you: "You",
    from: (who: string, when: string) => `${who}, ${when}`,
    agent: (name: string) => `Agent ${name}`,
    via: (face: string) => `via ${face}`,
    faces: {
      native: "another window",
      web: "another window",
      cli: "the command line",
      tui: "a terminal",
      mcp: "an MCP client",
      inbox: "an MCP client",
      bus: "the bus",
      socket: "a socket client",
      stream: "a stream client",
      chats: "an editor",
      acp: "an editor",
    } as Record<string, string>,
    sending: "Sending …",
    waitingForConnection: "Will send when connected",
    failed: "Not sent",
    retry: "Send again",
    discard: "Discard",
    edited: "edited",
    steered: "steered the running turn",
    copy: "Copy",
    copied: "Copied",
    edit: "Edit and resend",
    regenerate: "Answer again",
    regenerateFrom: "Answer again from here",
    branch: "Branch from here",
    branchFailed: "The branch could not be made.",
    menu: "Message actions",
    more: "Show all",
    less: "Show less",
    full: (size: string) => `Show the whole text (${size})`,
    image: "Attached image",
    system: "System",
    answer: "Answer of another agent",
    summary: "Summary of earlier messages",
    plan: "Plan",
    event: (kind: string) => kind.replaceAll("_", " "),
    superseded: "This attempt was cut off and made again.",
    attempt: "Attempt cut off, made again",
    planApproved: "Plan approved",
    planRevised: "Plan sent back with changes",
    planRejected: "Plan rejected",
    cutByLimit: "Cut off: the answer reached the model's length limit.",
    refused: "The model declined to go on.",
    interrupted: "cut off here",
  },

  code: {
    copy: "Copy code",
    wrap: "Wrap long lines",
    unwrap: "Do not wrap",
    plain: "text",
    label: (language: string) => `Code, ${language}`,
  },

  thinking: {
    live: "Thinking",
    done: (ms: number | null) => (ms === null ? "Thought" : `Thought for ${duration(ms)}`),
    interrupted: "Thinking, cut off",
    redacted: "Thought in private",
    redactedBody: "The provider keeps this thinking to itself.",
  },

  tool: {
    name: (verb: string, object: string, state: string) => `Tool: ${verb} ${object}`.trim() + (state ? `, ${state}` : ""),
    preparing: "preparing",
    called: "about to start",
    waiting: "waits for you",
    failed: "failed",
    denied: "denied",
    unanswered: "not answered",
    interrupted: "interrupted",
    interruptedMark: "⚠ Interrupted",
    ok: "done",
    truncated: "Output truncated",
    cut: (result: string) => [result, "output truncated"].filter(Boolean).join(", "),
    exit,
    background: "left running in the background",
    lines: (n: number) => count(n, "line"),
    added: (n: number) => `+${number(n)}`,
    removed: (n: number) => `−${number(n)}`,
    explored: "Explored",
    exploring: "Exploring",
    files: (n: number) => count(n, "file"),
    searches: (n: number) => count(n, "search", "searches"),
    lists: (n: number) => count(n, "listing"),
    groupFailed: (n: number) => `${number(n)} failed`,
    /** Before anything ran, while it runs, when it is over. */
    verbs: {
      read: ["Read", "Reading", "Read"],
      list: ["List", "Listing", "Listed"],
      glob: ["Look for", "Looking for", "Looked for"],
      grep: ["Search", "Searching", "Searched"],
      edit: ["Edit", "Editing", "Edited"],
      write: ["Write", "Writing", "Wrote"],
      patch: ["Patch", "Patching", "Patched"],
      shell: ["Run", "Running", "Ran"],
      fetch: ["Fetch", "Fetching", "Fetched"],
      search: ["Search the web for", "Searching the web for", "Searched the web for"],
      plan: ["Plan", "Planning", "Planned"],
      ask: ["Ask", "Asking", "Asked"],
      task: ["Delegate to", "Delegating to", "Delegated to"],
      message: ["Write to", "Writing to", "Wrote to"],
      yield: ["Yield the turn", "Yielding the turn", "Yielded the turn"],
      finish: ["Finish the task", "Finishing the task", "Finished the task"],
      other: ["Use", "Using", "Used"],
    } satisfies Record<ToolKind, readonly [string, string, string]>,
    in: (place: string) => `in ${place}`,
    matches: (n: number) => count(n, "match", "matches"),
    nothing: "nothing found",
  },

  interrupted: {
    heading: "Interrupted",
    by: (name: string) => `by ${name}`,
    reasons: {
      user: "by you",
      other: "from another client",
      restart: "by a restart of the server",
      shutdown: "by a shutdown of the server",
      limit: "by a limit",
      backend_exit: "because the agent's program ended",
      storage: "because the server could not write to its disk",
      deleted: "because the conversation was deleted",
      parent: "because the turn that started it was stopped",
    },
    at: (reason: string, when: string) => `Interrupted ${reason}, ${when}`,
    resume: "Continue",
    resumeMessage: "Continue.",
    editAndResend: "Edit and resend",
  },

  error: { other: "The turn failed" },

  plan: {
    progress: (done: number, all: number, skipped: number) => `${done} of ${all} done${skipped > 0 ? `, ${skipped} skipped` : ""}`,
  },

  composer: {
    label: "Message",
    placeholder: "Message",
    placeholderBusy: "Add to the queue",
    send: "Send",
    queue: "Queue",
    steer: "Steer now",
    steerHint: "Into the running turn, before its next step",
    readOnly: "You may read here. To write, sign in with a token that may send.",
    attach: "Attach an image",
    removeImage: "Remove image",
    uploading: "Uploading …",
    uploadFailed: "The image could not be uploaded.",
    imageTooLarge: "An image may hold 10 MB.",
    tooManyImages: "A message may hold 10 images.",
    notAnImage: "Only images can be attached.",
    drop: "Drop images here",
    offline: "Not connected. Your message is kept and sent when the connection is back.",
    tooLong: (size: string) => `A message may hold 1 MB; this one holds ${size}. Attach it as a file, or make it shorter.`,
    mode: "Mode",
    modes: {
      ask: "Ask first",
      plan: "Plan only",
      accept_edits: "Accept edits",
      auto: "Auto in sandbox",
      full: "Full access",
    } as Record<string, string>,
  },

  connection: {
    connecting: "Connecting …",
    reconnecting: (seconds: number) => (seconds > 0 ? `No connection. Trying again in ${seconds} s` : "No connection. Trying again …"),
    lastHeard: (when: string) => `last heard from at ${when}`,
    offline: "This device is offline. Everything you write is kept.",
    catchingUp: (n: number) => (n > 0 ? `Catching up, ${count(n, "event")} …` : "Catching up …"),
    caughtUp: (n: number) => (n > 0 ? `Caught up, ${count(n, "event")}` : "Connected again"),
    version: "The server was updated. Reload to use the new version.",
    reload: "Reload",
    signedOut: "You were signed out.",
    now: "Try now",
  },

  screens: {
    backends: "Backends",
    processes: "Running processes",
    import: "Import earlier conversations",
    waiting: "Waiting for you",
    agents: "Agents",
    missions: "Missions",
    files: "Project files",
    settings: "Settings",
    conversations: "All conversations",
    device: "This device",
    inspect: "Event inspector",
  },

  palette: {
    label: "Commands",
    placeholder: "Type a command or a conversation",
  },

  keys: { palette: "All commands" },

  theme: {
    label: (theme: "system" | "light" | "dark") =>
      ({ system: "Theme: system", light: "Theme: light", dark: "Theme: dark" })[theme],
  },

  crash: {
    heading: "The page stumbled",
    body: "Nothing is lost: the conversation is on the server. Reload to go on.",
    reload: "Reload",
    details: "Details",
  },
} as const;
