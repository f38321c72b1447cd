/** A new mission: what shall be reached, who works on it, for how much. In the place of another one it is asked once more. */

import { useCallback, useRef, useState, useEffect, type FormEvent } from "react";
import type { Listed, MissionView } from "../../protocol/agents";
import { asApiError } from "../../transport/api";
import { text } from "../../text";
import { words } from "../../text.agents";
import { later } from "../../text.later";
import { Confirm } from "../frame/Confirm";
import { AreaField, CheckField, TextField } from "../frame/Fields";
import { useFresh, useLaterApi } from "../frame/fresh";
import { fieldOf, formOf, NO_REST, plainly, wishOf, type MissionForm as Form, type RestForm } from "./wish";

interface MissionFormProps {
  project: string;
  before: MissionView | null;
  onSet: () => void;
  onCancel: () => void;
}

const WRONG = { say: words.missions.say, number: words.missions.notANumber, whole: words.missions.notWhole };

export function MissionForm({ project, before, onSet, onCancel }: MissionFormProps) {
  const api = useLaterApi();
  const load = useCallback(() => api.agentsIn(project), [api, project]);
  const usable = useUsable(useFresh(load).value?.items);
  const [form, setForm] = useState<Form>(() => formOf(before));
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [phase, setPhase] = useState<"writing" | "asking" | "setting">("writing");
  const element = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (Object.keys(errors).length > 0) element.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [errors]);
  const heading = before === null ? words.missions.setHeading : words.missions.replaceHeading;

  const set = (patch: Partial<Form>): void => {
    setForm({ ...form, ...patch });
    setErrors({});
  };
  const setRest = (agent: string, patch: Partial<RestForm>): void =>
    set({ agents: { ...form.agents, [agent]: { ...(form.agents[agent] ?? NO_REST), ...patch } } });
  const choose = (agent: string, chosen: boolean): void => {
    const others = Object.fromEntries(Object.entries(form.agents).filter(([id]) => id !== agent));
    set({ agents: chosen ? { ...others, [agent]: NO_REST } : others });
  };

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (phase !== "writing") return;
    const { wrong } = wishOf(form);
    if (Object.keys(wrong).length > 0) setErrors(Object.fromEntries(Object.entries(wrong).map(([field, why]) => [field, WRONG[why]])));
    else if (before !== null) setPhase("asking");
    else void put();
  };
  const put = async (): Promise<void> => {
    setPhase("setting");
    try {
      await api.setMission(project, wishOf(form).wish);
      onSet();
    } catch (cause) {
      const { message } = asApiError(cause);
      setErrors({ [fieldOf(message, form) ?? "form"]: plainly(message) || words.missions.saveFailed });
      setPhase("writing");
    }
  };

  return (
    <form ref={element} className="card mission-form" aria-label={heading} noValidate onSubmit={submit}>
      <h2 className="card-heading">{heading}</h2>
      <AreaField label={words.missions.text} hint={words.missions.textHint} rows={4} value={form.text} error={errors["text"]} autoFocus onChange={(value) => set({ text: value })} />
      <fieldset className="plain">
        <legend className="label">{words.missions.who}</legend>
        {usable?.length === 0 && <p className="hint">{words.missions.whoNone}</p>}
        {offered(usable ?? [], form).map(({ id, name, description, ready }) => {
          const rest = form.agents[id];
          return (
            <div key={id} className="mission-agent">
              <CheckField label={name} hint={text.join(!ready && words.missions.unready, !rest && description)} checked={rest !== undefined} onChange={(chosen) => choose(id, chosen)} />
              {rest && (
                <div className="settings-grid mission-rest">
                  <AreaField
                    label={words.missions.idlePrompt(name)}
                    placeholder={words.missions.own}
                    rows={1}
                    value={rest.idle_prompt}
                    error={errors[`${id}.idle_prompt`]}
                    onChange={(idle_prompt) => setRest(id, { idle_prompt })}
                  />
                  <TextField
                    label={words.missions.interval(name)}
                    placeholder={words.missions.own}
                    numeric
                    value={rest.idle_interval_s}
                    error={errors[`${id}.idle_interval_s`]}
                    onChange={(idle_interval_s) => setRest(id, { idle_interval_s })}
                  />
                </div>
              )}
            </div>
          );
        })}
        <p className="hint">{words.missions.whoHint}</p>
      </fieldset>
      <div className="settings-grid">
        <TextField
          label={words.missions.budget}
          hint={words.missions.budgetHint}
          numeric
          value={form.budget_usd}
          error={errors["budget_usd"]}
          onChange={(budget_usd) => set({ budget_usd })}
        />
      </div>
      {errors["form"] && (
        <p className="is-bad" role="alert">
          {errors["form"]}
        </p>
      )}
      <div className="card-bar is-end">
        <button type="button" className="button small" onClick={onCancel}>
          {later.settings.cancel}
        </button>
        <button type="submit" className="button small primary" aria-disabled={phase === "setting"}>
          {phase === "setting" ? words.missions.saving : words.missions.save}
        </button>
      </div>
      {phase === "asking" && (
        <Confirm
          heading={words.missions.replaceAsk}
          body={words.missions.replaceBody}
          yes={words.missions.replaceYes}
          no={words.missions.cancel}
          onYes={() => void put()}
          onNo={() => setPhase("writing")}
        />
      )}
    </form>
  );
}

function useUsable(agents: readonly Listed[] | undefined): Listed[] | undefined {
  return agents?.filter(({ problem, trusted }) => problem === null && trusted);
}

/** Also those that the former mission named and that are not here any more: to be taken off. */
function offered(usable: readonly Listed[], form: Form): Pick<Listed, "id" | "name" | "description" | "ready">[] {
  const gone = Object.keys(form.agents).filter((id) => !usable.some((agent) => agent.id === id));
  return [...usable, ...gone.map((id) => ({ id, name: id, description: "", ready: false }))];
}
