/** Every field of an agent, in groups; what is rarely set is folded away until it says something. */

import { useCallback, useId, type ReactNode } from "react";
import type { AgentShown } from "../../protocol/agents";
import { text } from "../../text";
import { words } from "../../text.agents";
import { later } from "../../text.later";
import { MODES } from "../composer/Mode";
import { Icon } from "../controls/Icon";
import { AreaField, CheckField, Note, SelectField, TextField } from "../frame/Fields";
import { useFresh, useLaterApi } from "../frame/fresh";
import { ScreenLink } from "../frame/ScreenLink";
import { modelsOf } from "../settings/params";
import { usePick } from "../store";
import { BEST, DECISIONS, newKey, PARAMS, type AgentForm, type Field, type RuleForm } from "./form";
import { Secrets } from "./Secrets";
import { Servers } from "./Servers";

const EFFORTS = ["", "low", "medium", "high"] as const;

interface AgentFieldsProps {
  form: AgentForm;
  errors: Partial<Record<Field, string>>;
  agent: AgentShown | null;
  onChange: (patch: Partial<AgentForm>) => void;
}

export function AgentFields({ form, errors, agent, onChange }: AgentFieldsProps) {
  const api = useLaterApi();
  const load = useCallback(() => api.backends(), [api]);
  const backends = useFresh(load).value ?? [];
  const known = usePick((snapshot) => snapshot.agents.items);
  const models = useId();
  const { groups } = words.form;
  const says = agent?.backend && agent.backend !== "none" && !agent.given.includes("backend") ? agent.backend : null;
  const title = backends.find(({ name }) => name === says)?.title ?? says;
  const needsCommand = form.backend === "acp" || form.command !== "" || errors.command !== undefined;

  return (
    <>
      <Group heading={groups.who}>
        <div className="settings-grid">
          <TextField label={words.form.name} value={form.name} error={errors.name} autoFocus={agent === null} onChange={(name) => onChange({ name })} />
          {agent === null && (
            <TextField label={words.form.id} hint={words.form.idHint} value={form.id} error={errors.id} code onChange={(id) => onChange({ id })} />
          )}
        </div>
        <AreaField
          label={words.form.description}
          hint={words.form.descriptionHint}
          rows={1}
          value={form.description}
          error={errors.description}
          onChange={(description) => onChange({ description })}
        />
      </Group>
      <Group heading={groups.instructions}>
        <AreaField
          label={words.form.prompt}
          hint={words.form.promptHint}
          rows={10}
          value={form.system_prompt}
          error={errors.system_prompt}
          onChange={(system_prompt) => onChange({ system_prompt })}
        />
      </Group>
      <Group heading={groups.runs}>
        <div className="settings-grid">
          <SelectField
            label={words.form.backend}
            hint={
              <>
                {words.form.backendHint} <ScreenLink to="/backends">{words.form.seeBackends}</ScreenLink>
              </>
            }
            value={form.backend}
            error={errors.backend}
            options={[[BEST, words.form.best(title)], ...backends.map((one) => [one.name, one.title] as const)]}
            onChange={(backend) => onChange({ backend })}
          />
          <TextField
            label={words.form.model}
            hint={words.form.modelHint}
            placeholder={agent?.model ?? ""}
            value={form.model}
            error={errors.model}
            code
            list={models}
            onChange={(model) => onChange({ model })}
          />
          <datalist id={models}>
            {modelsOf([], known).map((model) => (
              <option key={model} value={model} />
            ))}
          </datalist>
        </div>
        <TextField
          label={words.form.fallbacks}
          hint={words.form.fallbacksHint}
          value={form.fallbacks}
          error={errors.fallbacks}
          code
          onChange={(fallbacks) => onChange({ fallbacks })}
        />
        {needsCommand && (
          <TextField
            label={words.form.command}
            hint={words.form.commandHint}
            placeholder="opencode acp"
            value={form.command}
            error={errors.command}
            code
            onChange={(command) => onChange({ command })}
          />
        )}
        <Secrets
          label={words.form.environment}
          hint={words.form.environmentHint}
          error={errors.environment}
          add={words.form.secret.add.environment}
          secrets={form.environment}
          onChange={(environment) => onChange({ environment })}
        />
      </Group>
      <Group heading={groups.tools}>
        <TextField label={words.form.tools} hint={words.form.toolsHint} value={form.tools} error={errors.tools} code onChange={(tools) => onChange({ tools })} />
        <TextField
          label={words.form.allowed}
          hint={words.form.allowedHint}
          value={form.allowed_tools}
          error={errors.allowed_tools}
          code
          onChange={(allowed_tools) => onChange({ allowed_tools })}
        />
        <Rules rules={form.policy} error={errors.policy} onChange={(policy) => onChange({ policy })} />
      </Group>
      <Group heading={groups.servers}>
        <Servers servers={form.mcp_servers} error={errors.mcp_servers} onChange={(mcp_servers) => onChange({ mcp_servers })} />
      </Group>
      <Group heading={groups.limits}>
        <div className="settings-grid">
          <SelectField
            label={words.form.mode}
            value={form.mode}
            error={errors.mode}
            hint={text.modes.hints[form.mode] ?? ""}
            options={[["", words.form.modeNone], ...MODES.map((mode) => [mode, text.composer.modes[mode] ?? mode] as const)]}
            onChange={(mode) => onChange({ mode })}
          />
          <TextField
            label={words.form.spend}
            hint={words.form.spendHint}
            value={form.spend_limit_usd}
            error={errors.spend_limit_usd}
            numeric
            onChange={(spend_limit_usd) => onChange({ spend_limit_usd })}
          />
        </div>
      </Group>
      <Group heading={groups.idle}>
        <AreaField
          label={words.form.idlePrompt}
          hint={words.form.idlePromptHint}
          rows={2}
          value={form.idle_prompt}
          error={errors.idle_prompt}
          onChange={(idle_prompt) => onChange({ idle_prompt })}
        />
        <div className="settings-grid">
          <TextField
            label={words.form.idleInterval}
            hint={words.form.idleIntervalHint}
            placeholder="60"
            value={form.idle_interval_s}
            error={errors.idle_interval_s}
            numeric
            onChange={(idle_interval_s) => onChange({ idle_interval_s })}
          />
        </div>
      </Group>
      <Group heading={groups.answers}>
        <div className="settings-grid">
          {PARAMS.map((name) => (
            <TextField
              key={name}
              label={later.settings.fields[name]?.[0] ?? name}
              hint={later.settings.fields[name]?.[1] ?? ""}
              placeholder={words.form.numberHint}
              value={form.params[name] ?? ""}
              numeric
              onChange={(value) => onChange({ params: { ...form.params, [name]: value } })}
            />
          ))}
          <SelectField
            label={later.settings.fields["reasoning_effort"]?.[0] ?? ""}
            hint={later.settings.fields["reasoning_effort"]?.[1] ?? ""}
            value={form.params["reasoning_effort"] ?? ""}
            options={EFFORTS.map((effort) => [effort, effort === "" ? words.form.numberHint : (later.settings.efforts[effort] ?? effort)])}
            onChange={(value) => onChange({ params: { ...form.params, reasoning_effort: value } })}
          />
        </div>
        <Note error={errors.params} />
      </Group>
      <Group heading={groups.more}>
        <CheckField label={words.form.knowledge} hint={words.form.knowledgeHint} checked={form.knowledge} onChange={(knowledge) => onChange({ knowledge })} />
        <CheckField label={words.form.strict} hint={words.form.strictHint} checked={form.strict_inbox} onChange={(strict_inbox) => onChange({ strict_inbox })} />
      </Group>
    </>
  );
}

