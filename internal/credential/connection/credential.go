package connection

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Credential is the credential that one user presents to one server. It never shows its secrets; Apply puts them on a
// request.
type Credential struct {
	kind    storage.Provider
	value   seal.Secret // the value on the request, without its prefix
	params  storage.AuthParams
	place   place
	version int64
	expires time.Time
	fresh   bool // see Fresh
}

// None returns the credential for a server that needs none.
func None() Credential { return Credential{kind: storage.ProviderNone} }

// Issued returns the credential for a server whose users connect no account: the access token that the gateway got for them,
// or for itself. Its version tells it from others. Errors are those of the server's directory entry.
func Issued(server *storage.Server, access seal.Secret, version int64, expires time.Time) (Credential, error) {
	where, err := placeOf(siteOf(&server.Entry), storage.OAuthEndpoints{})
	if err != nil {
		return Credential{}, err
	}
	return Credential{kind: KindOf(&server.Entry), value: access, place: where, version: version, expires: expires}.on(server.Entry.AuthParams)
}

// Version distinguishes the states of a connection. It is 0 for servers that need no credential.
func (c Credential) Version() int64 { return c.version }

// ExpiresAt returns the end of the credential. It is the zero time when the credential does not end, or the end is
// unknown.
func (c Credential) ExpiresAt() time.Time { return c.expires }

// Fresh reports whether the call that got the credential has waited until it was issued.
func (c Credential) Fresh() bool { return c.fresh }

// Renewed returns the credential for a call that has waited until it was issued.
func (c Credential) Renewed() Credential {
	c.fresh = true
	return c
}

// Apply puts the credential on a request and replaces any value under its name. It changes nothing and returns an error
// if the request goes to another origin than the one that the credential was made for.
func (c Credential) Apply(r *http1.Request) error {
	if c.kind == storage.ProviderNone {
		return nil
	}
	if !c.place.holds(r.URL) {
		return fmt.Errorf("credential of %s is not for %s", c.place.origin, originOf(r.URL))
	}
	text := c.value.Reveal()
	if n := len(c.params.Prefix); n > 0 {
		sep := ""
		if last := c.params.Prefix[n-1] | 0x20; ('a' <= last && last <= 'z') || ('0' <= last && last <= '9') {
			sep = " "
		}
		text = c.params.Prefix + sep + text
	}
	if c.params.In == directory.InQuery {
		r.URL.RawQuery = setQuery(r.URL.RawQuery, c.params.Name, text)
		return nil
	}
	r.Set(textproto.CanonicalMIMEHeaderKey(c.params.Name), text)
	return nil
}

// setQuery replaces every parameter of that name. It leaves the bytes of all other parameters unchanged.
func setQuery(raw, name, value string) string {
	var kept []string
	for pair := range strings.SplitSeq(raw, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if k, err := url.QueryUnescape(key); pair == "" || (err == nil && k == name) {
			continue
		}
		kept = append(kept, pair)
	}
	return strings.Join(append(kept, url.QueryEscape(name)+"="+url.QueryEscape(value)), "&")
}

// grant holds the credentials of a connection.
type grant struct {
	// ID identifies the grant. It stays the same when tokens are refreshed, and changes when the user connects again.
	ID       string
	Access   seal.Secret
	Refresh  seal.Secret
	Asked    string      // the scopes that the user was asked for, blank-separated
	Key      seal.Secret // API key or bearer token
	Username seal.Secret
	Password seal.Secret
	// Forced reports that the upstream had refused the previous token.
	Forced bool
	// Issued holds the data for revoking the tokens after the server got another client. It is zero in a grant that an
	// older version stored.
	Issued issued
	// Unusable reports that Refresh came with an access token that could not be used. Access is then an older token.
	Unusable bool
}

// value returns the value that goes on a request.
func (g grant) value(kind storage.Provider) seal.Secret {
	switch kind {
	case storage.ProviderOAuth2:
		return g.Access
	case storage.ProviderAPIKey, storage.ProviderBearerToken:
		return g.Key
	case storage.ProviderBasicAuth:
		return seal.NewSecret(base64.StdEncoding.EncodeToString([]byte(g.Username.Reveal() + ":" + g.Password.Reveal())))
	}
	return seal.Secret{}
}

func credentialAD(key storage.ConnectionKey) seal.AD {
	return seal.ConnectionPlace(key.OrganizationID, key.UserID, key.ServerID)
}

// ClientSecretAD returns the place that the client_secret of a server record is sealed for.
func ClientSecretAD(organization, serverID string) seal.AD {
	return seal.ServerPlace(organization, serverID)
}

func oauthClientAD(organization, serverID string) seal.AD {
	return seal.OAuthClientPlace(organization, serverID)
}

func (b *Broker) sealGrant(key storage.ConnectionKey, g grant) ([]byte, error) {
	plain, err := g.encode()
	if err != nil {
		return nil, fmt.Errorf("encoding credential: %w", err)
	}
	defer clear(plain)
	return b.keyring.Seal(plain, credentialAD(key))
}

var errNothingStored = errors.New("connection holds no credential")

// openGrant unseals the credentials of a connection. Errors: errNothingStored, and those of seal.Keyring.Open.
func (b *Broker) openGrant(c storage.Connection) (grant, error) {
	if c.Status != storage.ConnectionConnected || c.SealedCredential == nil {
		return grant{}, errNothingStored
	}
	return b.openSealed(c)
}

// openSealed unseals the credentials of a connection, even if they may not be used.
func (b *Broker) openSealed(c storage.Connection) (grant, error) {
	plain, err := b.keyring.Open(c.SealedCredential, credentialAD(c.ConnectionKey))
	if err != nil {
		return grant{}, err
	}
	defer clear(plain)
	g, err := decodeGrant(plain)
	if err != nil {
		return grant{}, fmt.Errorf("decoding credential: %w", seal.ErrOpen)
	}
	return g, nil
}
