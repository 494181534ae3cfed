package storagetest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

func testPolicyLists(t *testing.T, b *bundle) {
	ctx := t.Context()
	ada, err := b.ResolveUser(ctx, storage.UserClaim{OrganizationID: b.orgA, Issuer: issuer, Subject: "ada", DerivedID: newID(), Kind: storage.UserPerson, Name: "Ada"}, start)
	noError(t, err)
	x, y := b.agent(t, b.orgA, "X").ID, b.agent(t, b.orgA, "Y").ID
	other := b.server(t, b.orgA, "Other")
	var all []storage.PolicyView
	for i, name := range []string{"oldest", "50%_off\\", "ÉCLAIR", "newest"} {
		p := b.newPolicy(b.orgA, name)
		p.UpdatedAt = start.Add(time.Duration(i/2) * time.Minute) // pairs with the same time
		v := storage.PolicyView{ServerName: b.serverA.Name}
		switch name {
		case "oldest":
			p.SupportContact, p.ApplicationIDs, v.ApplicationNames = "Ops@Example.com", []string{y, x, x}, []string{"Y", "X", "X"}
		case "50%_off\\":
			p.Status, p.Description, p.ApplicationIDs, v.ApplicationNames = storage.PolicyActive, "Ärger", []string{x}, []string{"X"}
		case "newest":
			p.Status, p.ServerID, p.CreatedBy, p.UpdatedBy = storage.PolicyArchived, other.ID, "", ada.ID
			v.ServerName, v.UpdatedByName = "Other", "Ada"
		}
		_, err := b.CreatePolicy(ctx, p)
		noError(t, err)
		v.Policy = p
		all = append(all, v)
	}
	_, err = b.CreatePolicy(ctx, b.newPolicy(b.orgB, "oldest"))
	noError(t, err)
	want := []storage.PolicyView{all[2], all[3], all[0], all[1]} // the last updated first, then by id
	page, err := b.Policies(ctx, storage.PolicyFilter{OrganizationID: b.orgA})
	noError(t, err)
	equal(t, page, storage.Page[storage.PolicyView]{Items: want, Total: 4})

	const second, third, fourth = "50%_off\\", "ÉCLAIR", "newest"
	everything := []string{third, fourth, "oldest", second}
	for _, c := range []struct {
		name   string
		filter storage.PolicyFilter
		want   []string
	}{
		{"name", storage.PolicyFilter{Search: "EST"}, []string{fourth, "oldest"}},
		{"beyond ASCII", storage.PolicyFilter{Search: "éclair"}, []string{third}},
		{"description", storage.PolicyFilter{Search: "ärg"}, []string{second}},
		{"support contact", storage.PolicyFilter{Search: "ops@"}, []string{"oldest"}},
		{"id", storage.PolicyFilter{Search: all[3].ID}, []string{fourth}},
		{"id in capitals", storage.PolicyFilter{Search: strings.ToUpper(all[3].ID)}, []string{fourth}},
		{"no part of an id", storage.PolicyFilter{Search: all[3].ID[:30]}, nil},
		{"percent is no wildcard", storage.PolicyFilter{Search: "%"}, []string{second}},
		{"underscore is no wildcard", storage.PolicyFilter{Search: "_O"}, []string{second}},
		{"backslash escapes nothing", storage.PolicyFilter{Search: "off\\"}, []string{second}},
		{"Q05 a long pattern", storage.PolicyFilter{Search: strings.Repeat("(a+)+$%", 20_000)}, nil},
		{"status", storage.PolicyFilter{Status: []storage.PolicyStatus{storage.PolicyActive, storage.PolicyArchived}}, []string{fourth, second}},
		{"unknown status", storage.PolicyFilter{Status: []storage.PolicyStatus{"unheard-of", ""}}, nil},
		{"server", storage.PolicyFilter{ServerIDs: []string{other.ID, b.unknown}}, []string{fourth}},
		{"servers", storage.PolicyFilter{ServerIDs: []string{other.ID, b.serverA.ID}}, everything},
		{"O05 another organization's server", storage.PolicyFilter{ServerIDs: []string{b.serverB.ID}}, nil},
		{"agent", storage.PolicyFilter{AgentIDs: []string{x}}, []string{"oldest", second}},
		{"agents", storage.PolicyFilter{AgentIDs: []string{b.unknown, y}}, []string{"oldest"}},
		{"unknown agent", storage.PolicyFilter{AgentIDs: []string{b.unknown, ""}}, nil},
		{"all together", storage.PolicyFilter{Search: "o", Status: []storage.PolicyStatus{storage.PolicyDraft}, ServerIDs: []string{b.serverA.ID},
			AgentIDs: []string{x}}, []string{"oldest"}},
		{"page 2", storage.PolicyFilter{Page: storage.PageRequest{Number: 2, Limit: 3}}, []string{second}},
		{"far beyond the end", storage.PolicyFilter{Page: storage.PageRequest{Number: math.MaxInt, Limit: 100}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.filter.OrganizationID = b.orgA
			page, err := b.Policies(ctx, c.filter)
			noError(t, err)
			var names []string
			for _, p := range page.Items {
				names = append(names, p.Name)
			}
			equal(t, names, c.want)
			if c.filter.Page.Limit == 0 {
				equal(t, page.Total, len(c.want))
			} else {
				equal(t, page.Total, 4)
			}
		})
	}
	// Names come with each page, in each policy's order.
	page, err = b.Policies(ctx, storage.PolicyFilter{OrganizationID: b.orgA, Page: storage.PageRequest{Number: 3, Limit: 1}})
	noError(t, err)
	equal(t, page.Items, want[2:3])

	summary, err := b.PolicySummary(ctx, b.orgA)
	noError(t, err)
	equal(t, []int{summary[storage.PolicyDraft], summary[storage.PolicyActive], summary[storage.PolicyInactive], summary[storage.PolicyArchived]}, []int{2, 1, 0, 1})
	summary, err = b.PolicySummary(ctx, b.unknown)
	noError(t, err)
	equal(t, len(summary), 0)
}

