ALTER TABLE model_mappings ADD COLUMN max_output_tokens INTEGER NOT NULL DEFAULT 0;
