DROP TABLE holds;
DROP INDEX tasks_id;
