/** Rows that are not in every conversation, in one file that is fetched beside the first data. */

export { default as TurnSummary } from "../tools/TurnSummary";
export { default as EventRow } from "./Events";
export { KnowledgeLine } from "./Knowledge";
export { Interrupted, Note } from "./MarkRows";
