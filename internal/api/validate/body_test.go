package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/strictjson"
)

func parse(t *testing.T, body string) *Object {
	t.Helper()
	o, err := ParseBody([]byte(body), strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// described returns each problem as "type loc", the part on which clients act.
func described(t *testing.T, err error) []string {
	t.Helper()
	var problems Problems
	if err != nil && !errors.As(err, &problems) {
		t.Fatalf("got %v, want Problems", err)
	}
	var out []string
	for _, p := range problems {
		loc, err := json.Marshal(p.Loc)
		if err != nil {
			t.Fatal(err)
		}
		if p.Msg == "" {
			t.Errorf("no message at %s", loc)
		}
		out = append(out, p.Type+" "+string(loc))
	}
	return out
}

func TestParseBodyRefuses(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"B10 empty", "", `missing ["body"]`},
		{"B10 blanks", " \n", `missing ["body"]`},
		{"B10 null", "null", `dict_type ["body"]`},
		{"B10 array", "[]", `dict_type ["body"]`},
		{"B10 text", `""`, `dict_type ["body"]`},
		{"B10 trailing data", `{} {}`, `json_invalid ["body",3]`},
		{"B10 leading garbage", `x{}`, `json_invalid ["body",0]`},
		{"byte order mark", "\xef\xbb\xbf{}", `json_invalid ["body",0]`},
		{"duplicate member", `{"a":1,"a":2}`, `json_invalid ["body",7]`},
		{"bad UTF-8", "{\"a\":\"\xff\"}", `json_invalid ["body",6]`},
		{"B01 depth 65", strings.Repeat(`{"a":`, 65), `json_invalid ["body",320]`},
		{"B05 NaN", `{"a":NaN}`, `json_invalid ["body",5]`},
		{"B05 a million digits", `{"a":` + strings.Repeat("1", 1_000_000) + `}`, `json_invalid ["body",5]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseBody([]byte(tt.body), strictjson.Limits{})
			if diff := cmp.Diff([]string{tt.want}, described(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWrongTypes checks attack B04: each reader with each kind of value.
func TestWrongTypes(t *testing.T) {
	values := map[string]string{
		"string": `"x"`, "digits": `"1"`, "int": `1`, "null": `null`, "array": `[]`, "object": `{}`, "bool": `true`, "1.0": `1.0`, "1e2": `1e2`,
		"B05 2^63": `9223372036854775808`, "B05 -2^63-1": `-9223372036854775809`, "B05 1e400": `1e400`, "B05 -0": `-0`, "01 as text": `"01"`,
		"B06 NUL": `"a\u0000"`, "uuid": `"0190B6C2-7f3a-7d3e-8f00-0123456789ab"`, "time": `"2026-01-02T03:04:05+02:00"`,
	}
	readers := map[string]struct {
		read func(o *Object)
		good []string
		kind string            // of every other value
		but  map[string]string // except for these
	}{
		"text": {func(o *Object) { o.Text("f", Text{}) }, []string{"string", "digits", "01 as text", "uuid", "time"}, StringType, map[string]string{"B06 NUL": ValueError}},
		"uuid": {func(o *Object) { o.UUID("f", 0) }, []string{"uuid"}, StringType,
			map[string]string{"string": UUIDParsing, "digits": UUIDParsing, "01 as text": UUIDParsing, "B06 NUL": UUIDParsing, "time": UUIDParsing}},
		"int": {func(o *Object) { o.Int("f", Integer{}) }, []string{"int"}, IntParsing,
			map[string]string{"B05 2^63": LessThanEqual, "B05 -2^63-1": GreaterThanEqual}},
		"bool": {func(o *Object) { o.Bool("f", 0) }, []string{"bool"}, BoolType, nil},
		"time": {func(o *Object) { o.Time("f", 0) }, []string{"time"}, StringType,
			map[string]string{"string": ValueError, "digits": ValueError, "01 as text": ValueError, "B06 NUL": ValueError, "uuid": ValueError}},
		"list":     {func(o *Object) { o.Texts("f", List{}, Text{}) }, []string{"array"}, ListType, nil},
		"object":   {func(o *Object) { o.Object("f", 0) }, []string{"object"}, DictType, nil},
		"document": {func(o *Object) { o.Document("f", 0, 100) }, []string{"object"}, DictType, nil},
		"objects":  {func(o *Object) { o.Objects("f", List{}) }, []string{"array"}, ListType, nil},
	}
	for reader, r := range readers {
		for value, text := range values {
			t.Run(reader+" "+value, func(t *testing.T) {
				o := parse(t, `{"f":`+text+`}`)
				r.read(o)
				want := []string{r.kind + ` ["body","f"]`}
				if kind, ok := r.but[value]; ok {
					want[0] = kind + ` ["body","f"]`
				}
				for _, good := range r.good {
					if good == value {
						want = nil
					}
				}
				if diff := cmp.Diff(want, described(t, o.Err())); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	o := parse(t, `{"name":"","slug":"A b","client_secret":5,"status":"x","ids":["z",null,7],"slots":[],"rules":[{"name":"ok","typo":1},{"actions":[1]},3],
		"meta":{"a":"\u0000"},"n":-1,"big":101,"NAME":"n"}`)
	o.Text("name", Text{Flags: Required, Min: 1, Max: 255})
	o.Text("slug", Text{Max: 63, Pattern: regexp.MustCompile(`^[a-z0-9-]+$`)})
	o.Text("client_secret", Text{Flags: Nullable | Secret})
	o.Text("status", Text{Enum: []string{"a", "b"}})
	o.UUIDs("ids", List{})
	o.Texts("slots", List{Min: 1}, Text{})
	for _, rule := range o.Objects("rules", List{Max: 10}).Value {
		rule.Text("name", Text{Flags: Required})
		rule.Texts("actions", List{}, Text{})
		rule.Only()
	}
	o.Document("meta", 0, 1<<16)
	o.Int("n", Integer{})
	o.Int("big", Integer{Max: 100})
	o.Text("server_id", Text{Flags: Required})
	o.Report(ValueError, "Value error, no such server", "ids", 0)
	want := []string{
		`string_too_short ["body","name"]`,
		`string_pattern_mismatch ["body","slug"]`,
		`string_type ["body","client_secret"]`,
		`enum ["body","status"]`,
		`uuid_parsing ["body","ids",0]`,
		`string_type ["body","ids",1]`,
		`string_type ["body","ids",2]`,
		`too_short ["body","slots"]`,
		`dict_type ["body","rules",2]`,
		`extra_forbidden ["body","rules",0,"typo"]`,
		`missing ["body","rules",1,"name"]`,
		`string_type ["body","rules",1,"actions",0]`,
		`value_error ["body","meta"]`,
		`greater_than_equal ["body","n"]`,
		`less_than_equal ["body","big"]`,
		`missing ["body","server_id"]`,
		`value_error ["body","ids",0]`,
	}
	if diff := cmp.Diff(want, described(t, o.Err())); diff != "" {
		t.Error(diff)
	}
}

func TestAbsentNullAndValue(t *testing.T) {
	o := parse(t, `{"null":null,"text":"é","n":0,"b":false,"t":"2026-01-02T03:04:05+02:00","list":["a","b"],"ints":[1,2],"o":{"x":1},"doc":{"a": 1}}`)
	if f := o.Text("absent", Text{}); f.Present || f.Set() || f.Ptr() != nil || f.Or("d") != "d" {
		t.Errorf("absent: %+v", f)
	}
	if f := o.Text("null", Text{Flags: Nullable}); !f.Present || !f.Null || f.Set() || f.Ptr() != nil || f.Or("d") != "d" {
		t.Errorf("null: %+v", f)
	}
	if f := o.Text("text", Text{Min: 1, Max: 1}); !f.Set() || f.Value != "é" || *f.Ptr() != "é" {
		t.Errorf("text: %+v", f)
	}
	if f := o.Int("n", Integer{}); !f.Set() || f.Value != 0 || f.Or(5) != 0 {
		t.Errorf("int: %+v", f)
	}
	if f := o.Bool("b", 0); !f.Set() || f.Or(true) {
		t.Errorf("bool: %+v", f)
	}
	if f := o.Time("t", 0); !f.Value.Equal(time.Date(2026, 1, 2, 1, 4, 5, 0, time.UTC)) || f.Value.Location() != time.UTC {
		t.Errorf("time: %+v", f)
	}
	if f := o.Texts("list", List{}, Text{}); !cmp.Equal(f.Value, []string{"a", "b"}) {
		t.Errorf("list: %+v", f)
	}
	if f := o.Ints("ints", List{}, Integer{}); !cmp.Equal(f.Value, []int64{1, 2}) {
		t.Errorf("ints: %+v", f)
	}
	if f := o.Object("o", 0); f.Value.Int("x", Integer{}).Value != 1 {
		t.Error("inner object")
	}
	if f := o.Document("doc", 0, 100); string(f.Value) != `{"a": 1}` {
		t.Errorf("document: %s", f.Value)
	}
	if f := o.Value("doc", 0); f.Value.Kind() != strictjson.Object || !o.Has("doc") || o.Has("Doc") {
		t.Error("value")
	}
	if err := o.Err(); err != nil {
		t.Error(err)
	}
}

func TestExactJSON(t *testing.T) {
	o := parse(t, `{"name":5,"n":null,"hidden":"","inner":{"token":7},"long":"`+strings.Repeat("x", 600)+`"}`)
	o.Text("name", Text{})
	o.Int("n", Integer{})
	o.Text("hidden", Text{Flags: Secret, Min: 1})
	o.Object("inner", Secret).Value.Text("token", Text{})
	o.Text("long", Text{Max: 3})
	o.Text("gone", Text{Flags: Required})
	got, err := json.Marshal(o.Err())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"detail":[` +
		`{"loc":["body","name"],"msg":"Input should be a valid string","type":"string_type","input":5},` +
		`{"loc":["body","n"],"msg":"Input should be a valid integer","type":"int_parsing","input":null},` +
		`{"loc":["body","hidden"],"msg":"String should have at least 1 character","type":"string_too_short","ctx":{"min_length":1}},` +
		`{"loc":["body","inner","token"],"msg":"Input should be a valid string","type":"string_type"},` +
		`{"loc":["body","long"],"msg":"String should have at most 3 characters","type":"string_too_long","ctx":{"max_length":3}},` +
		`{"loc":["body","gone"],"msg":"Field required","type":"missing"}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	text := "name: Input should be a valid string; n: Input should be a valid integer; hidden: String should have at least 1 character; " +
		"inner.token: Input should be a valid string; long: String should have at most 3 characters; gone: Field required"
	if o.Err().Error() != text {
		t.Errorf("joined: %s", o.Err())
	}
	if got, err := json.Marshal(Problems(nil)); err != nil || string(got) != `{"detail":[]}` {
		t.Errorf("none: %s %v", got, err)
	}
}

func TestBounds(t *testing.T) {
	o := parse(t, `{"a":["1","2","3"],"meta":{"k":"`+strings.Repeat("x", 100)+`"},"nul":{"deep":[{"\u0000":1}]},"no_nul":{"a":"\\u0000"}}`)
	o.Texts("a", List{Max: 2}, Text{})
	o.Document("meta", 0, 100)
	o.Value("nul", 0)
	o.Value("no_nul", 0)
	want := []string{`too_long ["body","a"]`, `too_long ["body","meta"]`, `value_error ["body","nul"]`}
	if diff := cmp.Diff(want, described(t, o.Err())); diff != "" {
		t.Error("B12 B13 B06", diff)
	}
	var many strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&many, `"k%d":1,`, i)
	}
	o = parse(t, `{`+many.String()+`"z":1}`)
	o.Only()
	if n := len(described(t, o.Err())); n != maxProblems {
		t.Errorf("%d problems", n)
	}
}

func FuzzBody(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":"x","b":1,"c":[1,"2",null],"d":{"a":{}}}`, `{"a":"\u0000"}`, `{"b":-0}`, `[`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := ParseBody(body, strictjson.Limits{})
		if err == nil {
			o.Text("a", Text{Flags: Required, Min: 1})
			o.Int("b", Integer{Max: 100})
			o.Texts("c", List{}, Text{})
			o.Document("d", 0, 1<<16)
			o.Only()
			err = o.Err()
		}
		var problems Problems
		if err != nil && !errors.As(err, &problems) {
			t.Fatal(err)
		}
		answer, err := json.Marshal(problems)
		if err != nil {
			t.Fatal(err)
		}
		if err := strictjson.Check(answer, strictjson.Limits{MaxDepth: 100}); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
	})
}

