package authorization

import (
	"context"

	"github.com/durward-gateway/durward/storage"
)

// End ends a login with a client and forgets its user's consents to the client: otherwise a page of the client could log in
// again unseen. by is the id of the user who ends it: the login's own, or an administrator. It is recorded before. The error
// is storage.ErrNotFound when the login has ended meanwhile.
func End(ctx context.Context, store storage.Logins, audit Recorder, l *storage.Login, by string) error {
	err := audit.Event(ctx, l.OrganizationID, storage.AuditEntry{
		Kind: storage.AuditLogin, Event: "client.logout", UserID: l.UserID, Client: l.ClientID, Outcome: "ok",
		Detail: map[string]any{"login": l.ID, "by": by},
	})
	if err != nil {
		return err
	}
	_, err = store.EndLogin(ctx, l.OrganizationID, l.ID, true)
	return err
}
