/**
 * An answer that is one JSON object of a known type, as a widget: a plan, a task summary, a change report, questions. Anything
 * else is shown as the text it is.
 */

import { useMemo, useState, type ReactNode } from "react";
import { parseUnified } from "../../model/lines";
import { type MarkdownPart, renderMarkdown } from "../../model/markdown";
import type { TextRow } from "../../model/rows";
import { answerText, type AskSpecial, parseSpecial, type PlanSpecial, type ReportedFile, type ReportSpecial, type TaskSpecial } from "../../model/special";
import { asking } from "../../text.asking";
import { work } from "../../text.work";
import { useConversationId } from "../conversation/scope";
import { Icon, type IconName } from "../controls/Icon";
import { plainly, visible } from "../controls/visible";
import { DiffView } from "../diff/DiffView";
import { PlanItems } from "../dock/PlanLine";
import { type Choice, firstChoices, isAnswered, NOTHING, OneQuestion } from "../dock/QuestionCard";
import { useDisclosed, useMayWrite, usePicked, useStore } from "../store";
import { Markdown } from "../transcript/Markdown";
import "../../style/special.css";

const { special: words } = work;

interface SpecialBlockProps {
  row: TextRow;
  /** The text itself, rendered. */
  parts: readonly MarkdownPart[];
}

export default function SpecialBlock({ row, parts }: SpecialBlockProps) {
  const special = parseSpecial(row.block.text);
  switch (special?.type) {
    case "plan":
      return <PlanBlock row={row} special={special} />;
    case "finalize_task":
      return <TaskBlock place={row.key} special={special} />;
    case "change_report":
      return <ReportBlock place={row.key} special={special} />;
    case "ask_user":
      return <AskBlock row={row} special={special} />;
    default:
      return <Markdown place={row.key} parts={parts} />;
  }
}

function Card({ kind, icon, heading, children }: { kind: string; icon: IconName; heading: string; children: ReactNode }) {
  return (
    <section className={`special is-${kind}`} aria-label={heading}>
      <h2 className="special-heading">
        <Icon name={icon} />
        {heading}
      </h2>
      {children}
    </section>
  );
}

/** Whether it is still a person's turn to answer it: nobody wrote since, and who looks may write. */
function useIsOpen(row: TextRow): boolean {
  const mayWrite = useMayWrite();
  const id = useConversationId();
  const unanswered = usePicked(id, ({ state, outbox }) => {
    const sent = outbox.some(({ command, status }) => command.type === "send_message" && status !== "failed");
    return !sent && !state.messages.some(({ role, seq }) => role === "user" && seq > row.seq);
  });
  return mayWrite && unanswered === true;
}

function PlanBlock({ row, special: { plan } }: { row: TextRow; special: PlanSpecial }) {
  const store = useStore();
  const id = useConversationId();
  const open = useIsOpen(row) && plan.status === "planned";
  return (
    <Card kind="plan" icon="plan" heading={words.plan}>
      {plan.summary && <p className="plan-summary">{plainly(plan.summary)}</p>}
      {plan.items.length > 0 && <PlanItems items={plan.items} />}
      {open && (
        <p className="special-bar">
          <button type="button" className="button primary small" onClick={() => store.send(id, words.approved)}>
            {words.approve}
          </button>
          <span className="hint">{words.approveHint}</span>
        </p>
      )}
    </Card>
  );
}

function TaskBlock({ place, special }: { place: string; special: TaskSpecial }) {
  const summary = useMemo(() => renderMarkdown(special.summary), [special]);
  return (
    <Card kind="task" icon="check" heading={words.task}>
      {special.title && <p className="special-title">{plainly(special.title)}</p>}
      {special.summary && <Markdown place={`special:${place}`} parts={summary} />}
      {special.sections.map(({ title, items }, at) => (
        <div key={at}>
          <h3 className="special-section">{plainly(title)}</h3>
          <ul className="special-list">
            {items.map((item, index) => (
              <li key={index}>{plainly(item)}</li>
            ))}
          </ul>
        </div>
      ))}
    </Card>
  );
}

function ReportBlock({ place, special: { files, truncated_count } }: { place: string; special: ReportSpecial }) {
  return (
    <Card kind="report" icon="diff" heading={words.report}>
      <ul className="changes">
        {files.map((file, at) => (
          <ReportLine key={at} place={`special:${place}:${at}`} file={file} />
        ))}
      </ul>
      {truncated_count > 0 && <p className="hint">{words.more(truncated_count)}</p>}
    </Card>
  );
}

function ReportLine({ place, file }: { place: string; file: ReportedFile }) {
  const [open, setOpen] = useDisclosed(place);
  const { path, summary, diff } = file;
  const lines = useMemo(() => (diff ? parseUnified(diff) : []), [diff]);
  const name = (
    <span className="change-path mono">
      <bdi>{visible(path)}</bdi>
    </span>
  );
  return (
    <li className="change">
      {diff ? (
        <button type="button" className="change-line" aria-expanded={open} onClick={() => setOpen(!open)}>
          <span className="tool-chevron">
            <Icon name="chevron" />
          </span>
          {name}
        </button>
      ) : (
        <p className="change-line is-plain">{name}</p>
      )}
      {summary && <p className="special-summary">{plainly(summary)}</p>}
      {open && lines.length > 0 && <DiffView label={visible(path)} lines={lines} />}
    </li>
  );
}

function AskBlock({ row, special: { questions } }: { row: TextRow; special: AskSpecial }) {
  const store = useStore();
  const id = useConversationId();
  const open = useIsOpen(row);
  const [choices, setChoices] = useState<readonly Choice[]>(() => firstChoices(questions));
  const complete = questions.every((_, at) => isAnswered(choices[at] ?? NOTHING));
  const send = (): void => {
    if (!complete) return;
    const answers = choices.map(({ selected, own }) => [...selected, ...(own?.trim() ? [own.trim()] : [])]);
    store.send(id, answerText(questions, answers));
  };
  return (
    <Card kind="ask" icon="question" heading={words.ask}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <fieldset className="special-questions" disabled={!open}>
          {questions.map((question, at) => (
            <OneQuestion
              key={at}
              question={question}
              choice={choices[at] ?? NOTHING}
              onChange={(choice) => setChoices(choices.with(at, choice))}
            />
          ))}
        </fieldset>
        {open && (
          <p className="special-bar">
            <button type="submit" className="button primary small" disabled={!complete}>
              {words.send}
            </button>
            <span className="hint">{complete ? words.sendHint : asking.question.missing}</span>
          </p>
        )}
      </form>
    </Card>
  );
}
