package former

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/audit/format"
)

const acme = "0190aaaa-0000-7000-8000-000000000001"

// TestParseSequence checks that a sequence has one spelling, and a bound.
func TestParseSequence(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "9": 9, "10": 10, "999999999999999999": 999999999999999999,
		"": 0, "0": 0, "01": 0, "-1": 0, "+1": 0, "1 ": 0, "1/": 0, "1:": 0, "1000000000000000000": 0, "1e3": 0,
	} {
		if got, ok := parseSequence([]byte(text)); ok != (want > 0) || ok && got != want {
			t.Errorf("%q is %d, %v", text, got, ok)
		}
	}
}

// TestParseLine checks that a record's line has one spelling.
func TestParseLine(t *testing.T) {
	hash, mac := strings.Repeat("A", hashLength), strings.Repeat("A", macLength-1)+"B"
	line := func(organization, sequence, hash, rest string) string {
		return recordStart + organization + recordNext + sequence + recordHash + hash + rest
	}
	for text, want := range map[string]bool{
		line(acme, "1", hash, recordEntry+"{}}"):                                                 true,
		line(acme, "1", hash, recordMAC+strings.Repeat("B", macLength-1)+"A"+recordEntry+"{}}"):  true,
		line("", "1", hash, recordEntry+"{}}"):                                                   true,
		line("a b", "1", hash, recordEntry+"{}}"):                                                false,
		line(acme, "0", hash, recordEntry+"{}}"):                                                 false,
		line(acme, "1", hash[1:], recordEntry+"{}}"):                                             false,
		line(acme, "1", hash[1:]+"B", recordEntry+"{}}"):                                         false,
		line(acme, "1", hash[1:]+"\r", recordEntry+"{}}"):                                        false,
		line(acme, "1", hash[1:], ""):                                                            false,
		line(acme, "1", hash, recordMAC+mac[1:]):                                                 false,
		line(acme, "1", hash, recordMAC+mac+recordEntry+"{}}"):                                   false, // bits that no byte has
		line(acme, "1", hash, recordMAC+strings.Repeat("A", macLength)+recordEntry+"{}}"):        false, // as when there is none
		line(acme, "1", hash, recordMAC+strings.Repeat("B", macLength-1)+"\r"+recordEntry+"{}}"): false,
		line(acme, "1", hash, recordEntry+"{}"):                                                  false,
		line(acme, "1", hash, recordEntry+"{} "):                                                 false,
		line(acme, "1", hash, recordEntry+"}"):                                                   false,
		line(acme, "1", hash, recordEntry):                                                       false,
		line(acme, "1", hash, ""):                                                                false,
		recordStart + acme:                                                                       false,
		recordStart + acme + recordNext + "1":                                                    false,
		line(acme, "2", hash, recordEntry+format.SharingStart+`x","0":1}}`):                      true,
		line(acme, "1", hash, recordEntry+format.SharingStart+`x","0":1}}`):                      false, // refers to itself
		line(acme, "1", hash, recordEntry+format.SharingStart+`x","0":2}}`):                      false,
		line(acme, "2", hash, recordEntry+format.SharingStart+`x","0":0}}`):                      false,
		line(acme, "2", hash, recordEntry+format.SharingStart+`x"}}`):                            false,
		line(acme, "2", hash, recordEntry+format.SharingStart+`x","0":{}}}`):                     true,
		"": false,
	} {
		if _, err := new(Parser).Parse([]byte(text)); (err == nil) != want || err != nil && !errors.Is(err, format.ErrMalformed) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestSplitShared checks the place at which an entry's own part ends.
func TestSplitShared(t *testing.T) {
	for text, want := range map[string][2]string{
		`{"I":"x","0":{"u":1}}`:        {`{"I":"x"`, `{"u":1}`},
		`{"I":"x","0":{},"0":{"u":1}}`: {`{"I":"x","0":{}`, `{"u":1}`},
		`{"i":"x","0":{"u":1}}`:        {`{"i":"x","0":{"u":1}}`, ""},
		`{"I":"x","0":{"u":1}`:         {`{"I":"x","0":{"u":1}`, ""},
		`{"I":"x","0":5}`:              {`{"I":"x","0":5}`, ""},
		`{"I":"x","d":{}}`:             {`{"I":"x","d":{}}`, ""},
	} {
		own, part := format.SplitShared([]byte(text))
		if string(own) != want[0] || string(part) != want[1] || (part == nil) != (want[1] == "") {
			t.Errorf("%s is cut into %s and %s", text, own, part)
		}
	}
	for text, want := range map[string]int64{
		`{"I":"x","0":17}`: 17, `{"I":"x","0":{},"0":1}`: 1, `{"I":"x","0":17`: 0, `{"I":"x","0":}`: 0, `{"I":"x"}`: 0, `{"I":"x","0":{}}`: 0,
	} {
		if own, sequence, ok := splitReference([]byte(text)); ok != (want > 0) || ok && (sequence != want || string(own)+format.SharedStart != text[:strings.LastIndex(text, format.SharedStart)+len(format.SharedStart)]) {
			t.Errorf("%s refers to %d, %v", text, sequence, ok)
		}
	}
}

// TestBounds checks that a shared part beyond the bounds may be in each record, since none can refer to it.
func TestBounds(t *testing.T) {
	line := func(sequence int, part string) []byte {
		return fmt.Appendf(nil, `%s%s%s%d%s%s%s%sx","t":1,"0":%s}}`, recordStart, acme, recordNext, sequence, recordHash, strings.Repeat("A", hashLength), recordEntry, format.SharingStart, part)
	}
	for name, size := range map[string]int{"too many": 1, "too long": 400} {
		var p Parser
		sequence, kept := 0, 0
		for range 2 {
			for i := range maxShared + 100 {
				sequence++
				part := fmt.Sprintf(`{"u":"%0*d"}`, size, i)
				if _, err := p.Parse(line(sequence, part)); err == nil && sequence > maxShared+100 {
					kept++
				}
			}
		}
		c := p.chains[acme]
		if len(c.byText) > maxShared || c.size > maxSharedSize || kept != maxShared+100-len(c.byText) || kept < 100 {
			t.Errorf("%s: %d parts, %d bytes, %d may be there again", name, len(c.byText), c.size, kept)
		}
	}
}

// FuzzParse checks that a line has one spelling, as far as it is known without its segment.
func FuzzParse(f *testing.F) {
	hash := strings.Repeat("A", hashLength)
	f.Add([]byte(recordStart + acme + recordNext + "1" + recordHash + hash + recordEntry + `{"i":"x"}}`))
	f.Add([]byte(recordStart + acme + recordNext + "2" + recordHash + hash + recordMAC + strings.Repeat("B", macLength-1) + "A" + recordEntry + format.SharingStart + `x","0":1}}`))
	f.Add([]byte(recordStart + recordNext + "2" + recordHash + hash + recordEntry + format.SharingStart + `x","0":{"u":"a"}}}`))
	f.Add([]byte(`{"o":"","n":1,"h":"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p Parser
		r, err := p.Parse(text)
		if err != nil {
			return
		}
		entry := string(r.Text)
		if p.last != nil && p.last.lost {
			entry = fmt.Sprintf("%s%d}", strings.TrimSuffix(entry, "{}}"), p.last.sequence)
		}
		mac := ""
		if strings.HasPrefix(string(text), fmt.Sprintf("%s%s%s%d%s%s%s", recordStart, r.Organization, recordNext, r.Sequence, recordHash, hashText.EncodeToString(r.Hash[:]), recordMAC)) {
			mac = recordMAC + hashText.EncodeToString(r.MAC[:])
		}
		written := fmt.Sprintf("%s%s%s%d%s%s%s%s%s}", recordStart, r.Organization, recordNext, r.Sequence, recordHash, hashText.EncodeToString(r.Hash[:]), mac, recordEntry, entry)
		if written != string(text) {
			t.Errorf("%q is written %q", text, written)
		}
	})
}

// TestParseHeader checks that a header has one spelling and a known format, and that the records of a segment have its
// form.
func TestParseHeader(t *testing.T) {
	const header = `{"format":7,"node":"n","segment":"00000001","time":"2026-01-02T03:04:05Z","checkpoint":0}`
	for text, want := range map[string]bool{
		header:                                  true,
		strings.Replace(header, "7", "1", 1):    true,
		strings.Replace(header, "7", "0", 1):    false,
		strings.Replace(header, "7", "8", 1):    false,
		strings.Replace(header, "7,", "7, ", 1): false,
		`{"format":"7"}`:                        false,
		`{"checkpoint":{},"signature":""}`:      false,
		"":                                      false,
	} {
		if _, err := NewParser().Parse([]byte(text)); (err == nil) != want || err != nil && !errors.Is(err, format.ErrMalformed) {
			t.Errorf("%s: %v", text, err)
		}
	}
	const text = `{"i":"x"}`
	lines := map[bool]string{
		true:  recordStart + acme + recordNext + "1" + recordHash + strings.Repeat("A", hashLength) + recordEntry + text + "}",
		false: string(format.AppendHead(nil, acme, 1, new([hashSize]byte), nil, len(text))) + text,
	}
	for version, former := range map[string]bool{"7": false, "6": true, "1": true} {
		for json, line := range lines {
			p := NewParser()
			if _, err := p.Parse([]byte(strings.Replace(header, "7", version, 1))); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Parse([]byte(line)); (err == nil) != (json == former) || err != nil && !errors.Is(err, format.ErrMalformed) {
				t.Errorf("format %s has %q: %v", version, line, err)
			}
		}
	}
}
