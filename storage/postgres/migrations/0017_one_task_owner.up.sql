-- oldest writer: 3
-- Of an id that a server gave twice, the newest creation stays: the task is one owner's alone.
DELETE FROM tasks WHERE EXISTS (SELECT 1 FROM tasks AS newer
    WHERE newer.organization_id = tasks.organization_id AND newer.server_id = tasks.server_id AND newer.digest = tasks.digest
        AND (newer.created_at, newer.user_id, newer.agent) > (tasks.created_at, tasks.user_id, tasks.agent));
CREATE UNIQUE INDEX tasks_id ON tasks (organization_id, server_id, digest);
