ALTER TABLE servers DROP COLUMN modern;
