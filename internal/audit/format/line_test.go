package format

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

// lineOf returns a record's line, without its line end.
func lineOf(r *Record) []byte {
	return append(AppendHead(nil, string(r.Organization), r.Sequence, &r.Hash, macOf(r), len(r.Text)), r.Text...)
}

// TestRecord checks that a record is one line without NUL bytes, and is read unchanged.
func TestRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Record{
			Organization: []byte(rapid.StringMatching(`[A-Za-z0-9._-]{0,64}`).Draw(t, "organization")),
			Sequence:     rapid.Int64Range(1, maxSequence).Draw(t, "sequence"),
			Text:         []byte(`{"i":"` + rapid.StringMatching(`[ -~é]{0,300}`).Draw(t, "text") + `"}`),
		}
		odd := rapid.SampledFrom([]byte{0, '\n', escape, escape + escaped, escaped, 1, 0xff})
		for _, b := range [][]byte{r.Hash[:], r.MAC[:]} {
			copy(b, rapid.SliceOfN(rapid.OneOf(rapid.Byte(), odd), len(b), len(b)).Draw(t, "bytes"))
		}
		line := lineOf(&r)
		if bytes.ContainsAny(line, "\n\x00") || !IsRecord(line) {
			t.Fatalf("%q", line)
		}
		got, _, err := ParseRecord(line, nil)
		if err != nil || got.Sequence != r.Sequence || got.Hash != r.Hash || got.MAC != r.MAC || !bytes.Equal(got.Organization, r.Organization) || !bytes.Equal(got.Text, r.Text) {
			t.Fatalf("%+v, %v, want %+v", got, err, r)
		}
	})
}

