/**
 * What a tool does, by its name. Agents bring their own tools: the names that the known programs use are mapped to what they
 * do, everything else is "other". The one place that knows them: rows are grouped and called by it.
 */

const NAMES = {
  read: "read read_file read_many_files view cat notebookread readfile",
  list: "list ls list_dir list_directory",
  glob: "glob find find_files file_search",
  grep: "grep search grep_search search_files search_file_content ripgrep",
  edit: "edit multiedit str_replace edit_file notebookedit replace",
  write: "write write_file create_file create",
  patch: "patch apply_patch applypatch",
  shell: "shell bash exec exec_command run_command local_shell command_execution execute run_shell_command terminal",
  fetch: "fetch webfetch web_fetch",
  search: "websearch web_search google_web_search",
  plan: "plan todowrite update_plan exitplanmode",
  ask: "ask_user askuserquestion",
  task: "task agent",
  message: "agents_message",
  yield: "loop_yield_turn",
  finish: "finish_task",
} as const;

export type ToolKind = keyof typeof NAMES | "other";

const KINDS: ReadonlyMap<string, ToolKind> = new Map(
  Object.entries(NAMES).flatMap(([kind, names]) => names.split(" ").map((name) => [name, kind as ToolKind] as const)),
);

const EXPLORING: ReadonlySet<ToolKind> = new Set(["read", "list", "glob", "grep"]);

export function kindOf(name: string): ToolKind {
  const known = name.toLowerCase();
  // Tools of MCP servers come as "mcp__server__tool".
  return KINDS.get(known) ?? KINDS.get(known.split(/__|\./).at(-1) ?? "") ?? "other";
}

/** Whether it only looks. */
export function isExploring(name: string): boolean {
  return EXPLORING.has(kindOf(name));
}
