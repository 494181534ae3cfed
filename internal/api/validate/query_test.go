package validate

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func query(t *testing.T, raw string) *Query {
	t.Helper()
	q, err := ParseQuery(raw)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestPage(t *testing.T) {
	for _, tt := range []struct {
		name, raw   string
		page, limit int
		want        []string
	}{
		{"defaults", "", 1, 10, nil},
		{"given", "page=3&limit=100", 3, 100, nil},
		{"G01 page 0", "page=0", 0, 10, []string{`greater_than_equal ["query","page"]`}},
		{"G01 page -1", "page=-1", 0, 10, []string{`greater_than_equal ["query","page"]`}},
		{"G01 page 2^31", "page=2147483648", 0, 10, []string{`less_than_equal ["query","page"]`}},
		{"G01 page 2^63", "page=9223372036854775808", 0, 10, []string{`less_than_equal ["query","page"]`}},
		{"G01 page of a million digits", "page=" + strings.Repeat("9", 1_000_000), 0, 10, []string{`less_than_equal ["query","page"]`}},
		{"G01 page 1.5", "page=1.5", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 page 1.0", "page=1.0", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 page 1e1", "page=1e1", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 page with a blank", "page=%201", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 page with a plus", "page=%2B1", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 page with a plus as blank", "page=+1", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 page 01", "page=01", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 page in hex", "page=0x1", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 page with an underscore", "page=1_0", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 page in Arabic digits", "page=%D9%A1", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 page empty", "page=", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 page without value", "page", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 page repeated", "page=1&page=1", 0, 10, []string{`int_parsing ["query","page"]`}},
		{"G01 limit 0", "limit=0", 1, 0, []string{`greater_than_equal ["query","limit"]`}},
		{"G01 limit 101", "limit=101", 1, 0, []string{`less_than_equal ["query","limit"]`}},
		{"G01 both", "limit=-1&page=x", 0, 0, []string{`int_parsing ["query","page"]`, `greater_than_equal ["query","limit"]`}},
		{"other case is another parameter", "Page=9", 1, 10, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := query(t, tt.raw)
			page, limit := q.Page()
			if diff := cmp.Diff(tt.want, described(t, q.Err())); diff != "" {
				t.Error(diff)
			}
			if tt.want == nil && (page != tt.page || limit != tt.limit) {
				t.Errorf("page %d, limit %d", page, limit)
			}
		})
	}
}