// TestMalformed checks that a record has its fields in one order and spelling, and that the error says what is wrong.
func TestMalformed(t *testing.T) {
	organization, sequence := appendField(nil, tagOrganization, acme), appendField(nil, tagSequence, "\x11")
	hash, mac := appendField(nil, tagHash, make([]byte, hashSize)), appendField(nil, tagMAC, bytes.Repeat([]byte{1}, macSize))
	text := appendField(nil, tagText, `{"i":"x"}`)
	long := func(field []byte) []byte { return slices.Concat(field[:1], []byte{field[1] | 0x80, 0}, field[2:]) }
	all := func(fields ...[]byte) []byte { return slices.Concat(fields...) }
	for name, c := range map[string]struct {
		fields []byte
		want   string // "": it is a record
	}{
		"whole":                     {all(organization, sequence, hash, mac, text), ""},
		"a text of 127 bytes":       {all(organization, sequence, hash, mac, appendField(nil, tagText, strings.Repeat("x", 127))), ""},
		"a text of 128 bytes":       {all(organization, sequence, hash, mac, appendField(nil, tagText, strings.Repeat("x", 128))), ""},
		"without a MAC":             {all(organization, sequence, hash, text), ""},
		"of no organization":        {all(appendField(nil, tagOrganization, ""), sequence, hash, mac, text), ""},
		"an unknown field":          {all(organization, sequence, hash, mac, []byte{99, 0}, text), "field 99 is not known"},
		"an unknown field at last":  {all(organization, sequence, hash, mac, text, []byte{8, 0}), "bytes follow its text"},
		"field 0":                   {all(organization, sequence, []byte{0, 0}), "field 0 is not known"},
		"two in another order":      {all(organization, hash, sequence, mac, text), "its hash is where its sequence should be"},
		"one twice":                 {all(organization, sequence, sequence, hash, mac, text), "its sequence is where its hash should be"},
		"without a text":            {all(organization, sequence, hash, mac), "a field is missing"},
		"bytes after it":            {all(organization, sequence, hash, mac, text, text), "bytes follow its text"},
		"a field of chunks":         {all(organization, sequence, hash, appendField(nil, tagMark, "mark")), "its mark is where its text should be"},
		"a long length":             {all(long(organization), sequence, hash, mac, text), "the length of its organization is impossible"},
		"an endless length":         {all(organization, []byte{byte(tagSequence)}, bytes.Repeat([]byte{0xff}, 11)), "the length of its sequence is impossible"},
		"a length without an end":   {all(organization, []byte{byte(tagSequence), 0x80}), "the length of its sequence is impossible"},
		"a short hash":              {all(organization, sequence, appendField(nil, tagHash, "short"), mac, text), "the length of its hash is impossible"},
		"a text cut off":            {all(organization, sequence, hash, mac, text[:len(text)-1]), "the length of its text is impossible"},
		"an empty text":             {all(organization, sequence, hash, mac, appendField(nil, tagText, "")), "the length of its text is impossible"},
		"no organization's id":      {all(appendField(nil, tagOrganization, "a b"), sequence, hash, mac, text), "its organization is no id"},
		"a long organization":       {all(appendField(nil, tagOrganization, strings.Repeat("x", 65)), sequence, hash, mac, text), "the length of its organization is impossible"},
		"a MAC of zeros":            {all(organization, sequence, hash, appendField(nil, tagMAC, make([]byte, macSize)), text), "its mac is no MAC"},
		"sequence 0":                {all(organization, appendField(nil, tagSequence, "\x00"), hash, mac, text), "its sequence is impossible"},
		"a sequence with a zero":    {all(organization, appendField(nil, tagSequence, "\x00\x01"), hash, mac, text), "its sequence is impossible"},
		"a negative sequence":       {all(organization, appendField(nil, tagSequence, "\xff\xff\xff\xff\xff\xff\xff\xff"), hash, mac, text), "its sequence is impossible"},
		"too high a sequence":       {all(organization, appendField(nil, tagSequence, "\x7f\xff\xff\xff\xff\xff\xff\xff"), hash, mac, text), "its sequence is impossible"},
		"the highest sequence":      {all(organization, appendField(nil, tagSequence, "\x0d\xe0\xb6\xb3\xa7\x63\xff\xff"), hash, mac, text), ""},
		"a sequence too much":       {all(organization, appendField(nil, tagSequence, "\x0d\xe0\xb6\xb3\xa7\x64\x00\x00"), hash, mac, text), "its sequence is impossible"},
		"the field behind the last": {all(organization, sequence, hash, mac, []byte{byte(tagMark) + 1, 0}, text), "field 8 is not known"},
		"without MAC and text":      {all(organization, sequence, hash), "a field is missing"},
		"an organization's tag":     {[]byte{byte(tagOrganization)}, "the length of its organization is impossible"},
		"a mark for a text":         {all(organization, sequence, hash, mac, appendField(nil, tagMark, "mark"), text), "its mark is where its text should be"},
		"nothing":                   {nil, "a field is missing"},
	} {
		_, _, err := ParseRecord(appendEscaped(nil, c.fields), nil)
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestEscapes checks that a line has one spelling.
func TestEscapes(t *testing.T) {
	for line, want := range map[string]string{
		"": "", "ab": "ab", "\x1b\x40": "\x00", "a\x1b\x4ab": "a\nb", "\x1b\x5b\x1b\x5b": "\x1b\x1b", "\x1b": "-", "a\x1b": "-", "\x1ba": "-", "\x1b\x41": "-", "\x1b\x1b": "-",
	} {
		plain, ok := appendUnescaped(nil, []byte(line))
		if ok != (want != "-") || ok && string(plain) != want {
			t.Errorf("%q is %q, %v", line, plain, ok)
		}
		if ok && string(appendEscaped(nil, plain)) != line {
			t.Errorf("%q is written %q", plain, appendEscaped(nil, plain))
		}
	}
	r := Record{Organization: []byte(acme), Sequence: 10, Text: []byte(`{"i":"x"}`)}
	if _, _, err := ParseRecord(slices.Concat([]byte{byte(tagOrganization), 0}, lineOf(&r)[2+len(acme):]), nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("a zero that is not escaped: %v", err)
	}
	if _, _, err := ParseRecord(bytes.Replace(lineOf(&r), []byte{escape, '\n' + escaped}, []byte{'\n'}, 1), nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("a line end that is not escaped: %v", err)
	}
	if IsRecord(nil) || IsRecord([]byte("{")) {
		t.Error("a line without the tag of an organization is a record")
	}
}

// TestTable checks that each field has a name of its own, and bounds.
func TestTable(t *testing.T) {
	names := make(map[string]bool)
	for i, f := range fields[1:] {
		if f.name == "" || names[f.name] || f.most < f.least || f.most == 0 {
			t.Errorf("field %d: %+v", i+1, f)
		}
		names[f.name] = true
	}
	if len(fields) > '{' {
		t.Error("a tag is a character with which a line of JSON begins")
	}
}

// TestDocumented checks that the documentation has every field.
func TestDocumented(t *testing.T) {
	manual, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "audit-format.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range fields[1:] {
		if row := fmt.Sprintf("| %d | %s |", i+1, f.name); !strings.Contains(string(manual), row) {
			t.Errorf("docs/audit-format.md does not say %q", row)
		}
	}
	for _, c := range []byte{0, '\n', escape} {
		if spelling := fmt.Sprintf("`%02x %02x`", escape, c+escaped); !strings.Contains(string(manual), spelling) {
			t.Errorf("docs/audit-format.md does not say %s", spelling)
		}
	}
}

// TestValidOrganization checks the characters that an organization's id may have.
func TestValidOrganization(t *testing.T) {
	for id, want := range map[string]bool{
		"": true, acme: true, "AZaz09-_.": true, strings.Repeat("x", 64): true,
		strings.Repeat("x", 65): false, "/": false, ":": false, "@": false, "[": false, "`": false, "{": false, "a b": false, "\"": false, "\\": false, "ä": false, "\x00": false, ",": false,
	} {
		if ValidOrganization(id) != want {
			t.Errorf("%q is an organization's id: %v", id, !want)
		}
	}
}

// FuzzParseRecord checks that a line has one spelling.
func FuzzParseRecord(f *testing.F) {
	for _, r := range []Record{
		{Organization: []byte(acme), Sequence: 1, Hash: [hashSize]byte{0, '\n', escape}, MAC: storage.AuditMAC{1, 0, '\n'}, Text: []byte(`{"i":"x"}`)},
		{Sequence: maxSequence, Text: []byte(`{"I":"AAAAAAAAAA","t":1,"0":{"u":"a"}}`)},
	} {
		f.Add(lineOf(&r))
	}
	f.Add([]byte{})
	f.Add([]byte("\x01\x00\x02\x01\x1b\x4a\x63\x01"))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, _, err := ParseRecord(line, nil)
		if err != nil {
			return
		}
		head := AppendHead(nil, string(r.Organization), r.Sequence, &r.Hash, macOf(&r), len(r.Text))
		if written := appendEscaped(head, r.Text); !bytes.Equal(written, line) {
			t.Errorf("%q is written %q", line, written)
		}
	})
}

// macOf returns a record's MAC, or nothing when it has none.
func macOf(r *Record) []byte {
	if r.MAC == (storage.AuditMAC{}) {
		return nil
	}
	return r.MAC[:]
}
