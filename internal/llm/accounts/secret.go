package accounts

import (
	"fmt"
	"net/http"

	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Vault seals stored data. A *seal.Keyring is one.
type Vault interface {
	Seal(plaintext []byte, at seal.AD) ([]byte, error)
	Open(sealed []byte, at seal.AD) ([]byte, error)
}

// SealSecret makes secret the provider's. An empty secret means none. The secret is bound to the kind and base URL to
// which it may be sent: when either changes, it has to be given again.
func SealSecret(vault Vault, p *storage.LLMProvider, secret seal.Secret) error {
	p.SealedSecret = nil
	if secret.Empty() {
		return nil
	}
	sealed, err := vault.Seal([]byte(secret.Reveal()), placeOf(p))
	p.SealedSecret = sealed
	return err
}

// Credential returns a function that puts the account's secret on a request, at the last moment: nothing keeps the
// secret meanwhile.
func (c *Catalog) Credential(a *Account) forward.Credential {
	return forward.CredentialFunc(func(r *http1.Request) error {
		secret, err := c.openSecret(a)
		if err != nil {
			return fmt.Errorf("opening the secret of a provider: %w", err)
		}
		h := make(http.Header, len(r.Fields)+1)
		for _, f := range r.Fields {
			h[f.Name] = append(h[f.Name], f.Value)
		}
		a.Protocol.Authorize(h, secret)
		r.Fields = r.Fields[:0]
		for name, values := range h {
			for _, v := range values {
				r.Fields = append(r.Fields, http1.Field{Name: name, Value: v})
			}
		}
		return nil
	})
}

// openSecret returns the account's secret, the empty one when it has none. Errors are the vault's.
func (c *Catalog) openSecret(a *Account) (seal.Secret, error) {
	if a.stored == nil {
		return a.secret, nil
	}
	return StoredSecret(c.vault, a.stored)
}

// StoredSecret returns a provider's secret, the empty one when it has none. Errors are the vault's.
func StoredSecret(vault Vault, p *storage.LLMProvider) (seal.Secret, error) {
	if p.SealedSecret == nil {
		return seal.Secret{}, nil
	}
	plain, err := vault.Open(p.SealedSecret, placeOf(p))
	if err != nil {
		return seal.Secret{}, err
	}
	return seal.NewSecret(string(plain)), nil
}

func placeOf(p *storage.LLMProvider) seal.AD {
	return seal.ProviderPlace(p.OrganizationID, p.ID, p.Kind, p.BaseURL)
}
