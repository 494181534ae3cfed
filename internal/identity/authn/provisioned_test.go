package authn

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/authn/authntest"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// provision provisions a user of the organization with groups.
func (d *door) provision(name string, groups ...string) (id string) {
	d.t.Helper()
	id = uuid.NewString()
	if err := d.store.CreateProvisionedUser(d.t.Context(), storage.ProvisionedUser{
		ID: id, OrganizationID: authntest.OrganizationID, UserName: name, Active: true, Attributes: json.RawMessage(`{}`), CreatedAt: time.Now(), UpdatedAt: time.Now(),
	}, 100); err != nil {
		d.t.Fatal(err)
	}
	for _, group := range groups {
		if err := d.store.CreateProvisionedGroup(d.t.Context(), storage.ProvisionedGroup{
			ID: uuid.NewString(), OrganizationID: authntest.OrganizationID, Name: group, CreatedAt: time.Now(), UpdatedAt: time.Now(),
		}, []string{id}, storage.ProvisionedMost{Groups: 100, Members: 100}); err != nil {
			d.t.Fatal(err)
		}
	}
	return id
}

func (d *door) activate(id string, active bool) {
	d.t.Helper()
	if _, _, err := d.store.UpdateProvisionedUser(d.t.Context(), authntest.OrganizationID, id, storage.MatchUserName, func(u *storage.ProvisionedUser) error {
		u.Active = active
		return nil
	}); err != nil {
		d.t.Fatal(err)
	}
}

// shut checks that a credential is refused because its user may not come in.
func shut(t *testing.T, err error, reason string) {
	t.Helper()
	if !errors.Is(err, ErrShutOut) || !errors.Is(err, token.ErrInvalid) || token.Reason(err) != reason || !token.IsOver(err) || RefusedCaller(err) == nil {
		t.Errorf("got %v", err)
	}
}

const (
	deactivated    = "the organization's identity provider has deactivated the user"
	notProvisioned = "the organization's identity provider has not provisioned the user"
)

