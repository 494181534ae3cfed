// Package serveredit reads what administrators write about MCP servers: names in paths, and the OAuth client that the
// organization has at a third party.
package serveredit

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// These are the bounds of OAuth clients that administrators enter. A client_id may be the address of a metadata
// document.
const (
	maxClientID     = 2048
	maxClientSecret = 4096
)

// ClientText is the pattern of client ids and secrets (RFC 6749 appendix A.1, A.2).
var ClientText = regexp.MustCompile(`\A[\x20-\x7e]+\z`)

// Slug reads a slug that an administrator chose.
func Slug(o *validate.Object, flags validate.Flags) validate.Field[string] {
	field := o.Text("slug", validate.Text{Flags: flags, Min: 1, Max: slug.MaxLength})
	switch {
	case field.Value == "":
	case !slug.Valid(field.Value):
		o.Report(validate.StringPatternMismatch, "String should match pattern '"+slug.Pattern+"'", "slug")
	case slug.Reserved(field.Value):
		o.Report(validate.ValueError, "Value error, this slug is reserved", "slug")
	}
	return field
}

// ClientID reads the id of a client that an administrator entered.
func ClientID(o *validate.Object) validate.Field[string] {
	return o.Text("client_id", validate.Text{Flags: validate.Nullable, Min: 1, Max: maxClientID, Pattern: ClientText})
}

// clientSecret reads a client secret. The placeholder that is shown instead of a secret is refused (attack B11).
func clientSecret(o *validate.Object) validate.Field[seal.Secret] {
	field := o.Secret("client_secret", validate.Text{Flags: validate.Nullable, Min: 1, Max: maxClientSecret, Pattern: ClientText})
	if LooksObfuscated(field.Value.Reveal()) {
		o.Report(validate.ValueError, MsgObfuscated, "client_secret")
	}
	return field
}

// ClientProof reads what proves a client: its secret, or its private key in the form in which it is sealed. Clients write null
// for the one that they leave out.
func ClientProof(o *validate.Object) (given validate.Field[seal.Secret], isKey bool) {
	secret, key := clientSecret(o), clientKey(o)
	switch {
	case key.Set() && secret.Set():
		o.Report(validate.ValueError, "Value error, a client has a secret or a key", "client_private_key")
	case key.Set():
		return key, true
	case !secret.Present:
		return key, false
	}
	return secret, false
}

func clientKey(o *validate.Object) validate.Field[seal.Secret] {
	field := o.Secret("client_private_key", validate.Text{Flags: validate.Nullable, Min: 1, Max: oauth.MaxSigningKey})
	if field.Value.Empty() {
		return field
	}
	key, err := oauth.ReadSigningKey(field.Value)
	if err == nil {
		field.Value, err = key.Encode()
	}
	if err != nil {
		field.Value = seal.Secret{}
		o.Report(validate.ValueError, "Value error, "+err.Error(), "client_private_key")
	}
	return field
}

// CheckProof refuses what a client of an entry's servers cannot prove itself by. A key works only where no user connects an
// account: what is kept to revoke their tokens has room for a secret alone.
func CheckProof(e storage.DirectoryEntry, given, isKey bool) error {
	problem := func(name, reason string) error {
		return validate.Problems{{Loc: []any{"body", name}, Type: validate.ValueError, Msg: "Value error, " + reason}}
	}
	method := e.Options.AuthMethod
	switch {
	case !given:
	case isKey && !e.Provider.Obtained():
		return problem("client_private_key", "only servers whose tokens the gateway gets without its users take a key")
	case isKey && method != "" && method != oauth.AuthPrivateKey:
		return problem("client_private_key", "token_endpoint_auth_method of the directory entry is "+method)
	case !isKey && method == oauth.AuthPrivateKey:
		return problem("client_secret", "token_endpoint_auth_method of the directory entry is private_key_jwt: give client_private_key")
	}
	return nil
}

// MsgObfuscated is the problem of a value that was shown in place of another.
const MsgObfuscated = "Value error, give the actual value, not an obfuscated one"

// Obfuscated returns the shown form of a client_id: enough to recognize it by.
func Obfuscated(id string) string {
	switch {
	case id == "":
		return ""
	case len(id) <= 8:
		return "****"
	}
	return id[:2] + "..." + id[len(id)-2:]
}

// LooksObfuscated reports whether a value is one that was shown in place of another.
func LooksObfuscated(value string) bool {
	return value != "" && (strings.Contains(value, "...") || strings.Trim(value, "*") == "")
}

// UsesOAuth reports whether users connect to servers of an entry by OAuth.
func UsesOAuth(e storage.DirectoryEntry) bool {
	return e.Provider == storage.ProviderOAuth2 && e.RequiresAuth
}

// Lifecycle returns the status of a server: pending is for servers whose OAuth client an administrator must supply.
func Lifecycle(e storage.DirectoryEntry, hasID, hasSecret bool) storage.ServerStatus {
	if kind := connection.KindOf(&e); kind.Obtained() { // nobody registers a client there
		if hasID && (hasSecret || e.Public || e.Options.AuthMethod == oauth.AuthNone || kind == storage.ProviderWorkloadIdentity) {
			return storage.ServerActive
		}
		return storage.ServerPending
	}
	if !UsesOAuth(e) || e.Public || e.OAuth.RegistrationEndpoint != "" || (hasID && hasSecret) {
		return storage.ServerActive
	}
	return storage.ServerPending
}

// Activate ends the waiting of servers for an OAuth client that their entry no longer asks for. When the entry still asks
// for one, the first user who connects activates them.
func Activate(ctx context.Context, store storage.Servers, e storage.DirectoryEntry, now time.Time) error {
	if UsesOAuth(e) {
		return nil
	}
	waiting, err := store.Servers(ctx, storage.ServerFilter{
		OrganizationID: e.OrganizationID, Status: []storage.ServerStatus{storage.ServerPending, storage.ServerError}, Now: now,
	})
	if err != nil {
		return err
	}
	for _, s := range waiting.Items {
		if s.DirectoryID != e.ID {
			continue
		}
		_, err := store.UpdateServer(ctx, s.OrganizationID, s.ID, func(s *storage.Server) error {
			s.Status = Lifecycle(e, s.ClientID != "", s.SealedClientSecret != nil)
			return nil
		})
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	return nil
}
