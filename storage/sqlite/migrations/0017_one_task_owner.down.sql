DROP INDEX tasks_id;
