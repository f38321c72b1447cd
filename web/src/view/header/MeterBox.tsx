/** The numbers behind the meter: what fills the context, tokens, cost, changed files. */

import type { ContextMeter, State } from "../../protocol/events.gen";
import { money, tokens } from "../../measures";
import { text } from "../../text";
import { later } from "../../text.later";
import { usePicked } from "../store";
import { shareOf } from "./Meter";

const NOTHING_USED: State["usage"] = {};
const NO_FILES: State["files"] = [];
// Those changed last; the rest is in the dialog.
const FILES_SHOWN = 8;

export default function MeterBox({ id, onShowFiles }: { id: string; onShowFiles: () => void }) {
  const context = usePicked(id, ({ state }) => state.context) ?? null;
  const usage = usePicked(id, ({ state }) => state.usage) ?? NOTHING_USED;
  const turnCost = usePicked(id, ({ state }) => state.turn?.cost_usd) ?? 0;
  const cost = (usePicked(id, ({ state }) => state.cost_usd) ?? 0) + turnCost;
  const limit = usePicked(id, ({ state }) => limitOf(state.params)) ?? null;
  const files = usePicked(id, ({ state }) => state.files) ?? NO_FILES;
  const spent = (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  return (
    <>
      <Context context={context} />
      <dl className="meter-facts">
        <div>
          <dt>{later.meter.costLabel}</dt>
          <dd>{cost > 0 ? text.join(money(cost), turnCost > 0 && later.meter.costTurn(turnCost), limit !== null && later.meter.costLimit(limit)) : later.meter.costNone}</dd>
        </div>
        {spent > 0 && (
          <div>
            <dt>{later.meter.tokensLabel}</dt>
            <dd>
              {text.join(
                later.meter.usage(usage.input_tokens ?? 0, usage.output_tokens ?? 0),
                (usage.cached_tokens ?? 0) > 0 && later.meter.cached(usage.cached_tokens ?? 0),
              )}
            </dd>
          </div>
        )}
      </dl>
      {files.length > 0 && (
        <>
          <h2>{later.meter.files(files.length)}</h2>
          <ul className="file-list">
            {files.slice(-FILES_SHOWN).map((file) => (
              <li key={file.path}>
                <span className="mono ellipsis">{file.path}</span>
                <span className="is-good tabular">{file.additions > 0 && text.tool.added(file.additions)}</span>
                <span className="is-bad tabular">{file.deletions > 0 && text.tool.removed(file.deletions)}</span>
              </li>
            ))}
            {files.length > FILES_SHOWN && <li className="hint">{later.meter.moreFiles(files.length - FILES_SHOWN)}</li>}
          </ul>
          <button
            type="button"
            className="button small meter-files"
            onClick={onShowFiles}
          >
            {later.meter.showFiles}
          </button>
        </>
      )}
    </>
  );
}

function limitOf(params: object): number | null {
  const limit = (params as Record<string, unknown>)["spend_limit_usd"];
  return typeof limit === "number" ? limit : null;
}

/** In the order a model is shown them. */
const PARTS = ["system", "tools", "instructions", "knowledge", "messages", "tool_results"];

function Context({ context }: { context: ContextMeter | null }) {
  if (context === null) {
    return (
      <>
        <h2>{text.header.context}</h2>
        <p>{later.meter.contextUnknown}</p>
      </>
    );
  }
  const parts = Object.entries(context.breakdown)
    .filter(([, size]) => size > 0)
    .toSorted(([a], [b]) => placeOf(a) - placeOf(b));
  const whole = context.window_tokens ?? Math.max(1, context.used_tokens);
  return (
    <>
      <h2 className="meter-head">
        {text.header.context}
        {context.window_tokens !== null && <span className="tabular">{later.meter.contextShare(shareOf(context))}</span>}
      </h2>
      <p className="tabular">
        {text.join(later.meter.contextTokens(context.used_tokens, context.window_tokens), context.estimated && later.meter.estimated)}
      </p>
      {parts.length > 0 && (
        <>
          <div className="meter-bar" aria-hidden="true">
            {parts.map(([name, size]) => (
              <span key={name} className={`part-${placeOf(name)}`} style={{ flexGrow: size / whole }} />
            ))}
            <span className="part-free" style={{ flexGrow: Math.max(0, 1 - context.used_tokens / whole) }} />
          </div>
          <dl className="meter-parts">
            {parts.map(([name, size]) => (
              <div key={name}>
                <dt>
                  <span className={`swatch part-${placeOf(name)}`} />
                  {later.meter.parts[name] ?? name.replaceAll("_", " ")}
                </dt>
                <dd className="tabular">{tokens(size)}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
      {context.compressed && <p>{later.meter.compressed}</p>}
    </>
  );
}

function placeOf(name: string): number {
  const at = PARTS.indexOf(name);
  return at === -1 ? PARTS.length : at;
}
