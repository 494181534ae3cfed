package scim

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/identity/scim"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/storage"
)

// recorded is a context for a write, with the entry that the write records.
type recorded struct {
	context.Context
	entry *storage.AuditEntry
}

// mostFound is the number of users that are compared with a filter by address; no more have one address.
const mostFound = 1_000

func (v *visit) listUsers() error {
	f, err := scim.UserFilter(v.filter)
	if err != nil {
		return err
	}
	if f.Nothing {
		return v.answer(http.StatusOK, scim.List(nil, 0, v.query.Skip))
	}
	search := f.Store(v.organization)
	search.Skip, search.Limit = v.query.Skip, v.query.Limit
	if v.query.Wants("groups") {
		search.Members = scim.MaxMembers
	}
	if f.Email.Value != "" {
		search.Skip, search.Limit = 0, mostFound
	}
	page, err := v.core.Store.ProvisionedUsers(v.r.Context(), search)
	if err != nil {
		return err
	}
	if f.Email.Value != "" {
		if page, err = v.having(page.Items, f.Email); err != nil {
			return err
		}
	}
	resources := make([]json.RawMessage, len(page.Items))
	for i := range page.Items {
		if resources[i], err = scim.UserResource(&page.Items[i], v.base, &v.query); err != nil {
			return err
		}
	}
	return v.answer(http.StatusOK, scim.List(resources, page.Total, v.query.Skip))
}

// having returns the page of the users who have an address.
func (v *visit) having(found []storage.ProvisionedUser, f scim.EmailFilter) (page storage.Page[storage.ProvisionedUser], err error) {
	for i := range found {
		u, err := scim.StoredUser(&found[i])
		if err != nil {
			return page, err
		}
		if !u.Has(f) {
			continue
		}
		if page.Total >= v.query.Skip && len(page.Items) < v.query.Limit {
			page.Items = append(page.Items, found[i])
		}
		page.Total++
	}
	return page, nil
}

func (v *visit) getUser(id string) error {
	u, err := v.core.Store.ProvisionedUser(v.r.Context(), v.organization, id)
	if err != nil {
		return err
	}
	return v.showUser(http.StatusOK, &u)
}

func (v *visit) showUser(status int, u *storage.ProvisionedUser) error {
	body, err := scim.UserResource(u, v.base, &v.query)
	if err != nil {
		return err
	}
	v.w.Header().Set("Location", v.base+scim.UsersPath+"/"+u.ID)
	return v.answer(status, body)
}

// createUser makes a user. One who is not active may be somebody who is logged in: everything of theirs ends.
func (v *visit) createUser() error {
	body, err := v.body()
	if err != nil {
		return err
	}
	u, err := scim.ReadUser(body, true)
	if err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	now := v.now()
	record := u.Store(storage.ProvisionedUser{ID: id.String(), OrganizationID: v.organization, CreatedAt: now, UpdatedAt: now})
	err = v.writeUser("scim.user.create", record.ID, func(ctx context.Context, _ *storage.AuditEntry) (ends bool, err error) {
		return !record.Active, v.core.Store.CreateProvisionedUser(ctx, record, scim.MaxUsers)
	})
	if err != nil {
		return err
	}
	return v.showUser(http.StatusCreated, &record)
}

// replaceUser writes a user anew. One whom it does not name active stays as they are: leaving it out lets nobody in.
func (v *visit) replaceUser(id string) error {
	body, err := v.body()
	if err != nil {
		return err
	}
	return v.updateUser(id, func(u *scim.User) (err error) {
		*u, err = scim.ReadUser(body, u.Active)
		return err
	})
}

func (v *visit) patchUser(id string) error {
	body, err := v.body()
	if err != nil {
		return err
	}
	return v.updateUser(id, func(u *scim.User) error { return u.Patch(id, body) })
}

// updateUser changes a user. When they are deactivated, or a deactivated one is somebody else from now on, everything of theirs
// ends.
func (v *visit) updateUser(id string, change func(*scim.User) error) error {
	now := v.now()
	var after storage.ProvisionedUser
	err := v.writeUser("scim.user.update", id, func(ctx context.Context, entry *storage.AuditEntry) (ends bool, err error) {
		var before storage.ProvisionedUser
		before, after, err = v.core.Store.UpdateProvisionedUser(ctx, v.organization, id, v.core.Provisioning.Match, func(u *storage.ProvisionedUser) error {
			of, err := scim.StoredUser(u)
			if err != nil {
				return err
			}
			if err := change(&of); err != nil {
				return err
			}
			*u = of.Store(*u)
			u.UpdatedAt = now
			return nil
		})
		switch {
		case before.Active && !after.Active:
			entry.Event = "scim.user.deactivate"
		case !before.Active && after.Active:
			entry.Event = "scim.user.reactivate"
		}
		other := before.UserName != after.UserName || before.ExternalID != after.ExternalID
		return !after.Active && (before.Active || other), err
	})
	if err != nil {
		return err
	}
	return v.showUser(http.StatusOK, &after)
}

func (v *visit) deleteUser(id string) error {
	err := v.writeUser("scim.user.delete", id, func(ctx context.Context, _ *storage.AuditEntry) (ends bool, err error) {
		return true, v.core.Store.DeleteProvisionedUser(ctx, v.organization, id, v.now())
	})
	if err == nil {
		v.w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// writeUser carries out a write, which reports whether the user may not come in any more: then everything of theirs ends in the
// same transaction. The write is recorded in it too.
func (v *visit) writeUser(event, id string, write func(ctx context.Context, entry *storage.AuditEntry) (ends bool, err error)) error {
	r, err := v.recorded(storage.AuditEntry{Event: event}, id)
	if err != nil {
		return err
	}
	ended, err := connection.Offboard(r, v.core.Broker, func(ctx context.Context) (ended []storage.Offboarding, err error) {
		err = v.core.Store.Together(ctx, v.organization, func(ctx context.Context) error {
			ended, r.entry.Event = nil, event
			ends, err := write(ctx, r.entry)
			if err != nil || !ends {
				return err
			}
			ended, err = v.offboard(ctx, id)
			r.entry.Detail["offboarded"] = views(ended)
			return err
		})
		return ended, err
	})
	if err != nil {
		return err
	}
	for i := range ended {
		user := ended[i].User.ID
		v.core.Tasks.Forget(v.organization, user)
		v.core.Metrics.Connections.WithLabelValues("disconnected").Add(float64(len(ended[i].Ended)))
		v.core.Streams.End(streams.Owner{Organization: v.organization, User: user}, streams.Revoked)
	}
	return nil
}

// offboard ends everything of the users who are a provisioned user.
func (v *visit) offboard(ctx context.Context, id string) (ended []storage.Offboarding, err error) {
	users, err := v.core.Store.LinkProvisioned(ctx, v.organization, id, v.core.Provisioning.Match)
	if err != nil {
		return nil, err
	}
	now := v.now()
	for _, user := range users {
		o, err := v.core.Store.OffboardUser(ctx, storage.OffboardRequest{OrganizationID: v.organization, UserID: user, At: now})
		if err != nil {
			return nil, err
		}
		ended = append(ended, o)
	}
	return ended, nil
}

// views returns what the audit log has of ended users.
func views(ended []storage.Offboarding) []map[string]any {
	all := make([]map[string]any, len(ended))
	for i := range ended {
		o := &ended[i]
		all[i] = map[string]any{
			"user_id": o.User.ID, "sessions": o.Sessions, "api_keys": o.APIKeys, "connections": o.Connections, "approvals": o.Approvals, "tasks": o.Tasks,
		}
	}
	return all
}
