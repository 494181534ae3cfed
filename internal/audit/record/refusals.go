package record

import (
	"cmp"
	"context"

	"github.com/durward-gateway/durward/storage"
)

// Bearer is the user of a credential, so far as the gateway knows them.
type Bearer struct {
	OrganizationID, UserID string
	Client                 string // the external id of the client
	KeyID                  string // "": the credential is no API key
}

// LoggedIn records that a user logged in with a browser. On an error nothing was recorded, and nobody is logged in.
func (r *Recorder) LoggedIn(who Bearer, client string) error {
	return r.Event(context.Background(), who.OrganizationID, storage.AuditEntry{
		Kind: storage.AuditLogin, Event: "login", UserID: who.UserID, Client: client, Outcome: "ok",
	})
}

// RefusedBearer records that a credential of a bearer was refused. The number of such records is limited.
func (r *Recorder) RefusedBearer(who Bearer, reason, path string) {
	e := storage.AuditEntry{
		Kind: storage.AuditLogin, Event: "token.refused", UserID: who.UserID, Client: who.Client, Outcome: "refused",
		Detail: map[string]any{"reason": Short(reason), "path": Short(path)},
	}
	if who.KeyID != "" {
		Add(&e, "api_key_id", who.KeyID)
	}
	r.RefusedWrite(who.OrganizationID, e)
}

// RefusedWrite records that a write through the API was refused. The number of such records is limited.
func (r *Recorder) RefusedWrite(organization string, e storage.AuditEntry) {
	if r == nil {
		return
	}
	t, err := r.Open()
	if err != nil || !t.AllowRefusal(organization, cmp.Or(e.UserID, keyOf(&e))) {
		return // counted
	}
	r.identify(&e)
	t.Later(organization, &e)
}

// keyOf returns the API key with which an action was done; "" when it was done without one.
func keyOf(e *storage.AuditEntry) string {
	id, _ := e.Detail["api_key_id"].(string)
	return id
}