func testServerPolicies(t *testing.T, b *bundle) {
	ctx := t.Context()
	var want []storage.Policy
	for i, status := range []storage.PolicyStatus{storage.PolicyActive, storage.PolicyDraft, storage.PolicyInactive, storage.PolicyArchived} {
		for _, shadow := range []bool{true, false} {
			p := b.newPolicy(b.orgA, fmt.Sprint(status, shadow), b.agent(t, b.orgA, fmt.Sprint(i, shadow)).ID)
			p.Status, p.Shadow = status, shadow
			v, err := b.CreatePolicy(ctx, p)
			noError(t, err)
			if status == storage.PolicyActive || status == storage.PolicyDraft && shadow {
				want = append(want, v.Policy)
			}
		}
	}
	_, err := b.CreatePolicy(ctx, func() storage.Policy { p := b.newPolicy(b.orgB, "Theirs"); p.Status = storage.PolicyActive; return p }())
	noError(t, err)
	got, err := b.ServerPolicies(ctx, b.orgA, b.serverA.ID)
	noError(t, err)
	equal(t, got, want)
	for _, server := range []string{b.serverB.ID, b.unknown} {
		got, err = b.ServerPolicies(ctx, b.orgA, server)
		noError(t, err)
		equal(t, len(got), 0)
	}
}

func testPolicyRevisions(t *testing.T, b *bundle) {
	ctx := t.Context()
	p := b.policy(t, "Policy", storage.PolicyDraft)
	for i := range 5 {
		_, err := b.UpdatePolicy(ctx, b.orgA, p.ID, b.userA2, start.Add(time.Duration(i)*time.Second), func(p *storage.Policy) error {
			p.Description = fmt.Sprint(i)
			return nil
		})
		noError(t, err)
	}
	var numbers []int
	for number := 1; number <= 4; number++ {
		page, err := b.PolicyRevisions(ctx, b.orgA, p.ID, storage.PageRequest{Number: number, Limit: 2})
		noError(t, err)
		equal(t, page.Total, 6)
		for _, r := range page.Items {
			numbers = append(numbers, r.Number)
			equal(t, r.Policy.Revision, r.Number)
		}
	}
	equal(t, numbers, []int{6, 5, 4, 3, 2, 1})
}
