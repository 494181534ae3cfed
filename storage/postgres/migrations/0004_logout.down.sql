ALTER TABLE users DROP COLUMN logged_out_at;
