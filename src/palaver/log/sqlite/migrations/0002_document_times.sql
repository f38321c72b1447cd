-- When a text was said, so that what is recalled can be weighed by its age. Texts from before this layout have 0.
ALTER TABLE documents ADD COLUMN ts INTEGER NOT NULL DEFAULT 0;
