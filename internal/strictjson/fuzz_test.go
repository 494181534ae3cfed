package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// FuzzCheck compares Check with encoding/json, and Parse with both: an accepted text has the same value everywhere,
// so that it does not matter which reader the upstream uses (attack M05).
func FuzzCheck(f *testing.F) {
	f.Add(samples()["187B"]) // long seeds only make a fuzzer slow
	for _, text := range []string{
		`null`, `[1,-2.50e+3,"x\ud83d\ude00\n\/",true,false,null,{"n\u0061me":{}}]`, `{"a":1,"\u0061":2}`, `{"a":1,"A":2}`,
		`"\ud800"`, "\"\xc0\xaf\"", `[1]]`, "\xef\xbb\xbf{}", `01`, `1e999`, `{"":{"":[[]]}}`, "\"\u2028\"", `"\u0000"`, "{\"a\":1}\x00",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := Check(text, Limits{})
		v, perr := Parse(text, Limits{})
		if (err == nil) != (perr == nil) {
			t.Fatalf("Check says %v, Parse %v", err, perr)
		}
		if err != nil {
			if !reflect.DeepEqual(err, perr) {
				t.Fatalf("Check says %v, Parse %v", err, perr)
			}
			return
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatalf("encoding/json refuses: %v", err)
		}
		if !json.Valid(text) {
			t.Fatal("json.Valid refuses")
		}
		got := v.Any(func(lexeme string) any { return json.Number(lexeme) })
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %#v, encoding/json %#v", got, want)
		}
		compareTree(t, v)
		compareEach(t, v)
	})
}

// compareEach holds Each against Members.
func compareEach(t *testing.T, v Value) {
	if v.Kind() != Object {
		return
	}
	members := v.Members()
	for name, value := range Each(v.Raw()) {
		if len(members) == 0 || members[0].Name != string(name) || !bytes.Equal(value, members[0].Value.Raw()) {
			t.Fatalf("Each gives %q: %q of %q", name, value, v.Raw())
		}
		compareEach(t, members[0].Value)
		members = members[1:]
	}
	if len(members) > 0 {
		t.Fatalf("Each leaves out %q of %q", members[0].Name, v.Raw())
	}
}

// FuzzEach gives Each texts that no reader has accepted: it may return anything but must stay within the text and
// come to an end.
func FuzzEach(f *testing.F) {
	f.Add([]byte(`{"a`))
	f.Add([]byte(`{"a":[1,{"b":"]"}], "c\u0064" : "\\\"" }`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, value := range Each(text) {
			if !bytes.Contains(text, value) {
				t.Fatalf("%q is not in %q", value, text)
			}
		}
	})
}

// compareTree checks the accessors of v against each other.
func compareTree(t *testing.T, v Value) {
	if err := Check(v.Raw(), Limits{}); err != nil {
		t.Fatalf("raw text of a value: %v", err)
	}
	lexeme := func(l string) any { return l }
	if c := v.Clone(); !bytes.Equal(c.Raw(), v.Raw()) || c.Kind() != v.Kind() || c.Len() != v.Len() || !reflect.DeepEqual(c.Any(lexeme), v.Any(lexeme)) {
		t.Fatal("a clone differs")
	}
	for _, e := range v.Elems() {
		compareTree(t, e)
	}
	compareWithout(t, v)
	members := v.Members()
	for name, value := range v.EachMember() {
		if len(members) == 0 || members[0].Name != string(name) || members[0].Value != value {
			t.Fatalf("EachMember gives %q of %q", name, v.Raw())
		}
		members = members[1:]
	}
	if len(members) > 0 {
		t.Fatalf("EachMember leaves out %q of %q", members[0].Name, v.Raw())
	}
	seen := map[string]bool{}
	for _, m := range v.Members() {
		if seen[m.Name] {
			t.Fatalf("member %q twice", m.Name)
		}
		seen[strings.Clone(m.Name)] = true
		if got, ok := v.Get(m.Name); !ok || got != m.Value {
			t.Fatalf("Get(%q) gives another member", m.Name)
		}
		compareTree(t, m.Value)
	}
}

// compareWithout leaves every other member of v out.
func compareWithout(t *testing.T, v Value) {
	left := map[string]bool{}
	rest, err := Parse(v.AppendWithout(nil, func(name []byte) bool {
		left[string(name)] = len(left)%2 == 0
		return left[string(name)]
	}), Limits{})
	if err != nil {
		t.Fatalf("an object without some members: %v", err)
	}
	if members := v.Members(); rest.Len() != len(members)/2 || len(left) != len(members) {
		t.Fatalf("%d of %d members, asked for %d", rest.Len(), len(members), len(left))
	}
	for _, m := range v.Members() {
		if got, ok := rest.Get(m.Name); ok == left[m.Name] || ok && !bytes.Equal(got.Raw(), m.Value.Raw()) {
			t.Fatalf("member %q: %s", m.Name, got.Raw())
		}
	}
}

// FuzzAcceptedByPeers checks the other direction: a text that encoding/json accepts is accepted, unless the reason is
// one of those that this package adds on purpose.
func FuzzAcceptedByPeers(f *testing.F) {
	f.Add(samples()["187B"]) // long seeds only make a fuzzer slow
	f.Fuzz(func(t *testing.T, text []byte) {
		err, _ := Check(text, Limits{}).(*SyntaxError)
		if err == nil || err.WellFormed() || err.Reason == ReasonUTF8 || err.Reason == ReasonSurrogate {
			return
		}
		if json.Valid(text) {
			t.Fatalf("json.Valid accepts what is refused: %v", err)
		}
	})
}
