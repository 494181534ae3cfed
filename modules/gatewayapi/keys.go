package gatewayapi

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

const (
	maxScopes = 100
	// maxKeys is the number of keys that a user can have at a time, without revoked and expired ones.
	maxKeys = 100
	// maxNewKeys is the number of keys that may be made for one user within a day. Revoked and expired keys stay in the
	// store, and lists contain them: without this limit anybody could fill store and memory by making and revoking keys.
	maxNewKeys = 500
)

// keyView is the API's view of a key. It has no member for the raw key.
type keyView struct {
	ID             string          `json:"id"`
	OrganizationID string          `json:"org_id"`
	CreatedBy      string          `json:"created_by_user_id"`
	Name           string          `json:"name"`
	Prefix         string          `json:"key_prefix"`
	Scopes         []string        `json:"scopes"`
	CreatedAt      routes.Instant  `json:"created_at"`
	UserID         *string         `json:"user_id"`
	GroupName      *string         `json:"group_name"`
	AgentID        *string         `json:"agent_id"`
	ExpiresAt      *routes.Instant `json:"expires_at"`
	RevokedAt      *routes.Instant `json:"revoked_at"`
	Disabled       bool            `json:"disabled"`
	LastUsedAt     *routes.Instant `json:"last_used_at"` // to within some minutes
}

// newKeyView is a new key with the raw key, which is shown only this once.
type newKeyView struct {
	keyView
	Key string `json:"key"`
}

func viewKey(k storage.APIKey) keyView {
	return keyView{
		ID: k.ID, OrganizationID: k.OrganizationID, CreatedBy: k.CreatedBy, Name: k.Name, Prefix: k.Prefix, Scopes: routes.List(k.Scopes),
		CreatedAt: routes.Instant(k.CreatedAt), UserID: routes.Optional(k.UserID), GroupName: routes.Optional(k.GroupName),
		AgentID:   routes.Optional(k.AgentID),
		ExpiresAt: routes.OptionalInstant(k.ExpiresAt), RevokedAt: routes.OptionalInstant(k.RevokedAt), Disabled: k.Disabled,
		LastUsedAt: routes.OptionalInstant(k.UsedAt),
	}
}

func listKeys(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	keys, err := q.Core.Store.APIKeys(q.Context(), q.Organization())
	return views(keys, viewKey), err
}

func listOwnKeys(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	keys, err := q.Core.Store.UserAPIKeys(q.Context(), q.Organization(), q.Call.Caller.UserID)
	return views(keys, viewKey), err
}

func getKey(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	k, err := q.Core.Store.APIKey(q.Context(), q.Organization(), q.id())
	if err != nil {
		return nil, routes.Missing(err, errNoKey)
	}
	return viewKey(k), nil
}

// createKey makes a key of the organization, of one of its users, or of a group.
func createKey(q *request) (any, error) {
	if q.outlived() && q.Core.Approvals.MayDecide(q.Call.Party().Decider()) != nil {
		return nil, errKeyClient
	}
	k := storage.APIKey{CreatedAt: q.sharedNow()}
	if err := q.Read(false, func(o *validate.Object) {
		readKey(o, &k, false)
		k.UserID = o.UUID("user_id", validate.Nullable).Value
		k.GroupName = o.Text("group_name", validate.Text{Flags: validate.Nullable, Min: 1, Max: llmedit.MaxName}).Value
		if k.UserID != "" && k.GroupName != "" {
			o.Report(validate.ValueError, "Value error, give user_id or group_name, not both", "group_name")
		}
		if provisions(k.Scopes) && (k.UserID != "" || k.GroupName != "") {
			o.Report(validate.ValueError, msgProvisions, "scopes")
		}
		q.exists(o, "user_id", "user", k.UserID, func() error {
			_, err := q.Core.Store.User(q.Context(), q.Organization(), k.UserID)
			return err
		})
	}); err != nil {
		return nil, err
	}
	if err := q.Fresh(q.handler.now()); err != nil {
		return nil, err
	}
	return q.makeKey(k, validate.Problems{{Loc: []any{"body", "user_id"}, Msg: noSuch("user"), Type: validate.ValueError}})
}

// createOwnKey makes a key that stands for the caller.
func createOwnKey(q *request) (any, error) {
	k := storage.APIKey{CreatedAt: q.sharedNow(), UserID: q.Call.Caller.UserID}
	if err := q.Read(false, func(o *validate.Object) {
		if readKey(o, &k, true); provisions(k.Scopes) {
			o.Report(validate.ValueError, msgProvisions, "scopes")
		}
		k.AgentID = q.keyAgent(o)
	}); err != nil {
		return nil, err
	}
	if (slices.Contains(k.Scopes, apikey.ScopeMCP) || q.outlived()) && q.Core.Approvals.MayDecide(q.Call.Party().Decider()) != nil {
		return nil, errKeyClient
	}
	if err := q.Fresh(q.handler.now()); err != nil {
		return nil, err
	}
	return q.makeKey(k, errRevoked)
}

