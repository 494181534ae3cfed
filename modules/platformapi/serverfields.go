package platformapi

import (
	"crypto/rand"
	"regexp"
	"strings"

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

// clientText is the pattern of client ids and secrets (RFC 6749 appendix A.1, A.2).
var clientText = regexp.MustCompile(`\A[\x20-\x7e]+\z`)

// serverSlug reads a slug that an administrator chose.
func serverSlug(o *validate.Object, flags validate.Flags) validate.Field[string] {
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

func clientID(o *validate.Object) validate.Field[string] {
	return o.Text("client_id", validate.Text{Flags: validate.Nullable, Min: 1, Max: maxClientID, Pattern: clientText})
}

// clientSecret reads a client secret. The placeholder that is shown instead of a secret is refused (attack B11).
func clientSecret(o *validate.Object) validate.Field[seal.Secret] {
	field := o.Secret("client_secret", validate.Text{Flags: validate.Nullable, Min: 1, Max: maxClientSecret, Pattern: clientText})
	if looksObfuscated(field.Value.Reveal()) {
		o.Report(validate.ValueError, msgObfuscated, "client_secret")
	}
	return field
}

const msgObfuscated = "Value error, give the actual value, not an obfuscated one"

// obfuscated returns the shown form of a client_id: enough to recognize it by.
func obfuscated(id string) string {
	switch {
	case id == "":
		return ""
	case len(id) <= 8:
		return "****"
	}
	return id[:2] + "..." + id[len(id)-2:]
}

// looksObfuscated reports whether a value is one that was shown in place of another.
func looksObfuscated(value string) bool {
	return value != "" && (strings.Contains(value, "...") || strings.Trim(value, "*") == "")
}

// usesOAuth reports whether users connect to servers of an entry by OAuth.
func usesOAuth(e storage.DirectoryEntry) bool {
	return e.Provider == storage.ProviderOAuth2 && e.RequiresAuth
}

// lifecycle returns the status of a server: pending is for servers whose OAuth client an administrator must supply.
func lifecycle(e storage.DirectoryEntry, hasID, hasSecret bool) storage.ServerStatus {
	if connection.KindOf(&e) == storage.ProviderTokenExchange { // nobody registers a client there
		if hasID && (hasSecret || e.Public || e.Options.AuthMethod == oauth.AuthNone) {
			return storage.ServerActive
		}
		return storage.ServerPending
	}
	if !usesOAuth(e) || e.Public || e.OAuth.RegistrationEndpoint != "" || (hasID && hasSecret) {
		return storage.ServerActive
	}
	return storage.ServerPending
}

// suffixes is the number of random suffixes that are tried for an automatic slug. Each has 32 bits.
const suffixes = 3

// withFreeSlug stores an object under a slug: the chosen one, or one made of its name, with a suffix when that is
// reserved or when store reports that it is taken.
func withFreeSlug(chosen, name string, store func(slug string) error) error {
	if chosen != "" {
		return store(chosen)
	}
	base := slug.FromName(name)
	candidate := base
	for try := 0; ; try++ {
		err := storage.ErrConflict
		if !slug.Reserved(candidate) {
			if err = store(candidate); conflictingField(err) != "slug" {
				return err
			}
		}
		if try == suffixes {
			return err
		}
		if candidate, err = slug.WithSuffix(base, rand.Reader); err != nil {
			return err
		}
	}
}
