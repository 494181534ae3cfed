package connection

import (
	"errors"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// TestSecretRotation checks a provider that refuses our former secret. The server is put in error, and no user loses
// the connection: it works again with the new secret.
func TestSecretRotation(t *testing.T) {
	b := setup(t)
	b.provider.set(func(p *provider) { p.noRegister, p.clientID, p.secret = true, "configured-id", "former" })
	configure := func(secret string) {
		t.Helper()
		sealed, err := b.keyring.Seal([]byte(secret), ClientSecretAD(b.server.OrganizationID, b.server.ID))
		if err != nil {
			t.Fatal(err)
		}
		if b.server, err = b.store.UpdateServer(t.Context(), b.server.OrganizationID, b.server.ID, func(s *storage.Server) error {
			s.ClientID, s.SealedClientSecret, s.Status = "configured-id", sealed, storage.ServerActive
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	configure("former")
	b.connect()
	connection := b.connection().ID
	b.provider.set(func(p *provider) { p.secret = "new" })
	b.clock.advance(time.Hour)
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
		t.Fatal(err)
	}
	if b.server = b.reload(b.server); b.server.Status != storage.ServerError {
		t.Fatalf("server is %s", b.server.Status)
	}
	configure("new")
	b.use(b.Broker)
	if c := b.connection(); c.ID != connection || c.Status != storage.ConnectionConnected {
		t.Errorf("stored %+v", c)
	}
}
