package edit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

const (
	serverID = "0190aaaa-0000-7000-8000-000000000001"
	agentA   = "0190aaaa-0000-7000-8000-00000000000a"
	agentB   = "0190aaaa-0000-7000-8000-00000000000b"
)

func read(t *testing.T, body string, required validate.Flags) (Edit, error) {
	t.Helper()
	o, err := validate.ParseBody([]byte(body), strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	e := Read(o, required)
	return e, o.Err()
}

func places(t *testing.T, err error) []string {
	t.Helper()
	var problems validate.Problems
	if err != nil && !errors.As(err, &problems) {
		t.Fatal(err)
	}
	var out []string
	for _, p := range problems {
		steps := make([]string, len(p.Loc))
		for i, step := range p.Loc {
			steps[i] = fmt.Sprint(step)
		}
		out = append(out, p.Type+" "+strings.Join(steps, "."))
	}
	return out
}

func TestReadHoldsPlaces(t *testing.T) {
	e, err := read(t, `{"name":"x","mcp_server_id":"`+serverID+`","application_ids":["z","`+agentA+`",7,"`+agentA+`","`+agentB+`"],
		"rules":[1,{"name":"a","authorized":true,"actions":["tools/call:ok",null,"tools/call:"]},{"name":"a","authorized":true,"x":1}]}`, validate.Required)
	want := []string{
		"uuid_parsing body.application_ids.0", "string_type body.application_ids.2", "dict_type body.rules.0", "string_type body.rules.1.actions.1",
		"extra_forbidden body.rules.2.x", "value_error body.rules.1.actions.2", "value_error body.rules.2.name",
	}
	if diff := cmp.Diff(want, places(t, err)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{agentA, agentB}, e.ApplicationIDs.Value); diff != "" {
		t.Error(diff)
	}
	got := places(t, e.References(&storage.ReferenceError{Server: true, Applications: []int{0, 1}}, "path", "id").Err())
	if diff := cmp.Diff([]string{"value_error body.mcp_server_id", "value_error body.application_ids.1", "value_error body.application_ids.4"}, got); diff != "" {
		t.Error(diff)
	}
	got = places(t, (&Edit{}).References(&storage.ReferenceError{Server: true, Applications: []int{0}}, "path", "id").Err())
	if diff := cmp.Diff([]string{"value_error path.id", "value_error path.id"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestLifecycle checks every pair of statuses.
func TestLifecycle(t *testing.T) {
	allowed := map[[2]storage.PolicyStatus]bool{
		{storage.PolicyDraft, storage.PolicyActive}: true, {storage.PolicyDraft, storage.PolicyArchived}: true,
		{storage.PolicyActive, storage.PolicyInactive}: true, {storage.PolicyActive, storage.PolicyArchived}: true,
		{storage.PolicyInactive, storage.PolicyActive}: true, {storage.PolicyInactive, storage.PolicyArchived}: true,
	}
	for _, from := range Statuses {
		for _, to := range Statuses {
			was, next := storage.PolicyStatus(from), storage.PolicyStatus(to)
			p := storage.Policy{Status: was, ServerID: serverID}
			e, err := read(t, `{"status":"`+to+`"}`, 0)
			if err != nil {
				t.Fatal(err)
			}
			problems := e.Apply(&p, "path", "id")
			if want := was == next || allowed[[2]storage.PolicyStatus{was, next}]; (problems == nil) != want || want && p.Status != next {
				t.Errorf("%s to %s: %v, is %s", from, to, problems, p.Status)
			}
			p = storage.Policy{Status: was}
			problems = Become(&p, next, "query", "id", 3)
			if (problems == nil) != (was == next || allowed[[2]storage.PolicyStatus{was, next}]) {
				t.Errorf("%s to %s: %v", from, to, problems)
			}
			for _, problem := range problems {
				if diff := cmp.Diff([]any{"query", "id", 3}, problem.Loc); diff != "" {
					t.Error(diff)
				}
			}
		}
		e, err := read(t, `{"name":"x","mcp_server_id":"`+serverID+`","status":"`+from+`"}`, validate.Required)
		if err != nil {
			t.Fatal(err)
		}
		p, problems := e.New()
		if (problems == nil) != (from == "DRAFT" || from == "ACTIVE") || p.Status != storage.PolicyStatus(from) {
			t.Errorf("made as %s: %v", from, problems)
		}
	}
}

func TestApply(t *testing.T) {
	full := storage.Policy{
		Name: "n", Description: "d", SupportContact: "c", Tags: []string{"t"}, Status: storage.PolicyDraft, ServerID: serverID,
		ApplicationIDs: []string{agentA}, Rules: []storage.Rule{{Name: "r"}}, Shadow: true,
	}
	for _, tt := range []struct {
		body string
		edit func(*storage.Policy)
	}{
		{`{}`, func(*storage.Policy) {}},
		{`{"application_ids":null}`, func(*storage.Policy) {}},
		{`{"application_ids":[]}`, func(p *storage.Policy) { p.ApplicationIDs = []string{} }},
		{`{"rules":[]}`, func(p *storage.Policy) { p.Rules = []storage.Rule{} }},
		{`{"tags":[],"description":"","support_contact":"","name":"m"}`, func(p *storage.Policy) {
			p.Tags, p.Description, p.SupportContact, p.Name = []string{}, "", "", "m"
		}},
		{`{"shadow":false}`, func(p *storage.Policy) { p.Shadow = false }},
		{`{"status":"ACTIVE"}`, func(p *storage.Policy) { p.Status, p.Shadow = storage.PolicyActive, false }},
		{`{"id":"x","rules_count":5,"created_at":1,"organization_id":null,"revision":9,"mcp_server_id":"` + serverID + `"}`, func(*storage.Policy) {}},
		{`{"rules":[{"name":"r","authorized":true,"condition":{"match": {"expr":"true"}}}]}`, func(p *storage.Policy) {
			p.Rules = []storage.Rule{{Name: "r", Active: true, Authorized: true, Actions: []string{"*"}, RolesGroups: []string{"*"}, Condition: json.RawMessage(`{"match": {"expr":"true"}}`)}}
		}},
	} {
		got, want := full, full
		tt.edit(&want)
		e, err := read(t, tt.body, 0)
		if err != nil {
			t.Fatalf("%s: %v", tt.body, err)
		}
		if problems := e.Apply(&got); problems != nil {
			t.Errorf("%s: %v", tt.body, problems)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", tt.body, diff)
		}
	}
	archived := full
	archived.Status, archived.Shadow = storage.PolicyArchived, false
	for _, body := range []string{`{"name":"m"}`, `{"description":"x"}`, `{"tags":[]}`, `{"application_ids":[]}`, `{"rules":[]}`} {
		p := archived
		e, err := read(t, body, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := places(t, e.Apply(&p, "path", "id").Err()); !cmp.Equal(got, []string{"value_error path.id"}) {
			t.Errorf("%s: %v", body, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"name":"x","mcp_server_id":"` + serverID + `","rules":[{"name":"r","authorized":true,"condition":{"match":{"expr":"R.attr.a == 1"}}}]}`,
		`{"rules":[null,{"actions":[1,"*"]}],"application_ids":[1,"` + agentA + `"]}`, `{"policies":[]}`, `{"status":"ACTIVE","shadow":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := validate.ParseBody(body, strictjson.Limits{})
		if err != nil {
			return
		}
		e := Read(o, 0)
		if len(e.places) != len(e.ApplicationIDs.Value) {
			t.Errorf("%d places of %d ids", len(e.places), len(e.ApplicationIDs.Value))
		}
		if o.Err() != nil {
			return
		}
		for _, r := range e.Rules.Value {
			if r.Name == "" || len(r.Actions) == 0 || len(r.RolesGroups) == 0 {
				t.Errorf("a rule that says nothing: %+v", r)
			}
		}
		p := storage.Policy{Status: storage.PolicyActive, ApplicationIDs: []string{agentA}}
		e.Apply(&p)
		if len(p.ApplicationIDs) == 0 && !e.ApplicationIDs.Set() {
			t.Error("a policy came to mean everybody without a word")
		}
	})
}
