/** Stops one subagent. The turn that waits for it goes on with what it was told. */

import { useState } from "react";
import { work } from "../../text.work";
import { Icon } from "../controls/Icon";
import { useStore } from "../store";

export function StopChild({ conversation, agent }: { conversation: string; agent: string }) {
  const store = useStore();
  const [stopping, setStopping] = useState(false);
  const stop = (): void => {
    setStopping(true);
    // The refusal is shown with all others; the button is there again.
    store.answered(store.command(conversation, { type: "interrupt" })).catch(() => setStopping(false));
  };
  return (
    <button type="button" className="button quiet small stop-child" aria-label={work.subagent.stop(agent)} disabled={stopping} onClick={stop}>
      <Icon name="stop" />
      {stopping ? work.subagent.stopping : work.subagent.stopShort}
    </button>
  );
}
