package validate

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

var nothing = regexp.MustCompile(`^$`)

// TestSecretsAreNotShown checks L03: no problem shows a secret inside a value of another type, or beside it.
func TestSecretsAreNotShown(t *testing.T) {
	const canary = "c4n4ry"
	readers := map[string]func(*Object){
		"text": func(o *Object) { o.Text("f", Text{Pattern: nothing}) }, "uuid": func(o *Object) { o.UUID("f", 0) },
		"int": func(o *Object) { o.Int("f", Integer{}) }, "bool": func(o *Object) { o.Bool("f", 0) }, "time": func(o *Object) { o.Time("f", 0) },
		"document": func(o *Object) { o.Document("f", 0, 1) }, "texts": func(o *Object) { o.Texts("f", List{}, Text{Pattern: nothing}) },
		"uuids": func(o *Object) { o.UUIDs("f", List{}) }, "ints": func(o *Object) { o.Ints("f", List{}, Integer{}) },
		"objects": func(o *Object) {
			for _, inner := range o.Objects("f", List{Hold: true}).Value {
				if inner != nil {
					inner.Only()
				}
			}
		},
		"object": func(o *Object) {
			if inner := o.Object("f", 0).Value; inner != nil {
				inner.Only()
			}
		},
		"unknown": func(o *Object) { o.Only() },
	}
	for _, body := range []string{
		`{"f":{"client_secret":"c4n4ry"}}`, `{"f":[{"client_secret":"c4n4ry"}]}`, `{"f":[[{"a":{"X-Api-Key":["c4n4ry"]}}]]}`,
		`{"f":{"a":"c4n4ry","\u0074oken":1}}`, `{"f":"{\"password\":\"c4n4ry\"}"}`, `{"f":["Authorization: c4n4ry"]}`,
		`{"f":[{"name":"api_key","value":"c4n4ry"}]}`, `{"f":{"name":"Authorization","value":"c4n4ry"}}`,
		`{"f":"c4n4ry","password":"x"}`, `{"f":["c4n4ry"],"bearerToken":null}`, `{"f":{"a":"c4n4ry"},"code":1}`, `{"f":[{"a":"c4n4ry"},5],"cookies":[]}`,
		`{"github_token":"c4n4ry","f":1}`, `{"apikey":["c4n4ry"],"f":1}`,
	} {
		for name, read := range readers {
			o := parse(t, body)
			read(o)
			answer, err := json.Marshal(o.problems)
			if err != nil || strings.Contains(string(answer), canary) || strings.Contains(o.problems.Error(), canary) {
				t.Errorf("%s, %s: %s, %v", name, body, answer, err)
			}
		}
	}
	for _, query := range []string{"page=c4n4ry&token=x", "access_token=c4n4ry&page=c4n4ry", "page=" + url.QueryEscape("password: c4n4ry")} {
		q, err := ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		q.Page()
		q.Int("access_token", Integer{})
		q.NoOthers()
		if answer, err := json.Marshal(q.problems); err != nil || len(q.problems) == 0 || strings.Contains(string(answer), canary) {
			t.Errorf("%s: %s, %v", query, answer, err)
		}
	}
	if err := InPath("id", UUIDParsing, "m", "token="+canary); strings.Contains(asJSON(t, err), canary) {
		t.Error(asJSON(t, err))
	}
}

// TestOthersAreShown checks that an invalid value is shown where no secret is near.
func TestOthersAreShown(t *testing.T) {
	o := parse(t, `{"f":{"a":[5]},"g":"not-an-id","max_tokens":"x","inner":{"password":1}}`)
	o.Text("f", Text{})
	o.UUID("g", 0)
	o.Int("max_tokens", Integer{})
	got := asJSON(t, o.Err())
	for _, want := range []string{`"input":{"a":[5]}`, `"input":"not-an-id"`, `"input":"x"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
