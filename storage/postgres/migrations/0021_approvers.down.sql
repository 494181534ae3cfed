DROP TABLE announcements;
DROP TABLE session_facts;
DROP INDEX approvals_foreign;
ALTER TABLE approvals DROP COLUMN approvers;