// outlived reports whether a key would outlive the login with the gateway, or the agent's credential, of which the caller's token
// came: a client that is logged out would go on with the key. In the console users make keys themselves.
func (q *request) outlived() bool {
	return q.Call.Caller.Login != "" && !q.Call.Caller.Console || q.Call.Caller.Credential != ""
}

// errKeyClient refuses a key for MCP servers to the token of an agent, which could otherwise make itself a key that its
// policies do not govern. It refuses every key to a client that logged in at the gateway, for a user or for itself: the key
// would outlive the login.
var errKeyClient = routes.Refused(gateway.Forbidden,
	"Keys with the scope mcp are made with a token of a client that the configuration names for it (approval_clients), never with an agent's; clients that log in at the gateway make no other keys either")

// keyAgent reads the agent that a key is made for. Only administrators may set one: it decides which policies govern
// the key.
func (q *request) keyAgent(o *validate.Object) string {
	id := o.UUID("agent_id", validate.Nullable).Value
	if id != "" && !q.May(routes.Admin) {
		o.Report(validate.ValueError, "Value error, only administrators make keys for an agent", "agent_id")
		return ""
	}
	q.exists(o, "agent_id", "agent", id, func() error {
		agent, err := q.Core.Store.Agent(q.Context(), q.Organization(), id)
		if of := agent.Application.Issuer; err == nil && of != q.Call.Caller.Issuer && (of != q.Core.AgentIssuer(q.Core.PublicURL) || q.Core.Authorization == nil) {
			return storage.ErrNotFound // its tokens are never the user's
		}
		return err
	})
	return id
}

// errRevoked refuses a caller who was revoked while the request was being processed.
var errRevoked = routes.Refused(gateway.Unauthorized, "The token is no longer good")

// readKey reads the fields that every key has.
func readKey(o *validate.Object, k *storage.APIKey, own bool) {
	k.Name = o.Name(validate.Required, llmedit.MaxName).Value
	k.Scopes = readScopes(o, validate.Nullable, own).Or([]string{apikey.ScopeLLM})
	k.ExpiresAt = readExpiry(o, k.CreatedAt).Value
}

// readScopes reads what a key is good for. own allows mcp, with which a key acts as its user at MCP servers.
func readScopes(o *validate.Object, flags validate.Flags, own bool) validate.Field[[]string] {
	scopes := o.Texts("scopes", validate.List{Flags: flags, Min: 1, Max: maxScopes, Hold: true}, validate.Text{Max: 255})
	for i, scope := range scopes.Value {
		if o.Wrong("scopes", i) {
			continue
		}
		s, err := apikey.ParseScopes([]string{scope})
		switch {
		case err != nil:
			o.Report(validate.ValueError, "Value error, a scope "+err.Error(), "scopes", i)
		case s.MCP && !own:
			o.Report(validate.ValueError, msgOwnMCP, "scopes", i)
		}
	}
	if _, err := apikey.ParseScopes(scopes.Value); errors.Is(err, apikey.ErrScopeAlone) {
		o.Report(validate.ValueError, "Value error, a key with the scope scim has no other", "scopes")
	}
	return scopes
}

// provisions reports whether scopes are those of a key for provisioning.
func provisions(scopes []string) bool { return slices.Contains(scopes, apikey.ScopeSCIM) }

// msgProvisions refuses the scope scim for a key that stands for somebody: who may provision is the organization's
// identity provider, and nobody's key becomes one by an edit.
const msgProvisions = "Value error, scim is only for new keys of the organization, without user_id and group_name"

// msgOwnMCP refuses the scope mcp in the hands of others than the key's user.
const msgOwnMCP = "Value error, mcp is only for keys that users make for themselves"

// readExpiry reads the end of a key, null for none.
func readExpiry(o *validate.Object, now time.Time) validate.Field[time.Time] {
	expires := o.Time("expires_at", validate.Nullable)
	if expires.Value = expires.Value.Truncate(time.Microsecond); expires.Set() && !o.Wrong("expires_at") && !expires.Value.After(now) {
		o.Report(validate.ValueError, "Value error, the time must be in the future", "expires_at")
	}
	return expires
}

