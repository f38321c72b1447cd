-- Every turn as a run of its own: found by its conversation, its project, and the run that it works for. Each index ends
-- with the row's number, which is the order of the lists. Turns that ended before this layout are not in it.
CREATE TABLE runs (
  number INTEGER PRIMARY KEY,
  run TEXT NOT NULL UNIQUE,
  conversation INTEGER NOT NULL,
  project TEXT,
  parent TEXT,
  body BLOB NOT NULL                 -- the whole Run as JSON
) STRICT;
CREATE INDEX runs_of_conversation ON runs (conversation);
CREATE INDEX runs_of_project ON runs (project) WHERE project IS NOT NULL;
CREATE INDEX runs_of_parent ON runs (parent) WHERE parent IS NOT NULL;

-- Subagents' conversations are listed below the one they work for. Nothing before this layout is one.
ALTER TABLE listings ADD COLUMN child INTEGER NOT NULL DEFAULT 0;
ALTER TABLE listings ADD COLUMN root TEXT;
DROP INDEX listings_newest;
CREATE INDEX listings_newest ON listings (updated_at, conversation, archived, project, child) WHERE deleted = 0;
CREATE INDEX listings_root ON listings (root) WHERE root IS NOT NULL AND deleted = 0;
