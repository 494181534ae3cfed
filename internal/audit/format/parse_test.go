package format

import (
	"errors"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// formerRecords stands for the reader of former records, which begin with "former".
type formerRecords struct{}

func (formerRecords) IsRecord(line []byte) bool { return strings.HasPrefix(string(line), "former") }

func (formerRecords) Parse(line []byte) (Record, error) { return Record{Sequence: 1, Text: line}, nil }

func (formerRecords) Problem(*Record, bool) string { return "a former problem" }

// TestParse checks which lines a segment may have behind its first one: records of its own format, and headers and
// checkpoints in one spelling.
func TestParse(t *testing.T) {
	record := string(lineOf(&Record{Organization: []byte(acme), Sequence: 10, Text: []byte(`{"i":"x"}`)}))
	header := func(version int) string {
		return string(Marshal(Header{Format: version, Node: "n", Segment: "00000001"}))
	}
	checkpoint := func(number int64, signature string) string {
		c := storage.AuditCheckpoint{Data: Marshal(Checkpoint{Format: CheckpointFormat, Node: "n", Segment: "00000001", Number: number, Chains: []Head{}}), Signature: []byte(signature)}
		return strings.TrimSuffix(string(AppendCheckpoint(nil, &c)), "\n")
	}
	for name, c := range map[string]struct {
		header string // "": the segment has none
		former Former
		line   string
		want   string // what the line is; "": it is malformed
	}{
		"a record":                             {header(SegmentFormat), formerRecords{}, record, "record"},
		"a record without a header":            {"", formerRecords{}, record, "record"},
		"a former record":                      {header(JSONSegmentFormat), formerRecords{}, "former", "record"},
		"a former one without a header":        {"", formerRecords{}, "former", "record"},
		"a former record in a present segment": {header(SegmentFormat), formerRecords{}, "former", ""},
		"a former record that nobody reads":    {"", nil, "former", ""},
		"a record in a former segment":         {header(JSONSegmentFormat), formerRecords{}, record, ""},
		"a record in the first segments":       {header(LongSegmentFormat), formerRecords{}, record, ""},
		"a record cut off":                     {header(SegmentFormat), nil, record[:len(record)-1], ""},
		"a header":                             {"", nil, header(SegmentFormat), "header"},
		"a header of the first format":         {"", nil, header(LongSegmentFormat), "header"},
		"a header of no format":                {"", nil, header(LongSegmentFormat - 1), ""},
		"a header of a later format":           {"", nil, header(SegmentFormat + 1), ""},
		"a header with a blank":                {"", nil, strings.Replace(header(SegmentFormat), ":", ": ", 1), ""},
		"a header with more":                   {"", nil, strings.Replace(header(SegmentFormat), "{", `{"more":1,`, 1), ""},
		"a header with a text for a number":    {"", nil, strings.Replace(header(SegmentFormat), "7", `"7"`, 1), ""},
		"a checkpoint":                         {header(SegmentFormat), nil, checkpoint(1, "signature"), "checkpoint"},
		"a checkpoint without a signature":     {header(SegmentFormat), nil, checkpoint(1, ""), "checkpoint"},
		"a checkpoint without a number":        {header(SegmentFormat), nil, checkpoint(0, "signature"), ""},
		"a checkpoint with a blank":            {header(SegmentFormat), nil, strings.Replace(checkpoint(1, "signature"), `,"signature":`, `, "signature":`, 1), ""},
		"a checkpoint with more":               {header(SegmentFormat), nil, strings.Replace(checkpoint(1, "signature"), `,"signature":`, `,"more":1,"signature":`, 1), ""},
		"a checkpoint with a number to sign":   {header(SegmentFormat), nil, strings.Replace(checkpoint(1, "signature"), `"signature":"`, `"signature":1,"x":"`, 1), ""},
		"a checkpoint that is a text":          {header(SegmentFormat), nil, `{"checkpoint":"x","signature":""}`, ""},
		"nothing":                              {header(SegmentFormat), formerRecords{}, "", ""},
		"other bytes":                          {header(SegmentFormat), formerRecords{}, "hello", ""},
		"a null":                               {"", formerRecords{}, "null", ""},
	} {
		p := Parser{Former: c.former}
		if c.header != "" {
			if l, err := p.Parse([]byte(c.header)); err != nil || l.Header == nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		l, err := p.Parse([]byte(c.line))
		got := ""
		switch {
		case err != nil:
		case l.Header != nil:
			got = "header"
		case l.Checkpoint != nil:
			got = "checkpoint"
		case l.Record.Sequence > 0:
			got = "record"
		}
		if got != c.want || err == nil && c.want == "" || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s is taken for a %s: %v", name, got, err)
		}
	}
}

// TestFirstHeaderCounts checks that a second header does not make a segment one of another format.
func TestFirstHeaderCounts(t *testing.T) {
	p := Parser{Former: formerRecords{}}
	for _, version := range []int{JSONSegmentFormat, SegmentFormat} {
		if _, err := p.Parse(Marshal(Header{Format: version})); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Parse([]byte("former")); err != nil || p.Format != JSONSegmentFormat {
		t.Errorf("format %d: %v", p.Format, err)
	}
}

// TestProblem checks that the problem of a record is told by who has read it.
func TestProblem(t *testing.T) {
	p := Parser{Former: formerRecords{}}
	for line, want := range map[string][2]string{
		"former": {"a former problem", "a former problem"},
		string(lineOf(&Record{Organization: []byte(acme), Sequence: 10, Text: []byte(`{"i":"x"}`)})): {"", "the record or its hash was changed"},
	} {
		l, err := p.Parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		for i, changed := range []bool{false, true} {
			if got := p.Problem(&l.Record, changed); got != want[i] {
				t.Errorf("%q, changed %v: %q", line, changed, got)
			}
		}
	}
}
