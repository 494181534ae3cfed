// Package keysets shares the key sets of identity providers between configurations: a reload does not fetch them anew.
package keysets

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/modules/app"
)

const (
	keyFetchTimeout = 5 * time.Second
	keyFetchBytes   = 1 << 20
)

// pool keeps the key sets that configurations use, by issuer and egress rules.
var pool = caddy.NewUsagePool()

// KeySet is an issuer's key set, which all configurations share that name the issuer under the same egress rules.
type KeySet struct {
	poolKey string
	set     *pooledKeySet
}

// pooledKeySet is the pool's value.
type pooledKeySet struct {
	*token.KeySet
}

// Acquire returns the key set of an issuer. It must be released.
func Acquire(issuer string, b app.Binding) (*KeySet, error) {
	key := b.EgressID + "/" + issuer
	value, _, err := pool.LoadOrNew(key, func() (caddy.Destructor, error) {
		set, err := token.NewKeySet(token.KeySetOptions{
			Issuer: issuer, Client: keyClient(b.Guard), CheckURL: b.Guard.CheckURL, Now: b.Now, Logger: b.Log,
		})
		if errors.Is(err, netguard.ErrRefused) {
			return nil, fmt.Errorf("the gateway may not connect to it: %w; %s", err, egressFor(issuer))
		}
		if err != nil {
			return nil, err
		}
		return &pooledKeySet{set}, nil
	})
	if err != nil {
		return nil, err
	}
	return &KeySet{poolKey: key, set: value.(*pooledKeySet)}, nil
}

// egressFor returns the configuration line that allows an issuer at an address that egress refuses.
func egressFor(issuer string) string {
	address, err := url.Parse(issuer)
	if line := netguard.AdviceFor(address); err == nil && line != "" {
		return "if it is meant to be there, write into `egress { ... }`, in the durward option, the line `" + line + "`"
	}
	return "correct its address"
}

func keyClient(guard app.Guard) *http.Client {
	return guard.FetchClient(keyFetchTimeout, keyFetchBytes)
}

// Key implements token.KeySource.
func (k *KeySet) Key(ctx context.Context, kid, alg string) (any, error) {
	return k.set.Key(ctx, kid, alg)
}

// Standing returns what is known of the keys, see token.KeySet.
func (k *KeySet) Standing() (fetched time.Time, failure error) { return k.set.Standing() }

// Release gives the key set back.
func (k *KeySet) Release() error {
	_, err := pool.Delete(k.poolKey)
	return err
}

// Destruct implements caddy.Destructor.
func (p *pooledKeySet) Destruct() error {
	p.Close()
	return nil
}
