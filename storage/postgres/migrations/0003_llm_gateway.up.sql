-- oldest writer: 3
CREATE TABLE api_keys (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    name            TEXT COLLATE "C" NOT NULL,
    prefix          TEXT COLLATE "C" NOT NULL,
    hmac            BYTEA            NOT NULL CONSTRAINT api_keys_hmac UNIQUE,
    scopes          TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C", -- null: of the organization or of a group
    group_name      TEXT COLLATE "C" NOT NULL,
    created_by      TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT           NOT NULL,
    expires_at      BIGINT           NOT NULL,
    revoked_at      BIGINT           NOT NULL,
    disabled        SMALLINT         NOT NULL,
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id)
);
CREATE INDEX api_keys_created ON api_keys (organization_id, created_at DESC, id DESC);
CREATE INDEX api_keys_user ON api_keys (organization_id, user_id, created_at DESC, id DESC);

-- What a scope names may have gone. Of scope_id and scope_value one at least is ''.
CREATE TABLE rate_limits (
    id                  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id     TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    name                TEXT COLLATE "C" NOT NULL,
    name_key            TEXT COLLATE "C" NOT NULL,
    scope_type          TEXT COLLATE "C" NOT NULL,
    scope_id            TEXT COLLATE "C" NOT NULL,
    scope_value         TEXT COLLATE "C" NOT NULL,
    traffic_type        TEXT COLLATE "C" NOT NULL,
    enabled             SMALLINT         NOT NULL,
    requests_per_minute BIGINT,
    tokens_per_minute   BIGINT,
    created_at          BIGINT           NOT NULL,
    updated_at          BIGINT           NOT NULL
);
CREATE UNIQUE INDEX rate_limits_scope ON rate_limits (organization_id, traffic_type, scope_type, scope_id, scope_value);
CREATE INDEX rate_limits_name ON rate_limits (organization_id, name_key, id);

CREATE TABLE llm_providers (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    name            TEXT COLLATE "C" NOT NULL,
    name_key        TEXT COLLATE "C" NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL,
    base_url        TEXT COLLATE "C" NOT NULL,
    sealed_secret   BYTEA,
    timeouts        TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT           NOT NULL,
    updated_at      BIGINT           NOT NULL,
    CONSTRAINT llm_providers_name UNIQUE (organization_id, name_key)
);

CREATE TABLE model_mappings (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    alias           TEXT COLLATE "C" NOT NULL,
    description     TEXT COLLATE "C" NOT NULL,
    targets         TEXT COLLATE "C" NOT NULL,
    fallbacks       TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT           NOT NULL,
    updated_at      BIGINT           NOT NULL
);
CREATE INDEX model_mappings_alias ON model_mappings (organization_id, alias);

CREATE TABLE smart_models (
    id                         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id            TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    alias                      TEXT COLLATE "C" NOT NULL,
    description                TEXT COLLATE "C" NOT NULL,
    enabled                    SMALLINT         NOT NULL,
    determiner_alias           TEXT COLLATE "C" NOT NULL,
    slots                      TEXT COLLATE "C" NOT NULL,
    breakpoints                TEXT COLLATE "C" NOT NULL,
    determiner_input_max_chars BIGINT           NOT NULL,
    default_slot               BIGINT           NOT NULL,
    sticky                     SMALLINT         NOT NULL,
    created_at                 BIGINT           NOT NULL,
    updated_at                 BIGINT           NOT NULL
);
CREATE INDEX smart_models_alias ON smart_models (organization_id, alias);

-- The aliases of mappings and smart models again: the primary key is what keeps two from having the same.
CREATE TABLE model_aliases (
    organization_id TEXT COLLATE "C" NOT NULL,
    model_alias     TEXT COLLATE "C" NOT NULL,
    owner_id        TEXT COLLATE "C" NOT NULL,
    smart           SMALLINT         NOT NULL,
    PRIMARY KEY (organization_id, model_alias)
);
CREATE UNIQUE INDEX model_aliases_id ON model_aliases (organization_id, owner_id);

-- What mappings and smart models refer to again. A target may be of the configuration.
CREATE TABLE model_references (
    organization_id TEXT COLLATE "C" NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL, -- provider or alias
    target          TEXT COLLATE "C" NOT NULL,
    owner_id        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (organization_id, kind, target, owner_id)
);
CREATE INDEX model_references_owner ON model_references (organization_id, owner_id);

-- Usage refers to nothing: it outlives what it tells of.
CREATE TABLE usage_hours (
    organization_id TEXT COLLATE "C" NOT NULL,
    hour            BIGINT           NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    api_key_id      TEXT COLLATE "C" NOT NULL,
    agent_id        TEXT COLLATE "C" NOT NULL,
    model_alias     TEXT COLLATE "C" NOT NULL,
    model           TEXT COLLATE "C" NOT NULL,
    requests        BIGINT           NOT NULL,
    input_tokens    BIGINT           NOT NULL,
    output_tokens   BIGINT           NOT NULL,
    cached_tokens   BIGINT           NOT NULL,
    cost            BIGINT           NOT NULL,
    PRIMARY KEY (organization_id, hour, user_id, api_key_id, agent_id, model_alias, model)
);

CREATE TABLE usage_batches (
    node   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    number BIGINT           NOT NULL -- of the last batch that was added
);

CREATE TABLE budgets (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    name            TEXT COLLATE "C" NOT NULL,
    name_key        TEXT COLLATE "C" NOT NULL,
    scope_type      TEXT COLLATE "C" NOT NULL,
    scope_id        TEXT COLLATE "C" NOT NULL,
    scope_value     TEXT COLLATE "C" NOT NULL,
    period          TEXT COLLATE "C" NOT NULL,
    amount          BIGINT           NOT NULL,
    alert_percent   BIGINT           NOT NULL,
    hard_stop       SMALLINT         NOT NULL,
    enabled         SMALLINT         NOT NULL,
    created_at      BIGINT           NOT NULL,
    updated_at      BIGINT           NOT NULL,
    CONSTRAINT budgets_id UNIQUE (organization_id, id)
);
CREATE UNIQUE INDEX budgets_scope ON budgets (organization_id, period, scope_type, scope_id, scope_value);
CREATE INDEX budgets_name ON budgets (organization_id, name_key, id);

CREATE TABLE budget_spends (
    organization_id TEXT COLLATE "C" NOT NULL,
    budget_id       TEXT COLLATE "C" NOT NULL,
    start           BIGINT           NOT NULL,
    subject         TEXT COLLATE "C" NOT NULL,
    cost            BIGINT           NOT NULL,
    PRIMARY KEY (organization_id, budget_id, start, subject),
    FOREIGN KEY (organization_id, budget_id) REFERENCES budgets (organization_id, id) ON DELETE CASCADE
);

-- The second wall, as in 0001.
DO $$
DECLARE t TEXT;
BEGIN
    FOREACH t IN ARRAY ARRAY['api_keys', 'rate_limits', 'llm_providers', 'model_mappings', 'smart_models', 'model_aliases', 'model_references', 'usage_hours', 'budgets', 'budget_spends'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format($p$CREATE POLICY organization ON %I USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'))$p$, t);
    END LOOP;
END $$;