// TestDeactivated checks that a deactivated user is refused from the first moment on, whatever the token, and comes in again.
func TestDeactivated(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	raw := d.issuer.Sign(nil)
	b := d.settled(raw)
	d.provision("somebody else")
	if err := d.Recheck(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	id := d.provision("ALICE")
	b = d.settled(raw)
	d.activate(id, false)
	shut(t, d.refused(raw, ""), deactivated)
	shut(t, d.refused(d.issuer.Sign(map[string]any{"jti": "new", "name": "Alice"}), ""), deactivated)
	shut(t, d.Recheck(t.Context(), b), deactivated)
	shut(t, d.Renew(t.Context(), b), deactivated)
	if err := d.WrongToken(raw, here, d.refused(raw, "")); err != nil {
		t.Error(err)
	}
	_, err := d.Login(t.Context(), d.claims(raw), time.Time{})
	shut(t, err, deactivated)
	d.bearer(d.issuer.Sign(map[string]any{"sub": "bob"}))
	d.bearer(d.issuer.Sign(map[string]any{"sub": "robot", "gty": "client_credentials"})) // no machine is provisioned
	d.activate(id, true)
	d.bearer(raw)
	if _, err := d.Login(t.Context(), d.claims(raw), time.Time{}); err != nil {
		t.Error(err)
	}
	if err := d.store.DeleteProvisionedUser(t.Context(), authntest.OrganizationID, id, time.Now()); err != nil {
		t.Fatal(err)
	}
	shut(t, d.refused(raw, ""), deactivated)
}

// claims verifies a token.
func (d *door) claims(raw string) *token.Claims {
	d.t.Helper()
	unverified, err := token.Parse(raw)
	if err != nil {
		d.t.Fatal(err)
	}
	claims, err := d.issuer.Verifier().VerifyParsed(d.t.Context(), unverified, "")
	if err != nil {
		d.t.Fatal(err)
	}
	return claims
}

// TestDeactivatedUnderAnotherAddress checks that a user whose first token had no address is refused from the first token on that
// has the one of somebody deactivated.
func TestDeactivatedUnderAnotherAddress(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	without := map[string]any{"sub": "carol", "email": "", "name": "Carol"}
	d.bearer(d.issuer.Sign(without))
	d.activate(d.provision("carol@example.test"), false)
	d.bearer(d.issuer.Sign(without)) // nobody is provisioned so
	shut(t, d.refused(d.issuer.Sign(map[string]any{"sub": "carol", "email": "carol@example.test"}), ""), deactivated)
}

// TestRequireProvisioned checks that nobody but machines comes in who is not provisioned, where that is required.
func TestRequireProvisioned(t *testing.T) {
	t.Parallel()
	k := newKeyDoor(t)
	raw := k.issuer.Sign(nil)
	key, _ := k.Make(nil)
	group, _ := k.Make(func(s *storage.APIKey) { s.UserID, s.GroupName = "", "ops" })
	k.bearer(raw)
	strict := k.other(func(o *Options) { o.Provisioning.Require = true; o.RulesID = "strict" })
	_, err := strict.Token(t.Context(), raw, "")
	shut(t, err, notProvisioned)
	_, err = strict.Key(t.Context(), key, here)
	shut(t, err, notProvisioned)
	if _, err := strict.Key(t.Context(), group, here); err != nil {
		t.Error(err)
	}
	if _, err := strict.Token(t.Context(), k.issuer.Sign(map[string]any{"sub": "robot", "gty": "client_credentials"}), ""); err != nil {
		t.Error(err)
	}
	id := k.provision("alice")
	if _, err := strict.Token(t.Context(), raw, ""); err != nil {
		t.Error(err)
	}
	if _, err := strict.Key(t.Context(), key, here); err != nil {
		t.Error(err)
	}
	k.activate(id, false)
	_, err = k.use(key, here)
	shut(t, err, deactivated)
}

// TestProvisionedGroups checks whose word about groups counts, and that a change counts from the next call on.
func TestProvisionedGroups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source           GroupSource
		provisioned      []string // nil: the user is not
		want             []string
		lacking, changes bool
	}{
		"those of the token":          {GroupsOfToken, []string{"staff"}, []string{"sales", "ops"}, false, false},
		"those provisioned":           {GroupsProvisioned, []string{"staff"}, []string{"staff"}, false, true},
		"none provisioned":            {GroupsProvisioned, []string{}, nil, false, true},
		"the user is not provisioned": {GroupsProvisioned, nil, nil, true, true},
		"both":                        {GroupsOfBoth, []string{"ops", "staff"}, []string{"sales", "ops", "staff"}, false, true},
		"both, and nobody is":         {GroupsOfBoth, nil, []string{"sales", "ops"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeyDoor(t)
			k.provisioning.Groups = c.source
			raw := k.issuer.Sign(map[string]any{"groups": []string{"sales", "ops"}})
			k.Say(lists{Roles: []string{}, Groups: []string{"sales", "ops"}}, time.Minute)
			key, _ := k.Make(func(s *storage.APIKey) { s.Scopes = []string{"mcp"} })
			id := ""
			if c.provisioned != nil {
				id = k.provision("alice", c.provisioned...)
			}
			check := func(what string, b *Bearer, want []string) {
				t.Helper()
				got := slices.Sorted(slices.Values(b.Caller().Groups))
				if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got, cmpopts.EquateEmpty()); diff != "" || b.RolesUnknown() != c.lacking {
					t.Errorf("%s: unknown %v (-want +got)\n%s", what, b.RolesUnknown(), diff)
				}
				if b.RolesSize() != sizeOf(b.Caller().Roles, b.Caller().Groups) {
					t.Errorf("%s: size %d", what, b.RolesSize())
				}
			}
			b := k.settled(raw)
			check("token", b, c.want)
			if again := k.bearer(raw); again.Caller() != b.Caller() || again.Principal("") != b.Principal("") || again.Notes() != b.Notes() {
				t.Error("a call makes the bearer anew")
			}
			now := k.PrincipalNow(b)
			byKey, err := k.use(key, here)
			if err != nil {
				t.Fatal(err)
			}
			check("key", byKey, c.want)
			nowByKey := k.PrincipalNow(byKey)
			if said, lacking, err := k.Groups(t.Context(), authntest.OrganizationID, k.User.ID, []string{"sales", "ops"}); err != nil || lacking != c.lacking ||
				!cmp.Equal(slices.Sorted(slices.Values(said)), slices.Sorted(slices.Values(c.want)), cmpopts.EquateEmpty()) {
				t.Errorf("%v %v %v", said, lacking, err)
			}
			if id == "" {
				return
			}
			before := principal(t, now)
			if err := k.store.CreateProvisionedGroup(t.Context(), storage.ProvisionedGroup{
				ID: uuid.NewString(), OrganizationID: authntest.OrganizationID, Name: "added", CreatedAt: time.Now(), UpdatedAt: time.Now(),
			}, []string{id}, storage.ProvisionedMost{Groups: 100, Members: 100}); err != nil {
				t.Fatal(err)
			}
			want := c.want
			if c.changes {
				want = append(slices.Clone(want), "added")
			}
			check("changed token", k.bearer(raw), want)
			if byKey, err = k.use(key, here); err != nil {
				t.Fatal(err)
			}
			check("changed key", byKey, want)
			if after := principal(t, now); (after != before) != c.changes {
				t.Error("a stream's principal")
			}
			k.settles(&k.store.keys, func() { byKey, _ = k.use(key, here) })
			if principal(t, nowByKey) != byKey.Principal("") {
				t.Error("a stream's principal by key")
			}
		})
	}
}

// principal returns the present principal of a stream.
func principal(t *testing.T, now func(context.Context) (*engine.Principal, error)) *engine.Principal {
	t.Helper()
	p, err := now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}
