/** What a folder says of how its agents rest, one agent at a time. */

import { useCallback, useState, type FormEvent } from "react";
import type { RestOverride } from "../../protocol/agents";
import { asApiError } from "../../transport/api";
import { words } from "../../text.agents";
import { AreaField, SelectField, TextField } from "../frame/Fields";
import { useFresh, useLaterApi } from "../frame/fresh";
import { overrideOf, plainly, restOf, type RestForm } from "./wish";

export function Overrides({ project }: { project: string }) {
  const [open, setOpen] = useState(false);
  return (
    <details className="more-details" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{words.missions.override}</summary>
      {open && <Choice project={project} />}
    </details>
  );
}

function Choice({ project }: { project: string }) {
  const api = useLaterApi();
  const load = useCallback(() => api.agentsIn(project), [api, project]);
  const agents = useFresh(load).value?.items.filter(({ problem, trusted }) => problem === null && trusted);
  const [chosen, setChosen] = useState<string>();
  const agent = chosen ?? agents?.[0]?.id;
  if (agents === undefined || agent === undefined) return <p className="hint">{agents ? words.missions.whoNone : words.missions.loading}</p>;
  return (
    <div className="override">
      <p className="hint">{words.missions.overrideLead}</p>
      <SelectField label={words.missions.overrideAgent} value={agent} options={agents.map(({ id, name }) => [id, name])} onChange={setChosen} />
      <Fields key={agent} project={project} agent={agent} />
    </div>
  );
}

function Fields({ project, agent }: { project: string; agent: string }) {
  const api = useLaterApi();
  const load = useCallback(() => api.override(project, agent), [api, project, agent]);
  const { value, error } = useFresh(load);
  const [known, setKnown] = useState<RestOverride>();
  if (value !== undefined && known === undefined) setKnown(value);
  if (error && known === undefined) return <p className="is-bad">{plainly(error.message)}</p>;
  if (known === undefined) return <p className="hint">{words.missions.loading}</p>;
  return <Form known={known} onSaved={setKnown} />;
}

function Form({ known, onSaved }: { known: RestOverride; onSaved: (saved: RestOverride) => void }) {
  const api = useLaterApi();
  const [form, setForm] = useState<RestForm>(() => restOf(known));
  const [state, setState] = useState<"idle" | "saving" | "saved" | { refused: string }>("idle");
  const { patch, wrong } = overrideOf(form, known);
  const dirty = wrong !== null || Object.keys(patch).length > 0;

  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (!dirty || state === "saving") return;
    if (wrong !== null) {
      setState({ refused: wrong === "whole" ? words.missions.notWhole : words.missions.notANumber });
      return;
    }
    setState("saving");
    try {
      const saved = await api.setOverride(known.project, known.agent, patch);
      onSaved(saved);
      setForm(restOf(saved));
      setState("saved");
    } catch (cause) {
      setState({ refused: plainly(asApiError(cause).message) });
    }
  };

  const set = (change: Partial<RestForm>): void => {
    setForm({ ...form, ...change });
    setState("idle");
  };
  const refused = typeof state === "object" ? state.refused : undefined;
  return (
    <form className="override" noValidate onSubmit={(event) => void save(event)}>
      <AreaField
        label={words.missions.idlePromptShort}
        placeholder={words.missions.overrideNone}
        rows={2}
        value={form.idle_prompt}
        error={wrong === null ? refused : undefined}
        onChange={(idle_prompt) => set({ idle_prompt })}
      />
      <div className="settings-grid">
        <TextField
          label={words.missions.overrideInterval}
          placeholder={words.missions.overrideNone}
          numeric
          value={form.idle_interval_s}
          error={wrong === null ? undefined : refused}
          onChange={(idle_interval_s) => set({ idle_interval_s })}
        />
      </div>
      <div className="card-bar">
        <button type="submit" className="button small" aria-disabled={!dirty || state === "saving"}>
          {state === "saving" ? words.missions.overrideSaving : words.missions.overrideSave}
        </button>
        <span className="hint" role="status">
          {state === "saved" ? words.missions.overrideSaved : ""}
        </span>
      </div>
    </form>
  );
}
