-- oldest writer: 3
ALTER TABLE llm_providers ADD COLUMN no_stream_options SMALLINT NOT NULL DEFAULT 0;
