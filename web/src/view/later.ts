/**
 * Parts of the page that are not needed for its first picture: fetched when the browser has nothing else to do, or at once
 * when they are wanted earlier. What takes the next keystroke is not among them: whoever presses a key goes on typing.
 */

import { createElement, lazy, use, type ComponentProps, type FunctionComponent, type ReactNode } from "react";
import type { Store } from "../model/store";
import { goTo } from "./route";
import { screens } from "./screens";

const parts = {
  announced: () => import("./announcer/Announced"),
  notices: () => import("./notices/NoticeLines"),
  copy: () => import("./connection/CopyBanner"),
  activity: () => import("./dock/Activity"),
  requests: () => import("./dock/RequestDock"),
  queue: () => import("./dock/QueueStrip"),
  plan: () => import("./dock/PlanLine"),
  trust: () => import("./trust/TrustLine"),
  processes: () => import("./dock/ProcessStrip"),
  subagents: () => import("./subagents/SubagentStrip"),
  work: () => import("./subagents/WorkRow"),
  callback: () => import("./exchanges/Callback"),
  error: () => import("./transcript/ErrorCard"),
  turns: () => import("./transcript/TurnRows"),
  find: () => import("./find/Find"),
  finish: () => import("./tools/FinishCard"),
  special: () => import("./special/SpecialBlock"),
  notifier: () => import("./waiting/Notifier"),
  changes: () => import("./diff/Changes"),
  compressed: () => import("./transcript/CompressedBody"),
  sources: () => import("./transcript/Sources"),
  citations: () => import("./transcript/Citations"),
  meter: () => import("./header/Meter"),
  meterBox: () => import("./header/MeterBox"),
  files: () => import("./diff/FilesDialog"),
  picture: () => import("./files/KeptPicture"),
  settings: () => import("./settings/Settings"),
  completion: () => import("./composer/Completion"),
  confirmFull: () => import("./composer/ConfirmFull"),
  toolBody: () => import("./tools/ToolBody"),
  editMessage: () => import("./transcript/EditMessage"),
  keys: () => import("./palette/KeyHelp"),
  palette: () => import("./palette/PaletteList"),
  home: () => import("./home/Home"),
  mission: () => import("./missions/MissionDialog"),
  tree: () => import("./files/TreeDialog"),
  speaker: () => import("./speech/Speaker"),
  share: () => import("./share/Share"),
  hits: () => import("./list/SearchHits"),
  removal: () => import("./list/ConfirmRemoval"),
  notFound: () => import("./home/NotFound"),
};

export const Announced = lazy(parts.announced);
export const NoticeLines = lazy(parts.notices);
export const CopyBanner = lazy(parts.copy);
export const Activity = lazy(parts.activity);
export const RequestDock = lazy(parts.requests);
export const QueueStrip = lazy(parts.queue);
export const PlanLine = lazy(parts.plan);
export const StopAndHold = lazy(() => parts.queue().then((part) => ({ default: part.StopAndHold })));
export const TrustLine = lazy(parts.trust);
export const ProcessStrip = lazy(parts.processes);
export const SubagentStrip = lazy(parts.subagents);
export const WorkRow = lazy(parts.work);
export const ErrorCard = lazy(parts.error);
export const Find = lazy(parts.find);
export const FinishCard = lazy(parts.finish);
export const SpecialBlock = lazy(parts.special);
export const Callback = lazy(parts.callback);
export const Notifier = lazy(parts.notifier);
export const Changes = lazy(() => parts.changes().then((part) => ({ default: part.Changes })));
export const Stat = lazy(() => parts.changes().then((part) => ({ default: part.Stat })));
export const CompressedBody = lazy(parts.compressed);
export const Sources = lazy(parts.sources);
export const Citations = lazy(parts.citations);
export const Meter = lazy(parts.meter);
export const MeterBox = lazy(parts.meterBox);
export const KeptPicture = lazy(parts.picture);
export const FilesDialog = lazy(parts.files);
export const Settings = lazy(parts.settings);
export const Completion = lazy(parts.completion);
export const ConfirmFull = lazy(parts.confirmFull);
export const ToolBody = lazy(parts.toolBody);
export const EditMessage = lazy(parts.editMessage);
export const KeyHelp = lazy(parts.keys);
export const PaletteList = lazy(parts.palette);
export const Home = lazy(parts.home);
export const MissionDialog = lazy(parts.mission);
export const TreeDialog = lazy(parts.tree);
export const NotFound = lazy(parts.notFound);
export const SearchHits = lazy(parts.hits);
export const ConfirmRemoval = lazy(parts.removal);
export const Share = lazy(parts.share);
export const Speaker = lazy(parts.speaker);
export const SignIn = lazy(() => import("./signin/SignIn"));

type TurnRows = typeof import("./transcript/TurnRows");

// Most conversations have these rows: they come beside the data, and a transcript is not drawn without them.
const turns: Promise<TurnRows | null> = parts.turns().then(
  (part) => (known = part),
  () => null,
);
let known: TurnRows | null = null;

/** Suspends until they are there; null when they could not be fetched. */
export function useTurnRows(): TurnRows | null {
  return known ?? use(turns);
}

function turnRow<Name extends keyof TurnRows>(name: Name) {
  return (props: ComponentProps<TurnRows[Name]>): ReactNode => {
    const part = useTurnRows();
    return part && createElement<object>(part[name] as FunctionComponent, props);
  };
}

export const EventRow = turnRow("EventRow");
export const TurnSummary = turnRow("TurnSummary");
export const Interrupted = turnRow("Interrupted");
export const Note = turnRow("Note");
export const KnowledgeLine = turnRow("KnowledgeLine");

// By then the first picture is drawn. The page is idle before that too, but only until what it shows comes in.
const FIRST_PICTURE_MS = 1500;

/** What nobody waits for: done once nothing else is to be done. */
function unhurried(run: () => void): void {
  const whenIdle = (): void => {
    if ("requestIdleCallback" in window) requestIdleCallback(run, { timeout: FIRST_PICTURE_MS });
    else run(); // Safari has none.
  };
  setTimeout(whenIdle, FIRST_PICTURE_MS);
}

/** Fetch the rest while nothing happens, so that it is there when it is wanted, connection or not. */
export function fetchTheRest(): void {
  unhurried(() => {
    // A part that cannot be fetched now is fetched when it is wanted; failing there is visible, failing here is not news.
    for (const part of Object.values(parts)) part().catch(() => undefined);
    for (const { load } of Object.values(screens)) load().catch(() => undefined);
  });
}

/** Keeps what is seen for when there is no server. */
export function keepACopy(store: Store): void {
  unhurried(() => void import("../offline/keeper").then(({ keep }) => keep(store, goTo)).catch(() => undefined));
}