// makeKey stores a key and shows it. unknown is the error when its user does not exist.
func (q *request) makeKey(k storage.APIKey, unknown error) (any, error) {
	id, err := q.newID()
	if err != nil {
		return nil, err
	}
	if k.UserID != "" {
		makingKeys.Lock()
		defer makingKeys.Unlock()
		if err := q.roomForKey(k.UserID); err != nil {
			return nil, err
		}
	}
	raw := apikey.New()
	k.ID, k.OrganizationID, k.CreatedBy, k.MadeWith = id, q.Organization(), q.Call.Caller.UserID, q.Call.Caller.Agent
	k.Prefix, k.HMAC = apikey.Prefix(raw), apikey.NewDigester(q.Core.Keyring).Digest(raw)
	if err := q.Core.Store.CreateAPIKey(q.Context(), k); err != nil {
		return nil, routes.Missing(err, unknown)
	}
	return newKeyView{viewKey(k), raw.Reveal()}, nil
}

// makingKeys is locked while a user's keys are counted and one more is made.
var makingKeys sync.Mutex

// roomForKey refuses a user's key beyond the bounds.
func (q *request) roomForKey(userID string) error {
	keys, err := q.Core.Store.UserAPIKeys(q.Context(), q.Organization(), userID)
	if err != nil {
		return err
	}
	now, live, young := q.now(), 0, 0
	for _, k := range keys {
		if now.Sub(k.CreatedAt) < 24*time.Hour {
			young++
		}
		if k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt)) {
			live++
		}
	}
	if live >= maxKeys {
		return routes.Refused(gateway.Conflict, "The user has "+strconv.Itoa(maxKeys)+" API keys that are not revoked, as many as may be; revoke one first")
	}
	if young >= maxNewKeys {
		return routes.Refused(gateway.Conflict, "There were "+strconv.Itoa(maxNewKeys)+" API keys made for the user within a day, as many as may be")
	}
	return nil
}

// updateKey changes what is sent of a key. The rules are those of its creation.
func updateKey(q *request) (any, error) {
	var name validate.Field[string]
	var scopes validate.Field[[]string]
	var expires validate.Field[time.Time]
	var disabled validate.Field[bool]
	if err := q.Read(false, func(o *validate.Object) {
		name, scopes, expires = o.Name(0, llmedit.MaxName), readScopes(o, 0, true), readExpiry(o, q.sharedNow())
		if disabled = o.Bool("disabled", 0); !name.Present && !scopes.Present && !expires.Present && !disabled.Present {
			o.Report(validate.Missing, "Field required: name, scopes, expires_at or disabled", "disabled")
		}
	}); err != nil {
		return nil, err
	}
	k, err := q.Core.Store.UpdateAPIKey(q.Context(), q.Organization(), q.id(), func(k *storage.APIKey) error {
		if i := slices.Index(scopes.Value, apikey.ScopeMCP); i >= 0 && !slices.Contains(k.Scopes, apikey.ScopeMCP) {
			return validate.Problems{{Loc: []any{"body", "scopes", i}, Msg: msgOwnMCP, Type: validate.ValueError}}
		}
		if scopes.Present && provisions(scopes.Value) != provisions(k.Scopes) {
			return validate.Problems{{Loc: []any{"body", "scopes"}, Msg: msgProvisions, Type: validate.ValueError}}
		}
		set(&k.Name, name)
		set(&k.Scopes, scopes)
		replace(&k.ExpiresAt, expires)
		set(&k.Disabled, disabled)
		return nil
	})
	if err != nil {
		return nil, routes.Missing(err, errNoKey)
	}
	return viewKey(k), nil
}

// These refuse a new secret for a key.
var (
	errRotateOwn     = routes.Refused(gateway.Forbidden, "With the scope mcp a key acts as its user at MCP servers: only the user may have its secret. Revoke it; the user makes another")
	errRotateRevoked = routes.Refused(gateway.Conflict, "The key is revoked, which is final; make another")
)

// errRotateScoped refuses a second key beside one that is counted by itself: together they would have the limit twice.
var errRotateScoped = routes.Refused(gateway.Conflict, "The key has a rate limit or budget of its own, which a second key beside it would escape; rotate it at once, without former_ends_at")

// errRotateEnds refuses a second key that would end with the former one, whose end it gets: a rotation whose answer was lost and
// that is made again has set that end already.
var errRotateEnds = routes.Refused(gateway.Conflict, "The key ends by then, and so would the second one; change its expires_at first, or rotate it at once, without former_ends_at")

