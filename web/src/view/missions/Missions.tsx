/** Missions: the folders that are worked in, or the mission of one. */

import { useCallback } from "react";
import type { ProjectEntry } from "../../protocol/agents";
import { ago } from "../../measures";
import { text } from "../../text";
import { words } from "../../text.agents";
import { Icon } from "../controls/Icon";
import { useMinutes } from "../controls/now";
import { useFresh, useLaterApi } from "../frame/fresh";
import { useQuery, withQuery } from "../frame/query";
import { ScreenFrame } from "../frame/ScreenFrame";
import { ScreenLink } from "../frame/ScreenLink";
import { Trouble } from "../frame/Trouble";
import type { ScreenProps } from "../screens";
import { nameOf } from "../files/paths";
import { shortPath } from "../tools/say";
import "../../style/agents.css";
import { MissionPanel } from "./MissionPanel";

/** Conversations come and go slowly; a mission set elsewhere should still be seen. */
const REFRESH_MS = 10_000;

export default function Missions({ listShown, onShowList }: ScreenProps) {
  const project = useQuery("project");
  if (project === null) return <Folders listShown={listShown} onShowList={onShowList} />;
  return (
    <ScreenFrame heading={words.missions.of(nameOf(project))} listShown={listShown} onShowList={onShowList}>
      <p className="screen-foot">
        <ScreenLink to="/missions">← {words.missions.all}</ScreenLink>
        <ScreenLink to={withQuery("/files", { project })}>{words.missions.files}</ScreenLink>
        <ScreenLink to={withQuery("/agents", { project })}>{text.screens.agents}</ScreenLink>
        <ScreenLink to={withQuery("/", { project })}>{words.missions.fresh}</ScreenLink>
      </p>
      <p className="hint mono path">{project}</p>
      <MissionPanel key={project} project={project} />
    </ScreenFrame>
  );
}

function Folders({ listShown, onShowList }: Omit<ScreenProps, "rest">) {
  const api = useLaterApi();
  const load = useCallback(() => api.projects(), [api]);
  const { value, error, loading, again } = useFresh(load, REFRESH_MS);
  return (
    <ScreenFrame heading={text.screens.missions} lead={words.missions.lead} listShown={listShown} onShowList={onShowList}>
      {error && <Trouble heading={words.missions.failed} error={error} onAgain={again} />}
      {!value && loading && (
        <p className="hint" role="status">
          {words.missions.loading}
        </p>
      )}
      {value?.length === 0 && (
        <section className="card is-empty">
          <h2 className="card-heading">{words.missions.none}</h2>
          <p className="card-words">{words.missions.noneBody}</p>
        </section>
      )}
      {value && value.every(({ mission }) => mission === null) && <p className="hint">{words.missions.explain}</p>}
      {value && value.length > 0 && (
        <ul className="entries">
          {withMissionsFirst(value).map((folder) => (
            <FolderRow key={folder.project} folder={folder} />
          ))}
        </ul>
      )}
      <p className="screen-foot">
        <ScreenLink to="/agents">{text.screens.agents}</ScreenLink>
      </p>
    </ScreenFrame>
  );
}

function withMissionsFirst(folders: readonly ProjectEntry[]): ProjectEntry[] {
  return [...folders.filter(({ mission }) => mission !== null), ...folders.filter(({ mission }) => mission === null)];
}

function FolderRow({ folder }: { folder: ProjectEntry }) {
  const now = useMinutes();
  return (
    <li className="entry">
      <span className={folder.mission === null ? "entry-icon" : "entry-icon is-live"}>
        <Icon name={folder.mission === null ? "folder" : "steer"} />
      </span>
      <div className="entry-words">
        <p className="entry-title ellipsis">
          <ScreenLink to={withQuery("/missions", { project: folder.project })}>{folder.name}</ScreenLink>
        </p>
        <p className={folder.mission === null ? "hint" : "entry-command clamp"}>{folder.mission ?? words.missions.noMission}</p>
        <p className="hint ellipsis" title={folder.project}>
          {text.join(
            folder.home && words.missions.home,
            !folder.exists && words.missions.gone,
            words.missions.conversations(folder.conversations),
            folder.unfinished > 0 && words.missions.working(folder.unfinished),
            folder.waiting > 0 && words.missions.waits(folder.waiting),
            folder.updated_at !== null && ago(folder.updated_at, now),
            shortPath(folder.project, 3),
          )}
        </p>
      </div>
    </li>
  );
}
