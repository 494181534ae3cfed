ALTER TABLE llm_providers DROP COLUMN no_stream_options;
