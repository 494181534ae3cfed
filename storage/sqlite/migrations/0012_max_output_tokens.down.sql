ALTER TABLE model_mappings DROP COLUMN max_output_tokens;
