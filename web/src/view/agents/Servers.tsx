/** The MCP servers of an agent: programs that Palaver starts for it, or addresses. */

import { words } from "../../text.agents";
import { Icon } from "../controls/Icon";
import { CheckField, Note, SelectField, TextField } from "../frame/Fields";
import { newKey, type ServerForm } from "./form";
import { Secrets } from "./Secrets";

interface ServersProps {
  servers: readonly ServerForm[];
  error: string | undefined;
  onChange: (servers: ServerForm[]) => void;
}

const FRESH = { name: "", known: false, kind: "program", command: "", url: "", secrets: [], trusted: false } as const;

export function Servers({ servers, error, onChange }: ServersProps) {
  const change = (key: number, patch: Partial<ServerForm>): void => onChange(servers.map((one) => (one.key === key ? { ...one, ...patch } : one)));
  return (
    <div className="settings-field rows">
      {servers.map((server) => (
        <Server
          key={server.key}
          server={server}
          onChange={(patch) => change(server.key, patch)}
          onRemove={() => onChange(servers.filter(({ key }) => key !== server.key))}
        />
      ))}
      <Note hint={words.form.serversHint} error={error} />
      <button type="button" className="button small" onClick={() => onChange([...servers, { ...FRESH, secrets: [], key: newKey() }])}>
        <Icon name="add" />
        {words.form.addServer}
      </button>
    </div>
  );
}

interface ServerProps {
  server: ServerForm;
  onChange: (patch: Partial<ServerForm>) => void;
  onRemove: () => void;
}

function Server({ server, onChange, onRemove }: ServerProps) {
  const say = words.form.server;
  return (
    <section className="card" aria-label={server.name || words.form.newServer}>
      <div className="card-head">
        <h3 className="card-heading">{server.name || words.form.newServer}</h3>
        <button type="button" className="icon-button" aria-label={words.form.removeServer(server.name)} onClick={onRemove}>
          <Icon name="trash" />
        </button>
      </div>
      <div className="settings-grid">
        {/* Its secrets hang on its name: another name would be another server without them. */}
        {!server.known && <TextField label={say.name} value={server.name} code autoFocus onChange={(name) => onChange({ name })} />}
        <SelectField
          label={say.kind}
          value={server.kind}
          options={[
            ["program", say.kinds.program],
            ["address", say.kinds.address],
          ]}
          onChange={(kind) => onChange({ kind: kind === "address" ? "address" : "program", secrets: [] })}
        />
      </div>
      {server.kind === "program" ? (
        <TextField label={say.command} placeholder="npx -y @modelcontextprotocol/server-filesystem ." value={server.command} code onChange={(command) => onChange({ command })} />
      ) : (
        <TextField label={say.url} placeholder="https://" value={server.url} code onChange={(url) => onChange({ url })} />
      )}
      <Secrets
        label={server.kind === "program" ? say.environment : say.headers}
        add={server.kind === "program" ? words.form.secret.add.environment : words.form.secret.add.headers}
        secrets={server.secrets}
        onChange={(secrets) => onChange({ secrets })}
      />
      <CheckField label={say.trusted} hint={say.trustedHint} checked={server.trusted} onChange={(trusted) => onChange({ trusted })} />
    </section>
  );
}
