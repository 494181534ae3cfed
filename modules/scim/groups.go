package scim

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/scim"
	"github.com/durward-gateway/durward/storage"
)

func (v *visit) listGroups() error {
	f, err := scim.GroupFilter(v.filter)
	if err != nil {
		return err
	}
	if f.Nothing {
		return v.answer(http.StatusOK, scim.List(nil, 0, v.query.Skip))
	}
	search := f.Store(v.organization)
	search.Skip, search.Limit = v.query.Skip, v.query.Limit
	if v.query.Wants("members") {
		search.Members = scim.MaxMembers
	}
	page, err := v.core.Store.ProvisionedGroups(v.r.Context(), search)
	if err != nil {
		return err
	}
	resources := make([]json.RawMessage, len(page.Items))
	for i := range page.Items {
		resources[i] = scim.GroupResource(&page.Items[i], v.base, &v.query)
	}
	return v.answer(http.StatusOK, scim.List(resources, page.Total, v.query.Skip))
}

func (v *visit) getGroup(id string) error { return v.showGroup(http.StatusOK, id) }

func (v *visit) showGroup(status int, id string) error {
	g, err := v.core.Store.ProvisionedGroup(v.r.Context(), v.organization, id, v.query.Wants("members"))
	if err != nil {
		return err
	}
	v.w.Header().Set("Location", v.base+scim.GroupsPath+"/"+id)
	return v.answer(status, scim.GroupResource(&g, v.base, &v.query))
}

func (v *visit) createGroup() error {
	body, err := v.body()
	if err != nil {
		return err
	}
	g, err := scim.ReadGroup(body)
	if err != nil {
		return err
	}
	made, err := uuid.NewV7()
	if err != nil {
		return err
	}
	id, now := made.String(), v.now()
	r, err := v.recorded(storage.AuditEntry{Event: "scim.group.create"}, id)
	if err != nil {
		return err
	}
	r.entry.Detail["added"] = len(g.Members)
	record := storage.ProvisionedGroup{ID: id, OrganizationID: v.organization, Name: g.Name, ExternalID: g.ExternalID, CreatedAt: now, UpdatedAt: now}
	most := storage.ProvisionedMost{Groups: scim.MaxGroups, Members: scim.MaxMembers}
	if err := v.core.Store.CreateProvisionedGroup(r, record, g.Members, most); err != nil {
		return err
	}
	return v.showGroup(http.StatusCreated, id)
}

func (v *visit) replaceGroup(id string) error {
	body, err := v.body()
	if err != nil {
		return err
	}
	g, err := scim.ReadGroup(body)
	if err != nil {
		return err
	}
	if err := v.changeGroup(id, &scim.GroupChange{Name: &g.Name, ExternalID: &g.ExternalID, Replace: true, Add: g.Members}); err != nil {
		return err
	}
	return v.showGroup(http.StatusOK, id)
}

// patchGroup changes a group. The answer shows it only when some attributes are asked for: it may have many members.
func (v *visit) patchGroup(id string) error {
	body, err := v.body()
	if err != nil {
		return err
	}
	change, err := scim.ReadGroupPatch(id, body)
	if err != nil {
		return err
	}
	if err := v.changeGroup(id, &change); err != nil {
		return err
	}
	if v.query.Narrowed() {
		return v.showGroup(http.StatusOK, id)
	}
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (v *visit) changeGroup(id string, c *scim.GroupChange) error {
	r, err := v.recorded(storage.AuditEntry{Event: "scim.group.update"}, id)
	if err != nil {
		return err
	}
	r.entry.Detail["added"], r.entry.Detail["removed"], r.entry.Detail["replaced"] = len(c.Add), len(c.Remove), c.Replace
	_, err = v.core.Store.UpdateProvisionedGroup(r, v.organization, id, v.now(), storage.ProvisionedChange{
		Edit: func(g *storage.ProvisionedGroup) error {
			if c.Name != nil {
				g.Name = *c.Name
			}
			if c.ExternalID != nil {
				g.ExternalID = *c.ExternalID
			}
			return nil
		},
		Replace: c.Replace, Add: c.Add, Remove: c.Remove, Most: scim.MaxMembers,
	})
	return err
}

func (v *visit) deleteGroup(id string) error {
	r, err := v.recorded(storage.AuditEntry{Event: "scim.group.delete"}, id)
	if err != nil {
		return err
	}
	if err := v.core.Store.DeleteProvisionedGroup(r, v.organization, id); err != nil {
		return err
	}
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}
