/** The files of a project, beside conversations. Choosing one begins a message about it. */

import { useCallback } from "react";
import { text } from "../../text";
import { words } from "../../text.agents";
import { SelectField } from "../frame/Fields";
import { useFresh, useLaterApi } from "../frame/fresh";
import { useQuery, withQuery } from "../frame/query";
import { ScreenFrame } from "../frame/ScreenFrame";
import { ScreenLink } from "../frame/ScreenLink";
import { Trouble } from "../frame/Trouble";
import { goTo } from "../route";
import type { ScreenProps } from "../screens";
import "../../style/agents.css";
import { mentioned } from "./paths";
import { Tree } from "./Tree";

export default function Files({ listShown, onShowList }: ScreenProps) {
  const api = useLaterApi();
  const load = useCallback(() => api.projects(), [api]);
  const { value, error, again } = useFresh(load);
  const folders = value?.filter(({ exists }) => exists).map(({ project }) => project) ?? [];
  const project = useQuery("project") ?? folders[0] ?? null;
  return (
    <ScreenFrame heading={text.screens.files} lead={words.files.lead} listShown={listShown} onShowList={onShowList}>
      {error && <Trouble heading={words.missions.failed} error={error} onAgain={again} />}
      {value && project === null && <p className="hint">{words.files.noFolders}</p>}
      {project !== null && (
        <>
          <SelectField
            label={words.files.folder}
            value={project}
            options={folders.map((folder) => [folder, folder])}
            onChange={(chosen) => goTo(withQuery("/files", { project: chosen }), true)}
          />
          <Tree key={project} project={project} onChoose={(path) => goTo(withQuery("/", { project, text: mentioned("", path) }))} />
          <p className="screen-foot">
            <ScreenLink to={withQuery("/missions", { project })}>{text.screens.missions}</ScreenLink>
            <ScreenLink to={withQuery("/agents", { project })}>{text.screens.agents}</ScreenLink>
          </p>
        </>
      )}
    </ScreenFrame>
  );
}
