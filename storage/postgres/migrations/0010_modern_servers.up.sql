-- oldest writer: 3
ALTER TABLE servers ADD COLUMN modern INTEGER NOT NULL DEFAULT 0;
