CREATE TABLE api_keys (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL REFERENCES organizations (id),
    name            TEXT    NOT NULL,
    prefix          TEXT    NOT NULL,
    hmac            BLOB    NOT NULL UNIQUE,
    scopes          TEXT    NOT NULL,
    user_id         TEXT, -- null: of the organization or of a group
    group_name      TEXT    NOT NULL,
    created_by      TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    revoked_at      INTEGER NOT NULL,
    disabled        INTEGER NOT NULL,
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id)
) STRICT;
CREATE INDEX api_keys_created ON api_keys (organization_id, created_at DESC, id DESC);
CREATE INDEX api_keys_user ON api_keys (organization_id, user_id, created_at DESC, id DESC);

-- What a scope names may have gone. Of scope_id and scope_value one at least is ''.
CREATE TABLE rate_limits (
    id                  TEXT    NOT NULL PRIMARY KEY,
    organization_id     TEXT    NOT NULL REFERENCES organizations (id),
    name                TEXT    NOT NULL,
    name_key            TEXT    NOT NULL,
    scope_type          TEXT    NOT NULL,
    scope_id            TEXT    NOT NULL,
    scope_value         TEXT    NOT NULL,
    traffic_type        TEXT    NOT NULL,
    enabled             INTEGER NOT NULL,
    requests_per_minute INTEGER,
    tokens_per_minute   INTEGER,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX rate_limits_scope ON rate_limits (organization_id, traffic_type, scope_type, scope_id, scope_value);
CREATE INDEX rate_limits_name ON rate_limits (organization_id, name_key, id);

CREATE TABLE llm_providers (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL REFERENCES organizations (id),
    name            TEXT    NOT NULL,
    name_key        TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    base_url        TEXT    NOT NULL,
    sealed_secret   BLOB,
    timeouts        TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    UNIQUE (organization_id, name_key)
) STRICT;

CREATE TABLE model_mappings (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL REFERENCES organizations (id),
    alias           TEXT    NOT NULL,
    description     TEXT    NOT NULL,
    targets         TEXT    NOT NULL,
    fallbacks       TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX model_mappings_alias ON model_mappings (organization_id, alias);

CREATE TABLE smart_models (
    id                         TEXT    NOT NULL PRIMARY KEY,
    organization_id            TEXT    NOT NULL REFERENCES organizations (id),
    alias                      TEXT    NOT NULL,
    description                TEXT    NOT NULL,
    enabled                    INTEGER NOT NULL,
    determiner_alias           TEXT    NOT NULL,
    slots                      TEXT    NOT NULL,
    breakpoints                TEXT    NOT NULL,
    determiner_input_max_chars INTEGER NOT NULL,
    default_slot               INTEGER NOT NULL,
    sticky                     INTEGER NOT NULL,
    created_at                 INTEGER NOT NULL,
    updated_at                 INTEGER NOT NULL
) STRICT;
CREATE INDEX smart_models_alias ON smart_models (organization_id, alias);

-- The aliases of mappings and smart models again: the primary key is what keeps two from having the same.
CREATE TABLE model_aliases (
    organization_id TEXT    NOT NULL,
    model_alias     TEXT    NOT NULL,
    owner_id        TEXT    NOT NULL,
    smart           INTEGER NOT NULL,
    PRIMARY KEY (organization_id, model_alias)
) STRICT;
CREATE UNIQUE INDEX model_aliases_owner ON model_aliases (organization_id, owner_id);

-- What mappings and smart models refer to again. A target may be of the configuration.
CREATE TABLE model_references (
    organization_id TEXT    NOT NULL,
    kind            TEXT    NOT NULL, -- provider or alias
    target          TEXT    NOT NULL,
    owner_id        TEXT    NOT NULL,
    PRIMARY KEY (organization_id, kind, target, owner_id)
) STRICT;
CREATE INDEX model_references_owner ON model_references (organization_id, owner_id);

-- Usage refers to nothing: it outlives what it tells of.
CREATE TABLE usage_hours (
    organization_id TEXT    NOT NULL,
    hour            INTEGER NOT NULL,
    user_id         TEXT    NOT NULL,
    api_key_id      TEXT    NOT NULL,
    agent_id        TEXT    NOT NULL,
    model_alias     TEXT    NOT NULL,
    model           TEXT    NOT NULL,
    requests        INTEGER NOT NULL,
    input_tokens    INTEGER NOT NULL,
    output_tokens   INTEGER NOT NULL,
    cached_tokens   INTEGER NOT NULL,
    cost            INTEGER NOT NULL,
    PRIMARY KEY (organization_id, hour, user_id, api_key_id, agent_id, model_alias, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_batches (
    node   TEXT    NOT NULL PRIMARY KEY,
    number INTEGER NOT NULL -- of the last batch that was added
) STRICT;

CREATE TABLE budgets (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL REFERENCES organizations (id),
    name            TEXT    NOT NULL,
    name_key        TEXT    NOT NULL,
    scope_type      TEXT    NOT NULL,
    scope_id        TEXT    NOT NULL,
    scope_value     TEXT    NOT NULL,
    period          TEXT    NOT NULL,
    amount          INTEGER NOT NULL,
    alert_percent   INTEGER NOT NULL,
    hard_stop       INTEGER NOT NULL,
    enabled         INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    UNIQUE (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX budgets_scope ON budgets (organization_id, period, scope_type, scope_id, scope_value);
CREATE INDEX budgets_name ON budgets (organization_id, name_key, id);

CREATE TABLE budget_spends (
    organization_id TEXT    NOT NULL,
    budget_id       TEXT    NOT NULL,
    start           INTEGER NOT NULL,
    subject         TEXT    NOT NULL,
    cost            INTEGER NOT NULL,
    PRIMARY KEY (organization_id, budget_id, start, subject),
    FOREIGN KEY (organization_id, budget_id) REFERENCES budgets (organization_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
