/** The plan under way, in one line above the composer; it opens to its steps. */

import type { PlanItem, State } from "../../protocol/events.gen";
import { text } from "../../text";
import { asking } from "../../text.asking";
import { Icon, type IconName } from "../controls/Icon";
import { plainly } from "../controls/visible";
import { useDisclosed, usePicked } from "../store";

export default function PlanLine({ id }: { id: string }) {
  const plan = usePicked(id, ({ state }) => state.plan) ?? null;
  const stopped = usePicked(id, ({ state }) => isPutDown(state)) ?? false;
  const [open, setOpen] = useDisclosed(`plan:${id}`);
  if (plan === null) return null;
  const count = (status: PlanItem["status"]): number => plan.items.filter((item) => item.status === status).length;
  const current = plan.items.find((item) => item.status === "in_progress");
  const progress = text.plan.progress(count("done"), plan.items.length, count("skipped"));
  return (
    <section className="plan-line" aria-label={asking.plan.heading}>
      <button
        type="button"
        className="tool-line"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <span className="tool-icon">
          <Icon name="plan" />
        </span>
        <span className="tool-verb">{asking.plan.heading}</span>
        <span className="tool-object">{plainly(current?.title ?? plan.summary)}</span>
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
        <span className={stopped ? "tool-result tabular is-wait" : "tool-result tabular"}>{text.join(stopped && asking.plan.stopped, progress)}</span>
      </button>
      {open && <PlanItems items={plan.items} stopped={stopped} />}
    </section>
  );
}

/** Whether the turn that carried the plan out was cut short, and nobody goes on with it at the moment. */
export function isPutDown({ plan, turn, last_turn }: State): boolean {
  const cut = last_turn?.outcome === "interrupted" || last_turn?.outcome === "failed" || last_turn?.outcome === "limited";
  const begun = plan?.status === "approved" || plan?.status === "executing";
  return turn === null && cut && begun && plan.items.some(({ status }) => status === "pending" || status === "in_progress");
}

type Shown = PlanItem["status"] | "stopped";

const ICONS: Record<Shown, IconName> = { pending: "circle", in_progress: "spark", done: "check", skipped: "cut", stopped: "hold" };

interface PlanItemsProps {
  items: readonly PlanItem[];
  /** Titles of the steps that this plan changed. */
  changed?: ReadonlySet<string>;
  /** Nobody carries it out any more: what was under way stands still. */
  stopped?: boolean;
}

export function PlanItems({ items, changed, stopped = false }: PlanItemsProps) {
  const shown = ({ status }: PlanItem): Shown => (stopped && status === "in_progress" ? "stopped" : status);
  return (
    <ol className="plan-items">
      {items.map((item, at) => (
        <li key={at} className={`plan-item is-${shown(item)}`}>
          <Icon name={ICONS[shown(item)]} />
          <span>
            <span className="plan-title">{plainly(item.title)}</span>
            <span className={shown(item) === "stopped" ? "plan-changed" : "sr-only"}>
              <span className="sr-only">, </span>
              {asking.plan.item[shown(item)]}
            </span>
            {changed?.has(item.title) && <span className="plan-changed">{asking.plan.changed}</span>}
            {item.description && <span className="plan-more">{plainly(item.description)}</span>}
          </span>
        </li>
      ))}
    </ol>
  );
}
