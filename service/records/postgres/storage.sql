-- The words of a passage are stored apart from its row, so that finding rows reads few pages. Rows
-- that exist already change when their values do, or when the index is built anew.

ALTER TABLE passage ALTER terms SET STORAGE EXTERNAL;
ALTER TABLE passage SET (toast_tuple_target = 128);
