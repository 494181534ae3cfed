DROP INDEX users_email_key;
DROP INDEX users_subject_key;
DROP TABLE provisioned_members;
DROP TABLE provisioned_groups;
DROP TABLE provisioned_links;
DROP TABLE provisioned_users;
