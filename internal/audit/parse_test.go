package audit

import (
	"errors"
	"strings"
	"testing"
)

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

// TestValidOrganization checks the characters that an organization's id may have.
func TestValidOrganization(t *testing.T) {
	for id, want := range map[string]bool{
		"": true, acme: true, "AZaz09-_.": true, strings.Repeat("x", 64): true,
		strings.Repeat("x", 65): false, "/": false, ":": false, "@": false, "[": false, "`": false, "{": false, "a b": false, "\"": false, "\\": false, "ä": false, "\x00": false, ",": false,
	} {
		if validOrganization(id) != want {
			t.Errorf("%q is an organization's id: %v", id, !want)
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
		line(acme, "1", hash, recordEntry+"{}}"):                                                     true,
		line(acme, "1", hash, recordMAC+strings.Repeat("B", macLength-1)+"A"+recordEntry+"{}}"):      true,
		line("", "1", hash, recordEntry+"{}}"):                                                       true,
		line("a b", "1", hash, recordEntry+"{}}"):                                                    false,
		line(acme, "0", hash, recordEntry+"{}}"):                                                     false,
		line(acme, "1", hash[1:], recordEntry+"{}}"):                                                 false,
		line(acme, "1", hash[1:]+"B", recordEntry+"{}}"):                                             false,
		line(acme, "1", hash[1:]+"\r", recordEntry+"{}}"):                                            false,
		line(acme, "1", hash[1:], ""):                                                                false,
		line(acme, "1", hash, recordMAC+mac[1:]):                                                     false,
		line(acme, "1", hash, recordMAC+mac+recordEntry+"{}}"):                                       false, // bits that no byte has
		line(acme, "1", hash, recordMAC+strings.Repeat("A", macLength)+recordEntry+"{}}"):            false, // as when there is none
		line(acme, "1", hash, recordMAC+strings.Repeat("B", macLength-1)+"\r"+recordEntry+"{}}"):     false,
		line(acme, "1", hash, recordEntry+"{}"):                                                      false,
		line(acme, "1", hash, recordEntry+"{} "):                                                     false,
		line(acme, "1", hash, recordEntry+"}"):                                                       false,
		line(acme, "1", hash, recordEntry):                                                           false,
		line(acme, "1", hash, ""):                                                                    false,
		recordStart + acme:                                                                           false,
		recordStart + acme + recordNext + "1":                                                        false,
		line(acme, "2", hash, recordEntry+sharingStart+`x","0":1}}`):                                 true,
		line(acme, "1", hash, recordEntry+sharingStart+`x","0":1}}`):                                 false, // refers to itself
		line(acme, "1", hash, recordEntry+sharingStart+`x","0":2}}`):                                 false,
		line(acme, "2", hash, recordEntry+sharingStart+`x","0":0}}`):                                 false,
		line(acme, "2", hash, recordEntry+sharingStart+`x"}}`):                                       false,
		line(acme, "2", hash, recordEntry+sharingStart+`x","0":{}}}`):                                true,
		`{"checkpoint":{},"signature":""}`:                                                           false,
		`{"format":1,"node":"n","segment":"00000001","time":"2026-01-02T03:04:05Z","checkpoint":0}`:  true,
		`{"format":6,"node":"n","segment":"00000001","time":"2026-01-02T03:04:05Z","checkpoint":0}`:  true,
		`{"format":0,"node":"n","segment":"00000001","time":"2026-01-02T03:04:05Z","checkpoint":0}`:  false,
		`{"format":7,"node":"n","segment":"00000001","time":"2026-01-02T03:04:05Z","checkpoint":0}`:  false,
		`{"format":6, "node":"n","segment":"00000001","time":"2026-01-02T03:04:05Z","checkpoint":0}`: false,
		`{"format":"6"}`: false,
		"":               false,
	} {
		if _, err := new(parser).parse([]byte(text)); (err == nil) != want || err != nil && !errors.Is(err, errLine) {
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
		own, part := splitShared([]byte(text))
		if string(own) != want[0] || string(part) != want[1] || (part == nil) != (want[1] == "") {
			t.Errorf("%s is cut into %s and %s", text, own, part)
		}
	}
	for text, want := range map[string]int64{
		`{"I":"x","0":17}`: 17, `{"I":"x","0":{},"0":1}`: 1, `{"i":"x","0":17}`: 0, `{"I":"x","0":17`: 0, `{"I":"x","0":}`: 0, `{"I":"x"}`: 0, `{"I":"x","0":{}}`: 0,
	} {
		if own, sequence, ok := splitReference([]byte(text)); ok != (want > 0) || ok && (sequence != want || string(own)+sharedStart != text[:strings.LastIndex(text, sharedStart)+len(sharedStart)]) {
			t.Errorf("%s refers to %d, %v", text, sequence, ok)
		}
	}
}

// TestSegmentNumber checks that a segment has one name.
func TestSegmentNumber(t *testing.T) {
	for name, want := range map[string]int{"00000001": 1, "99999999": 99999999, "100000000": 100000000, "00000000": 0, "1": 0, "000000001": 0, "-0000001": 0, "store": 0, "": 0, "+0000001": 0} {
		if got, ok := segmentNumber(name); ok != (want > 0) || ok && got != want {
			t.Errorf("%q is segment %d, %v", name, got, ok)
		}
	}
}

// TestTrimZeros checks that zeros at the end are removed, also whole pages of them, and no other zeros.
func TestTrimZeros(t *testing.T) {
	for _, before := range []int{0, 1, pageSize - 1, pageSize, pageSize + 1} {
		for _, zeros := range []int{0, 1, pageSize - 1, pageSize, pageSize + 1, 3 * pageSize} {
			text := make([]byte, before+zeros)
			for i := range before {
				text[i] = 'x'
			}
			if got := len(trimZeros(text)); got != before {
				t.Errorf("of %d bytes and %d zeros %d are left", before, zeros, got)
			}
		}
	}
}
