ALTER TABLE llm_providers ADD COLUMN no_stream_options INTEGER NOT NULL DEFAULT 0;
