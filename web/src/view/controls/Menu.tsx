/**
 * A button that opens a list of actions in a native popover. The list exists only while it is open, so that a thousand
 * rows may each have one.
 */

import { useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useMayWrite } from "../store";
import { Icon, type IconName } from "./Icon";

export interface MenuAction {
  label: string;
  /** A second line, in fainter words. */
  hint?: string;
  /** One of several that exclude each other. */
  checked?: boolean;
  icon?: IconName;
  danger?: boolean;
  /** It changes something: who may only read is not offered it. */
  writes?: boolean;
  /** Shown, and not to be chosen; its hint says why. */
  disabled?: boolean;
  end?: ReactNode;
  onSelect: () => void;
}

export interface MenuProps {
  /** What the button is called when it shows only a drawing. */
  label: string;
  actions: readonly MenuAction[];
  className?: string;
  /** Which side of the button the list keeps to. */
  align?: "start" | "end";
  /** Shown, and not to be opened now. */
  disabled?: boolean;
  children: ReactNode;
}

// Between the list and the button, and between the list and the edge of the window.
const GAP_PX = 4;
const EDGE_PX = 8;

export function Menu({ label, actions, className = "icon-button", align = "end", disabled = false, children }: MenuProps) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const mayWrite = useMayWrite();
  const offered = actions.filter(({ writes }) => mayWrite || !writes);
  if (offered.length === 0) return null;
  return (
    <>
      <button
        ref={button}
        type="button"
        className={className}
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-disabled={disabled || undefined}
        onClick={disabled ? undefined : () => setOpen(true)}
      >
        {children}
      </button>
      {open && (
        <MenuList
          label={label}
          actions={offered}
          anchor={button.current}
          align={align}
          onClose={(byChoice) => {
            setOpen(false);
            if (!byChoice) button.current?.focus();
          }}
        />
      )}
    </>
  );
}

interface MenuListProps {
  label: string;
  actions: readonly MenuAction[];
  anchor: HTMLElement | null;
  align: "start" | "end";
  onClose: (byChoice: boolean) => void;
}

function MenuList({ label, actions, anchor, align, onClose }: MenuListProps) {
  const list = useRef<HTMLDivElement>(null);
  const chosen = useRef(false);

  useLayoutEffect(() => {
    const element = list.current;
    if (element === null) return;
    element.showPopover();
    if (anchor) place(element, anchor.getBoundingClientRect(), align);
    const first = element.querySelector<HTMLElement>("[aria-checked=true]") ?? element.querySelector<HTMLElement>("[role^=menuitem]");
    first?.focus();
    // Another width arranges the page anew and may take the button away; another height is a phone's keyboard going.
    const { innerWidth } = window;
    const arrange = (): void => {
      if (window.innerWidth !== innerWidth) element.hidePopover();
      else if (anchor) place(element, anchor.getBoundingClientRect(), align);
    };
    window.addEventListener("resize", arrange);
    return () => window.removeEventListener("resize", arrange);
  }, [anchor, align]);

  const select = (action: MenuAction) => {
    if (action.disabled) return;
    chosen.current = true;
    list.current?.hidePopover();
    action.onSelect();
  };

  return (
    <div
      ref={list}
      className="menu"
      popover="auto"
      role="menu"
      aria-label={label}
      onKeyDown={walk}
      onToggle={(event) => {
        if (event.newState === "closed") onClose(chosen.current);
      }}
    >
      {actions.map((action) => (
        <button
          key={action.label}
          type="button"
          role={action.checked === undefined ? "menuitem" : "menuitemradio"}
          aria-checked={action.checked}
          aria-disabled={action.disabled || undefined}
          tabIndex={-1}
          className={action.danger ? "menu-item danger" : "menu-item"}
          onClick={() => select(action)}
        >
          {action.icon && <Icon name={action.icon} />}
          {action.checked !== undefined && <span className="menu-check">{action.checked && <Icon name="check" />}</span>}
          <span>
            {action.label}
            {action.hint && <span className="menu-hint">{action.hint}</span>}
          </span>
          {action.end && <span className="end">{action.end}</span>}
        </button>
      ))}
    </div>
  );
}

function place(list: HTMLElement, anchor: DOMRect, align: "start" | "end"): void {
  const { width, height } = list.getBoundingClientRect();
  const below = anchor.bottom + GAP_PX;
  const fits = below + height + EDGE_PX <= window.innerHeight;
  const top = fits ? below : Math.max(EDGE_PX, anchor.top - GAP_PX - height);
  const wanted = align === "start" ? anchor.left : anchor.right - width;
  const left = Math.min(Math.max(EDGE_PX, wanted), window.innerWidth - width - EDGE_PX);
  list.style.top = `${top}px`;
  list.style.left = `${left}px`;
}

function walk(event: KeyboardEvent<HTMLDivElement>): void {
  const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>("[role^=menuitem]")];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const step = steps[event.key];
  if (event.key === "Home") items[0]?.focus();
  else if (event.key === "End") items.at(-1)?.focus();
  else if (event.key === "Tab") event.currentTarget.hidePopover();
  else if (step !== undefined) items[(at + step + items.length) % items.length]?.focus();
  else return;
  if (event.key !== "Tab") event.preventDefault();
}
