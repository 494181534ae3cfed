DROP TABLE provisioned_members;
DROP TABLE provisioned_groups;
DROP TABLE provisioned_links;
DROP TABLE provisioned_users;
