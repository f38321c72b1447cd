/** Reads the agent's words aloud while the conversation is open, and shows that it does: one press makes it quiet. */

import { useEffect, useRef, useState } from "react";
import { Aloud } from "../../model/aloud";
import { settings } from "../../text.settings";
import { Icon } from "../controls/Icon";
import { useLaterApi } from "../frame/fresh";
import { usePicked } from "../store";
import { Voice } from "./voice";

export default function Speaker({ id }: { id: string }) {
  const api = useLaterApi();
  const state = usePicked(id, (known) => known.state);
  const [speaking, setSpeaking] = useState(false);
  const [mute, setMute] = useState(false);
  const parts = useRef<{ aloud: Aloud; voice: Voice } | null>(null);

  useEffect(() => {
    const voice = new Voice(api, (now, spoke) => {
      setSpeaking(now);
      if (spoke !== null) setMute(spoke === "none");
    });
    parts.current = { aloud: new Aloud(), voice };
    return () => voice.close();
  }, [api]);

  useEffect(() => {
    if (!state || !parts.current) return;
    const { say, hush } = parts.current.aloud.hear(state);
    if (hush) parts.current.voice.hush();
    parts.current.voice.say(...say);
  }, [state]);

  if (mute) return <p className="aloud hint">{settings.mute}</p>;
  // There all the same, so that it can be known that it listens.
  if (!speaking) return <p className="aloud" hidden />;
  return (
    <p className="aloud">
      <Icon name="sound" />
      <span>{settings.reading}</span>
      <button type="button" className="link-button" onClick={() => parts.current?.voice.hush()}>
        {settings.quiet}
      </button>
    </p>
  );
}
