/** The plan under way, in one line above the composer; it opens to its steps. */

import type { PlanItem } from "../../protocol/events.gen";
import { text } from "../../text";
import { Icon, type IconName } from "../controls/Icon";
import { plainly } from "../controls/visible";
import { useDisclosed, usePicked } from "../store";

export function PlanLine({ id }: { id: string }) {
  const plan = usePicked(id, ({ state }) => state.plan) ?? null;
  const [open, setOpen] = useDisclosed(`plan:${id}`);
  if (plan === null || plan.status === "planned" || plan.items.length === 0) return null;
  const count = (status: PlanItem["status"]): number => plan.items.filter((item) => item.status === status).length;
  const current = plan.items.find((item) => item.status === "in_progress");
  return (
    <section className="plan-line" aria-label={text.plan.heading}>
      <button
        type="button"
        className="tool-line"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <span className="tool-icon">
          <Icon name="plan" />
        </span>
        <span className="tool-verb">{text.plan.heading}</span>
        <span className="tool-object">{plainly(current?.title ?? plan.summary)}</span>
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
        <span className="tool-result tabular">{text.plan.progress(count("done"), plan.items.length, count("skipped"))}</span>
      </button>
      {open && <PlanItems items={plan.items} />}
    </section>
  );
}

const ICONS: Record<PlanItem["status"], IconName> = { pending: "circle", in_progress: "spark", done: "check", skipped: "cut" };

interface PlanItemsProps {
  items: readonly PlanItem[];
  /** Titles of the steps that this plan changed. */
  changed?: ReadonlySet<string>;
}

export function PlanItems({ items, changed }: PlanItemsProps) {
  return (
    <ol className="plan-items">
      {items.map((item, at) => (
        <li key={at} className={`plan-item is-${item.status}`}>
          <Icon name={ICONS[item.status]} />
          <span>
            <span className="plan-title">{plainly(item.title)}</span>
            <span className="sr-only">, {text.plan.item[item.status]}</span>
            {changed?.has(item.title) && <span className="plan-changed">{text.plan.changed}</span>}
            {item.description && <span className="plan-more">{plainly(item.description)}</span>}
          </span>
        </li>
      ))}
    </ol>
  );
}
