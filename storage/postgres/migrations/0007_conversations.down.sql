DROP TABLE conversations;
