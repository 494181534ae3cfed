package broker

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/directory"
	"github.com/durward-gateway/durward/internal/http1"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Credential is what one user presents to one server. Its secrets show themselves to nobody; Apply puts them on a request.
type Credential struct {
	kind    storage.Provider
	value   seal.Secret // what goes on the request, without its prefix
	params  storage.AuthParams
	place   place
	version int64
	expires time.Time
}

// Version tells the states of a connection apart. It is 0 for servers that need no credential.
func (c Credential) Version() int64 { return c.version }

// ExpiresAt is when the credential ends; the zero time when it does not, or nobody said.
func (c Credential) ExpiresAt() time.Time { return c.expires }

// Apply puts the credential on a request, in place of whatever is there under its name. It changes nothing and returns an
// error when the request goes to another origin than the credential was made for.
func (c Credential) Apply(r *http1.Request) error {
	if c.kind == storage.ProviderNone || c.kind == "" {
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

// setQuery replaces every parameter of that name, and leaves the bytes of all others alone.
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
	// ID names the grant itself. It stays the same when tokens are refreshed and changes when the user connects anew.
	ID       string
	Access   seal.Secret
	Refresh  seal.Secret
	Asked    string      // the scopes that the user was asked for, blank-separated
	Key      seal.Secret // API key or bearer token
	Username seal.Secret
	Password seal.Secret
	// Forced: the upstream had refused the token before this one.
	Forced bool
	// Issued is what revokes the tokens when the server has another client; zero when an older version has stored the grant.
	Issued issued
	// Unusable: Refresh came with an access token that could not be used; Access is an older one.
	Unusable bool
}

// value returns what goes on a request.
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

// ClientSecretAD is the place of a server record's client_secret.
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

// openGrant unseals what a connection holds. Errors: errNothingStored, and those of seal.Keyring.Open.
func (b *Broker) openGrant(c storage.Connection) (grant, error) {
	if c.Status != storage.ConnectionConnected || c.SealedCredential == nil {
		return grant{}, errNothingStored
	}
	return b.openSealed(c)
}

// openSealed unseals what a connection holds, whether or not it may be used.
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
