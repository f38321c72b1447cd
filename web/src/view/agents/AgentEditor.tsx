/** One agent to change, or a new one: fetched, kept from being lost by leaving, saved. What the fields are is AgentFields' affair. */

import { useCallback, useEffect, useRef, useState, type FormEvent } from "react";
import type { AgentShown } from "../../protocol/agents";
import { asApiError } from "../../transport/api";
import { said } from "../../sentences";
import { words } from "../../text.agents";
import { later } from "../../text.later";
import { Confirm } from "../frame/Confirm";
import { useFresh, useLaterApi } from "../frame/fresh";
import { ScreenFrame } from "../frame/ScreenFrame";
import { ScreenLink } from "../frame/ScreenLink";
import { Trouble } from "../frame/Trouble";
import { Words } from "../frame/Words";
import { goTo, holdPage } from "../route";
import type { ScreenProps } from "../screens";
import { useStore } from "../store";
import { AgentFields } from "./AgentFields";
import { changesOf, fieldOf, formOf, hasChanges, type AgentForm, type Field } from "./form";

interface AgentEditorProps extends ScreenProps {
  /** null: a new one. */
  id: string | null;
}

export function AgentEditor({ id, listShown, onShowList }: AgentEditorProps) {
  const api = useLaterApi();
  const load = useCallback(() => (id === null ? Promise.resolve(null) : api.agent(id)), [api, id]);
  const { value, error, again } = useFresh(load);
  // What was fetched first is what is edited: looking at the page again must not change it under somebody's fingers.
  const [agent, setAgent] = useState<AgentShown | null | undefined>();
  if (value !== undefined && agent === undefined) setAgent(value);
  const heading = id === null ? words.form.newHeading : words.form.heading(agent?.name ?? id);
  return (
    <ScreenFrame heading={heading} listShown={listShown} onShowList={onShowList}>
      <p className="screen-foot">
        <ScreenLink to="/agents">← {words.form.back}</ScreenLink>
      </p>
      {error && agent === undefined && <Trouble heading={words.form.failed} error={error} onAgain={again} />}
      {!error && agent === undefined && (
        <p className="hint" role="status">
          {words.form.loading}
        </p>
      )}
      {agent !== undefined && <Editing agent={agent} />}
    </ScreenFrame>
  );
}

type Errors = Partial<Record<Field | "form", string>>;

function Editing({ agent }: { agent: AgentShown | null }) {
  const api = useLaterApi();
  const store = useStore();
  const [form, setForm] = useState<AgentForm>(() => formOf(agent));
  const [errors, setErrors] = useState<Errors>({});
  const [saving, setSaving] = useState(false);
  const [leavingTo, setLeavingTo] = useState<string | null>(null);
  const element = useRef<HTMLFormElement>(null);
  const changes = changesOf(form, agent);
  const dirty = hasChanges(changes, agent);
  const disabled = agent !== null && !agent.editable;

  const release = useHeld(dirty, setLeavingTo);
  useEffect(() => {
    // Whoever saves with the keyboard is led to what is wrong.
    if (Object.keys(errors).length > 0) element.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [errors]);

  const set = (patch: Partial<AgentForm>): void => {
    setForm({ ...form, ...patch });
    const left = Object.entries(errors).filter(([field]) => field !== "form" && !(field in patch));
    if (left.length < Object.keys(errors).length) setErrors(Object.fromEntries(left));
  };

  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (saving || disabled) return;
    const { patch, wrong } = changes;
    if (Object.keys(wrong).length > 0) {
      const found = Object.entries(wrong).map(([field, why]) => [field, words.form.wrong[why]]);
      setErrors({ ...Object.fromEntries(found), form: words.form.seeFields });
      return;
    }
    setSaving(true);
    setErrors({});
    try {
      if (agent === null) await api.createAgent(patch);
      else if (dirty) await api.updateAgent(agent.id, patch);
      void store.loadAgents();
      release();
      goTo("/agents");
    } catch (cause) {
      const { message, error } = asApiError(cause);
      const field = fieldOf(error);
      setErrors(field === null ? { form: said(message) || words.form.saveFailed } : { [field]: said(message), form: words.form.seeFields });
      setSaving(false);
    }
  };

  return (
    <form ref={element} className="agent-form" noValidate onSubmit={(event) => void save(event)}>
      {agent?.problem && (
        <div className="card-outcome is-trouble">
          <p className="is-bad">{words.agents.problem}</p>
          <p>
            <Words>{agent.problem}</Words>
          </p>
        </div>
      )}
      {agent?.source === "built-in" && <p className="hint">{words.form.builtIn}</p>}
      {disabled && <p className="hint">{words.form.readOnly}</p>}
      <fieldset className="plain" disabled={disabled}>
        <AgentFields form={form} errors={errors} agent={agent} onChange={set} />
      </fieldset>
      <div className="form-bar">
        <p className={errors.form ? "is-bad" : "hint"} role={errors.form ? "alert" : "status"}>
          {errors.form ?? (dirty ? words.form.unsaved : agent === null ? "" : words.form.unchanged)}
        </p>
        <ScreenLink to="/agents" className="button">
          {later.settings.cancel}
        </ScreenLink>
        <button type="submit" className="button primary" aria-disabled={saving || disabled || !dirty}>
          {saving ? words.form.saving : agent === null ? words.form.make : words.form.save}
        </button>
      </div>
      {leavingTo !== null && (
        <Confirm
          heading={words.form.leaveHeading}
          body={words.form.leaveBody}
          yes={words.form.leaveYes}
          no={words.form.leaveNo}
          onYes={() => {
            release();
            goTo(leavingTo);
          }}
          onNo={() => setLeavingTo(null)}
        />
      )}
    </form>
  );
}

/** While it holds, nobody leaves unasked: not within the page, not back, not by closing the tab. Returns what lets go. */
function useHeld(holds: boolean, onLeave: (address: string) => void): () => void {
  const release = useRef<() => void>(() => undefined);
  useEffect(() => {
    if (!holds) return;
    const stay = (event: BeforeUnloadEvent): void => event.preventDefault();
    const letGo = holdPage((address) => {
      onLeave(address);
      return true;
    });
    const end = (): void => {
      letGo();
      window.removeEventListener("beforeunload", stay);
    };
    window.addEventListener("beforeunload", stay);
    release.current = end;
    return end;
  }, [holds, onLeave]);
  return useCallback(() => release.current(), []);
}
