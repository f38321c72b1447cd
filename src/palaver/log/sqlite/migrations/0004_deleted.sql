-- Deleted conversations by their number: after a start, those whose words are still in the index of the search are found
-- without looking at every row there is.
CREATE INDEX listings_deleted ON listings (conversation) WHERE deleted = 1;
