/** Questions of an agent: choose one or several, or answer in your own words. Nothing is chosen for you. */

import { useId, useState } from "react";
import { foldedText } from "../../model/approvaltext";
import type { Question } from "../../protocol/events.gen";
import { asking } from "../../text.asking";
import { Icon } from "../controls/Icon";
import { Expiry } from "./Approval";
import { Reader } from "./Exact";
import type { RequestProps } from "./RequestCard";

export interface Choice {
  selected: string[];
  /** null: not answering in own words. */
  own: string | null;
}

export const NOTHING: Choice = { selected: [], own: null };

export function isAnswered({ selected, own }: Choice): boolean {
  return selected.length > 0 || (own !== null && own.trim() !== "");
}

/** A question without options is answered in one's own words. */
export function firstChoices(questions: readonly Question[]): Choice[] {
  return questions.map((question) => (question.options.length === 0 ? { selected: [], own: "" } : NOTHING));
}

export function QuestionCard({ request, agent, hearing, reply, read, onReading }: RequestProps) {
  const { questions } = request;
  const [choices, setChoices] = useState(() => firstChoices(questions));
  const complete = questions.every((_, at) => isAnswered(choices[at] ?? NOTHING));

  const send = (): void => {
    if (!complete) return;
    const answers = choices.map(({ selected, own }, at) => ({
      question_index: at,
      selected,
      custom_text: own !== null && own.trim() !== "" ? own.trim() : null,
    }));
    reply({ answers });
  };

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <h2 className="request-heading">
        <Icon name="question" />
        <span>{asking.question.asks(agent)}</span>
        {request.expires_at !== null && <Expiry at={request.expires_at} />}
      </h2>
      <Reader label={asking.question.label} onReading={onReading}>
        {questions.map((question, at) => (
          <OneQuestion
            key={at}
            question={question}
            choice={choices[at] ?? NOTHING}
            onChange={(choice) => setChoices(choices.with(at, choice))}
          />
        ))}
      </Reader>
      <div className="request-bar">
        <button
          type="submit"
          className="button primary"
          disabled={!complete || hearing !== "open"}
          aria-disabled={!read || undefined}
          title={read ? undefined : asking.approval.unread}
        >
          {asking.question.send}
        </button>
        <button
          type="button"
          className="button quiet"
          title={asking.question.skipHint}
          disabled={hearing !== "open"}
          onClick={() => reply({ verdict: "deny" })}
        >
          {asking.question.skip}
        </button>
        {!complete && <span className="hint">{asking.question.missing}</span>}
      </div>
    </form>
  );
}

interface OneQuestionProps {
  question: Question;
  choice: Choice;
  onChange: (choice: Choice) => void;
}

export function OneQuestion({ question, choice, onChange }: OneQuestionProps) {
  const name = useId();
  const many = question.multi_select;
  const type = many ? "checkbox" : "radio";
  const toggle = (label: string, on: boolean): void => {
    if (many) onChange({ ...choice, selected: on ? [...choice.selected, label] : choice.selected.filter((one) => one !== label) });
    else onChange({ selected: [label], own: null });
  };
  return (
    <fieldset className="question">
      <legend>
        {question.header && <span className="question-header">{foldedText(question.header)}</span>}
        <span className="question-words">{foldedText(question.question)}</span>
        {many && <span className="hint"> {asking.question.many}</span>}
      </legend>
      {question.options.map((option) => (
        <label key={option.label} className="option">
          <input
            type={type}
            name={name}
            checked={choice.selected.includes(option.label)}
            onChange={(event) => toggle(option.label, event.target.checked)}
          />
          <span>
            <span className="option-label">{foldedText(option.label)}</span>
            {option.description && <span className="option-more">{foldedText(option.description)}</span>}
            {option.preview && <span className="option-more mono">{foldedText(option.preview)}</span>}
          </span>
        </label>
      ))}
      {question.options.length > 0 && (
        <label className="option">
          <input
            type={type}
            name={name}
            checked={choice.own !== null}
            onChange={(event) =>
              onChange({ selected: many ? choice.selected : [], own: event.target.checked ? (choice.own ?? "") : null })
            }
          />
          <span className="option-label">{asking.question.other}</span>
        </label>
      )}
      {choice.own !== null && (
        <input
          className="field"
          // Whoever chose to write goes on writing; a question that came by itself takes no focus.
          autoFocus={question.options.length > 0}
          aria-label={asking.question.otherLabel}
          placeholder={asking.question.otherLabel}
          value={choice.own}
          onChange={(event) => onChange({ ...choice, own: event.target.value })}
        />
      )}
    </fieldset>
  );
}
