package app

import (
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// SealProviderSecret makes secret the provider's. An empty secret means none. The secret is bound to the kind and base
// URL to which it may be sent: when either changes, it has to be given again.
func (c *Core) SealProviderSecret(p *storage.LLMProvider, secret seal.Secret) error {
	p.SealedSecret = nil
	if secret.Empty() {
		return nil
	}
	sealed, err := c.Keyring.Seal([]byte(secret.Reveal()), providerPlace(p))
	p.SealedSecret = sealed
	return err
}

// OpenProviderSecret returns the provider's secret, the empty one when it has none. Errors are those of
// seal.Keyring.Open.
func (c *Core) OpenProviderSecret(p *storage.LLMProvider) (seal.Secret, error) {
	if p.SealedSecret == nil {
		return seal.Secret{}, nil
	}
	plain, err := c.Keyring.Open(p.SealedSecret, providerPlace(p))
	if err != nil {
		return seal.Secret{}, err
	}
	return seal.NewSecret(string(plain)), nil
}

func providerPlace(p *storage.LLMProvider) seal.AD {
	return seal.ProviderPlace(p.OrganizationID, p.ID, p.Kind, p.BaseURL)
}