func TestParseQueryRefuses(t *testing.T) {
	for name, raw := range map[string]string{
		"P06 101 parameters":         strings.Repeat("a=1&", 100) + "b=1",
		"P06 10,001 parameters":      strings.Repeat("a=1&", 10_000) + "hidden=1",
		"P06 semicolon":              "a;b",
		"P06 semicolon in value":     "a=1;page=2",
		"bad percent-encoding":       "a=%zz",
		"bad percent-encoding, name": "%=1",
		"not UTF-8":                  "a=%ff",
	} {
		_, err := ParseQuery(raw)
		var refused *QueryError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseQuery(strings.Repeat("a=1&", 99) + "b=%3B"); err != nil {
		t.Errorf("100 parameters: %v", err)
	}
}

func TestQueryReaders(t *testing.T) {
	const id = "0190B6C2-7f3a-7d3e-8f00-0123456789ab"
	q := query(t, "status=active,error&status=pending&status=active&search=a%20b&id="+id+"&ids="+id+","+id+"&flag=true&unknown=%00")
	if diff := cmp.Diff([]string{"active", "error", "pending"}, q.Enums("status", "pending", "active", "error")); diff != "" {
		t.Error(diff)
	}
	if got := q.Text("search", Text{Max: 100}); got.Value != "a b" {
		t.Errorf("search: %+v", got)
	}
	if got := q.UUID("id", Required); got.Value != strings.ToLower(id) {
		t.Errorf("id: %+v", got)
	}
	if got := q.UUIDs("ids", List{}); !cmp.Equal(got, []string{strings.ToLower(id)}) {
		t.Errorf("ids: %v", got)
	}
	if got := q.Bool("flag", 0); !got.Value {
		t.Errorf("flag: %+v", got)
	}
	if q.Enums("none", "a") != nil || q.UUIDs("none", List{}) != nil || q.Text("none", Text{}).Present {
		t.Error("absent parameters have values")
	}
	if err := q.Err(); err != nil {
		t.Error(err)
	}

	q = query(t, "status=active,bad&status=&search=a%00b&id=x&ids=x,"+id+"&flag=1&sort=name&long="+strings.Repeat("x", 101)+"&twice=1&twice=2")
	q.Enums("status", "pending", "active")
	q.Text("search", Text{})
	q.UUID("id", 0)
	q.UUIDs("ids", List{Max: 2})
	q.Bool("flag", 0)
	q.Text("sort", Text{Enum: []string{"updated_at"}})
	q.Text("long", Text{Max: 100})
	q.Text("twice", Text{})
	q.Text("gone", Text{Flags: Required})
	q.UUIDs("lost", List{Flags: Required})
	want := []string{
		`enum ["query","status",1]`, `enum ["query","status",2]`, `value_error ["query","search"]`, `uuid_parsing ["query","id"]`,
		`uuid_parsing ["query","ids",0]`, `bool_type ["query","flag"]`, `enum ["query","sort"]`, `string_too_long ["query","long"]`,
		`value_error ["query","twice"]`, `missing ["query","gone"]`, `missing ["query","lost"]`,
	}
	if diff := cmp.Diff(want, described(t, q.Err())); diff != "" {
		t.Error("B06 Q02 Q04", diff)
	}
}

func TestPath(t *testing.T) {
	if id, err := PathUUID("server_id", "0190B6C2-7F3A-7d3e-8f00-0123456789ab"); err != nil || id != "0190b6c2-7f3a-7d3e-8f00-0123456789ab" {
		t.Errorf("%q, %v", id, err)
	}
	for _, s := range []string{"", "x", "0190b6c27f3a7d3e8f000123456789ab", "{0190b6c2-7f3a-7d3e-8f00-0123456789a}", "0190b6c2-7f3a-7d3e-8f00-0123456789ag",
		"0190b6c2-7f3a-7d3e-8f00-0123456789a\n", "0190b6c2-7f3a-7d3e-8f0000123456789ab", "' OR 1=1 --"} {
		_, err := PathUUID("server_id", s)
		if diff := cmp.Diff([]string{`uuid_parsing ["path","server_id"]`}, described(t, err)); diff != "" {
			t.Errorf("%q: %s", s, diff)
		}
	}
}

func TestCheckMedia(t *testing.T) {
	for _, tt := range []struct {
		name  string
		media []string
		codes []string
		good  bool
	}{
		{"plain", []string{"application/json"}, nil, true},
		{"utf-8", []string{"application/json; charset=UTF-8"}, nil, true},
		{"other case", []string{"Application/JSON"}, nil, true},
		{"identity", []string{"application/json"}, []string{"identity"}, true},
		{"B09 missing", nil, nil, false},
		{"B09 empty", []string{""}, nil, false},
		{"B09 text/plain", []string{"text/plain"}, nil, false},
		{"B09 utf-16", []string{"application/json; charset=utf-16"}, nil, false},
		{"B09 two charsets", []string{"application/json; charset=utf-8; charset=utf-16"}, nil, false},
		{"B09 multipart", []string{"multipart/form-data; boundary=x"}, nil, false},
		{"B09 form", []string{"application/x-www-form-urlencoded"}, nil, false},
		{"B09 two values", []string{"application/json", "application/json"}, nil, false},
		{"B09 two values in one", []string{"application/json, text/plain"}, nil, false},
		{"B09 JSON of another kind", []string{"application/json-patch+json"}, nil, false},
		{"B08 gzip", []string{"application/json"}, []string{"gzip"}, false},
		{"B08 br", []string{"application/json"}, []string{"br"}, false},
		{"M24 gzip behind identity", []string{"application/json"}, []string{"identity", "gzip"}, false},
		{"M24 gzip joined", []string{"application/json"}, []string{"identity, gzip"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckMedia(http.Header{"Content-Type": tt.media, "Content-Encoding": tt.codes})
			if (err == nil) != tt.good || err != nil && !errors.Is(err, ErrMedia) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{"", "page=1&limit=10", "status=a,b&status=c", "a=%ff", "a;b", "page=%2B1", "&&=&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := ParseQuery(raw)
		if err != nil {
			return
		}
		page, limit := q.Page()
		q.Enums("status", "a", "b")
		q.Text("search", Text{Max: 10})
		if q.Err() == nil && (page < 1 || limit < 1 || limit > 100) {
			t.Errorf("page %d, limit %d", page, limit)
		}
	})
}
