-- oldest writer: 3
ALTER TABLE model_mappings ADD COLUMN max_output_tokens BIGINT NOT NULL DEFAULT 0;