// rotateKey gives a key a new secret, and ends the former one: at once, or at a time until which programs can change over. A
// key has one secret, so that a second key, which is the same but for its id, has the new one then.
func rotateKey(q *request) (any, error) {
	now := q.sharedNow()
	var ends validate.Field[time.Time]
	if err := q.Read(true, func(o *validate.Object) {
		ends = o.Time("former_ends_at", validate.Nullable)
		if ends.Value = ends.Value.Truncate(time.Microsecond); ends.Set() && !o.Wrong("former_ends_at") && !ends.Value.After(now) {
			o.Report(validate.ValueError, "Value error, the time must be in the future", "former_ends_at")
		}
	}); err != nil {
		return nil, err
	}
	if q.outlived() && q.Core.Approvals.MayDecide(q.Call.Party().Decider()) != nil {
		return nil, errKeyClient
	}
	if err := q.Fresh(q.handler.now()); err != nil {
		return nil, err
	}
	if ends.Set() {
		return q.succeedKey(ends.Value, now)
	}
	raw := apikey.New()
	k, err := q.Core.Store.UpdateAPIKey(q.Context(), q.Organization(), q.id(), func(k *storage.APIKey) error {
		if err := rotates(k); err != nil {
			return err
		}
		k.Prefix, k.HMAC = apikey.Prefix(raw), apikey.NewDigester(q.Core.Keyring).Digest(raw)
		return nil
	})
	if err != nil {
		return nil, routes.Missing(err, errNoKey)
	}
	return newKeyView{viewKey(k), raw.Reveal()}, nil
}

// rotates refuses a key that gets no other secret.
func rotates(k *storage.APIKey) error {
	switch {
	case !k.RevokedAt.IsZero():
		return errRotateRevoked
	case slices.Contains(k.Scopes, apikey.ScopeMCP):
		return errRotateOwn
	}
	return nil
}

// succeedKey makes a key like the one of the request, which ends at a time then. The new one is there before the former one is
// bounded: what fails between leaves both, and nobody without a key.
func (q *request) succeedKey(ends, now time.Time) (any, error) {
	former, err := q.Core.Store.APIKey(q.Context(), q.Organization(), q.id())
	if err != nil {
		return nil, routes.Missing(err, errNoKey)
	}
	if err := cmp.Or(rotates(&former), q.countedWithOthers(former.ID)); err != nil {
		return nil, err
	}
	if !former.ExpiresAt.IsZero() && !former.ExpiresAt.After(ends) {
		return nil, errRotateEnds
	}
	if q.Record != nil {
		q.Record.Detail["former_id"] = former.ID // its end changes; id is the second key's
	}
	next := former
	next.CreatedAt, next.UsedAt = now, time.Time{}
	made, err := q.makeKey(next, errRevoked)
	if err != nil {
		return nil, err
	}
	if _, err := q.Core.Store.UpdateAPIKey(q.Context(), q.Organization(), former.ID, func(k *storage.APIKey) error {
		if k.ExpiresAt.IsZero() || ends.Before(k.ExpiresAt) {
			k.ExpiresAt = ends
		}
		return nil
	}); err != nil {
		return nil, routes.Missing(err, errNoKey)
	}
	return made, nil
}

// countedWithOthers refuses a key that a rate limit or a budget names.
func (q *request) countedWithOthers(id string) error {
	limits, err := q.Core.Store.RateLimits(q.Context(), q.Organization())
	if err != nil {
		return err
	}
	budgets, err := q.Core.Store.Budgets(q.Context(), q.Organization())
	if err != nil {
		return err
	}
	own := func(s storage.Scope) bool { return s.Type == storage.ScopeAPIKey && s.ID == id }
	if slices.ContainsFunc(limits, func(l storage.RateLimit) bool { return own(l.Scope) }) || slices.ContainsFunc(budgets, func(b storage.Budget) bool { return own(b.Scope) }) {
		return errRotateScoped
	}
	return nil
}

type revokedKeyView struct {
	Revoked bool `json:"revoked"`
}

// revokeKey revokes a key, and answers after the revocation is durable (attack K08).
func revokeKey(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	if _, err := q.Core.Store.RevokeAPIKey(q.Context(), q.Organization(), q.id(), q.now()); err != nil {
		return nil, routes.Missing(err, errNoKey)
	}
	return revokedKeyView{true}, nil
}

func revokeOwnKey(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	if _, err := q.Core.Store.RevokeUserAPIKey(q.Context(), q.Organization(), q.Call.Caller.UserID, q.id(), q.now()); err != nil {
		return nil, routes.Missing(err, errNoKey)
	}
	return revokedKeyView{true}, nil
}
