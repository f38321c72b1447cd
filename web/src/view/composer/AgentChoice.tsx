/** Who answers next, and with which model: agents to choose at once, everything else behind "settings". */

import { useEffect, useState } from "react";
import type { AgentEntry } from "../../protocol/wire";
import { said, shortPaths } from "../../sentences";
import { text } from "../../text";
import { Icon } from "../controls/Icon";
import { Menu, type MenuAction } from "../controls/Menu";
import { ask } from "../keys";
import { usePick, usePicked, useStore } from "../store";

export function AgentChoice({ id, params }: { id: string; params: object }) {
  const store = useStore();
  const agents = [...usePick((snapshot) => snapshot.agents.items), ...useProjectAgents(usePicked(id, ({ state }) => state.project) ?? null)];
  const agent = usePicked(id, ({ state }) => state.agent) ?? "";
  const known = agents.find((one) => one.id === agent);
  const chosen = (params as Record<string, unknown>)["model"];
  const model = typeof chosen === "string" ? chosen : (known?.model ?? null);
  const actions: MenuAction[] = [
    ...agents.map((one) => ({
      label: one.name,
      hint: one.ready ? text.fresh.runsOn(one.backend, one.model) : said(shortPaths(one.problem ?? one.note ?? "")),
      disabled: one.problem != null,
      checked: one.id === agent,
      onSelect: () => {
        if (one.id !== agent) store.command(id, { type: "update_conversation", agent: one.id });
      },
    })),
    { label: text.fresh.modelAndMore, icon: "sliders", onSelect: () => ask("settings") },
  ];
  const name = known?.name ?? agent;
  return (
    <Menu label={text.fresh.chosen(name, model)} className="button quiet small agent-choice" align="start" actions={actions}>
      <Icon name="spark" />
      <span className="ellipsis">{text.join(name, typeof chosen === "string" && chosen)}</span>
    </Menu>
  );
}

/** Those that the folder itself brings, once they are trusted. */
function useProjectAgents(project: string | null): readonly AgentEntry[] {
  const { client } = useStore();
  const [found, setFound] = useState<readonly AgentEntry[]>([]);
  useEffect(() => {
    let left = false;
    // Whoever does not come is not offered; the server says why when it is asked for one.
    if (project !== null) void import("../../transport/api.later").then(({ laterApi }) => laterApi(client).agentsOf(project)).then((agents) => !left && setFound(agents), () => undefined);
    return () => {
      left = true;
    };
  }, [client, project]);
  return found;
}