function Group({ heading, children }: { heading: string; children: ReactNode }) {
  const id = useId();
  return (
    <section className="form-group" aria-labelledby={id}>
      <h2 id={id} className="screen-subheading">
        {heading}
      </h2>
      {children}
    </section>
  );
}

interface RulesProps {
  rules: readonly RuleForm[];
  error: string | undefined;
  onChange: (rules: RuleForm[]) => void;
}

function Rules({ rules, error, onChange }: RulesProps) {
  const change = (key: number, patch: Partial<RuleForm>): void => onChange(rules.map((rule) => (rule.key === key ? { ...rule, ...patch } : rule)));
  return (
    <div className="settings-field rows" role="group" aria-label={words.form.rules}>
      <span className="label">{words.form.rules}</span>
      {rules.map((rule) => (
        <div key={rule.key} className="row-fields">
          <TextField label={words.form.rule.tool} value={rule.tool} code onChange={(tool) => change(rule.key, { tool })} />
          <TextField label={words.form.rule.match} placeholder={words.form.anyCall} value={rule.match} code onChange={(match) => change(rule.key, { match })} />
          <SelectField
            label={words.form.rule.decision}
            value={rule.decision}
            options={DECISIONS.map((one) => [one, words.form.decisions[one] ?? one])}
            onChange={(decision) => change(rule.key, { decision })}
          />
          <button
            type="button"
            className="icon-button"
            aria-label={words.form.removeRule(rule.tool)}
            onClick={() => onChange(rules.filter(({ key }) => key !== rule.key))}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
      <Note hint={words.form.rulesHint} error={error} />
      <button type="button" className="button small" onClick={() => onChange([...rules, { key: newKey(), tool: "", match: "", decision: "ask" }])}>
        <Icon name="add" />
        {words.form.addRule}
      </button>
    </div>
  );
}
