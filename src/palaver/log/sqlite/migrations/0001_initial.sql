-- The first layout. A row of `segments` is one conversation's events of one commit; see docs/decisions/2026-11-15-log-layout.md.

CREATE TABLE store (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  epoch TEXT NOT NULL,
  position INTEGER NOT NULL          -- of the latest event
) STRICT;

CREATE TABLE conversations (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  head INTEGER NOT NULL,             -- seq of the latest event
  chain BLOB NOT NULL,               -- its value after that event
  settled INTEGER NOT NULL DEFAULT 0 -- compaction need not look before it again
) STRICT;

-- Beside `conversations`, so that a fragment moves a head without rewriting a row of the list.
CREATE TABLE listings (
  conversation INTEGER PRIMARY KEY,
  pos INTEGER NOT NULL,              -- of its latest change
  updated_at INTEGER NOT NULL,
  archived INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  waiting INTEGER NOT NULL,
  unfinished INTEGER NOT NULL,
  project TEXT,
  body BLOB NOT NULL                 -- the whole Listing as JSON
) STRICT;
CREATE INDEX listings_newest ON listings (updated_at, conversation, archived, project) WHERE deleted = 0;
CREATE INDEX listings_changed ON listings (pos);
CREATE INDEX listings_waiting ON listings (updated_at) WHERE waiting = 1;
CREATE INDEX listings_unfinished ON listings (conversation) WHERE unfinished = 1;

-- Numbered by position: commits only ever add at the end. The body comes last, so that the rest is read without it.
CREATE TABLE segments (
  pos INTEGER PRIMARY KEY,
  conversation INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  chain BLOB NOT NULL,               -- its value after `last`
  compacted INTEGER NOT NULL,
  last_pos INTEGER,                  -- of a compacted one; of any other it is pos + last - first
  "check" BLOB,                      -- of a compacted one; of any other the chain proves every byte
  runs BLOB,                         -- of a compacted one: where the positions of its lines jump, as JSON
  body BLOB NOT NULL                 -- newline-ended JSON lines
) STRICT;
CREATE UNIQUE INDEX segments_last ON segments (conversation, last);
CREATE INDEX segments_compacted ON segments (pos, last_pos) WHERE compacted = 1;

CREATE TABLE claims (
  conversation INTEGER NOT NULL,
  client_request_id TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY (conversation, client_request_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
  conversation INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  head BLOB NOT NULL
) STRICT;

CREATE TABLE messages (
  conversation INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (conversation, seq)
) STRICT;

CREATE TABLE documents (
  number INTEGER PRIMARY KEY,
  conversation INTEGER NOT NULL,
  message TEXT NOT NULL,
  seq INTEGER NOT NULL,
  role TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX documents_message ON documents (conversation, message);

-- The conversation's number is indexed like a word: a search in one conversation is an intersection, not a filter.
CREATE VIRTUAL TABLE words USING fts5(
  conversation, text, content='documents', content_rowid='number', tokenize='unicode61', prefix='2 3'
);
CREATE TRIGGER documents_added AFTER INSERT ON documents BEGIN
  INSERT INTO words (rowid, conversation, text) VALUES (new.number, new.conversation, new.text);
END;
CREATE TRIGGER documents_removed AFTER DELETE ON documents BEGIN
  INSERT INTO words (words, rowid, conversation, text) VALUES ('delete', old.number, old.conversation, old.text);
END;

CREATE TABLE blobs (
  id TEXT PRIMARY KEY,
  mime TEXT NOT NULL,
  size INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