func BenchmarkParseBody(b *testing.B) {
	body := []byte(`{"name":"GitHub","slug":"github","mcp_server_directory_id":"0190b6c2-7f3a-7d3e-8f00-0123456789ab","meta":{"a":1}}`)
	b.ReportAllocs()
	for b.Loop() {
		o, err := ParseBody(body, strictjson.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		o.Text("name", Text{Flags: Required, Min: 1, Max: 255})
		o.UUID("mcp_server_directory_id", Required)
		o.Document("meta", 0, 1<<16)
		if o.Err() != nil {
			b.Fatal(o.Err())
		}
	}
}

// TestHeldPlaces checks that an invalid element of a list keeps its place, and that known problems can be asked for.
func TestHeldPlaces(t *testing.T) {
	o := parse(t, `{"ids":["a",1,"b"],"rules":[{"name":7},3]}`)
	if diff := cmp.Diff([]string{"a", "", "b"}, o.Texts("ids", List{Hold: true}, Text{}).Value); diff != "" {
		t.Error(diff)
	}
	rules := o.Objects("rules", List{Hold: true}).Value
	if len(rules) != 2 || rules[0] == nil || rules[1] != nil {
		t.Fatalf("%v", rules)
	}
	rules[0].Text("name", Text{})
	for place, want := range map[string]bool{"ids": false, "ids 0": false, "ids 1": true, "rules": false, "rules 0": false, "rules 0 name": true, "rules 0 name x": true, "rules 1": true, "rules 1 name": true} {
		var steps []any
		for step := range strings.FieldsSeq(place) {
			if n := strings.IndexByte("0123456789", step[0]); n >= 0 {
				steps = append(steps, n)
				continue
			}
			steps = append(steps, step)
		}
		if got := o.Wrong(steps...); got != want {
			t.Errorf("%s: %v", place, got)
		}
	}
	rules[0].Note(Problem{Loc: []any{"actions", 2}, Type: ValueError, Msg: "m", Ctx: map[string]any{"line": 1}})
	if got := described(t, o.Err()); got[len(got)-1] != `value_error ["body","rules",0,"actions",2]` {
		t.Error(got)
	}
}

func TestName(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`{"name": "Ann\u00e9e 1"}`, ""},
		{`{}`, `missing ["body","name"]`},
		{`{"name": ""}`, `string_too_short ["body","name"]`},
		{`{"name": "   "}`, `value_error ["body","name"]`},
		{`{"name": "a\u0007"}`, `value_error ["body","name"]`},
		{`{"name": "a\nb"}`, `value_error ["body","name"]`},
		{`{"name": "123456789"}`, `string_too_long ["body","name"]`},
		{`{"name": 1}`, `string_type ["body","name"]`},
	} {
		o := parse(t, tt.body)
		o.Name(Required, 8)
		if got := strings.Join(described(t, o.Err()), " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.body, got, tt.want)
		}
	}
}
