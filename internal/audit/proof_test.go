package audit

import (
	"testing"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// TestProves checks that proves accepts the records that the gateway has written at their place, and tells which texts
// are unchanged.
func TestProves(t *testing.T) {
	keys := &segments.Keys{MACs: sharedGateway().macs, Signatures: sharedSigner()}
	const node, segment = "n", "00000001"
	text := func(tool string) []byte { return format.AppendEntry(nil, intent(tool)) }
	// made is record 3 of a chain whose last record is 2.
	made := func() (before *segments.ProvenChain, r format.Record) {
		before = segments.NewProvenChain(acme, node, segment)
		for range 2 {
			_, _ = format.Next(&before.AuditChain, text("before"), nil)
		}
		after := before.AuditChain
		r = format.Record{Organization: []byte(acme), Text: text("tool")}
		r.Hash, _ = format.Next(&after, r.Text, nil)
		r.Sequence, r.MAC = 3, after.Sealed(keys.MACs)
		return before, r
	}
	for name, c := range map[string]struct {
		change         func(before *segments.ProvenChain, r *format.Record)
		proven, sealed bool
	}{
		"as it was":        {func(*segments.ProvenChain, *format.Record) {}, true, true},
		"another text":     {func(_ *segments.ProvenChain, r *format.Record) { r.Text = text("another") }, false, true},
		"another hash":     {func(_ *segments.ProvenChain, r *format.Record) { r.Hash[0] ^= 1 }, false, false},
		"another MAC":      {func(_ *segments.ProvenChain, r *format.Record) { r.MAC[0] ^= 1 }, false, false},
		"no MAC":           {func(_ *segments.ProvenChain, r *format.Record) { r.MAC = storage.AuditMAC{} }, false, false},
		"another sequence": {func(_ *segments.ProvenChain, r *format.Record) { r.Sequence = 4 }, false, false},
		"behind one that is gone": {func(before *segments.ProvenChain, _ *format.Record) {
			*before = *segments.NewProvenChain(acme, node, segment)
		}, false, true},
		"of another segment": {func(before *segments.ProvenChain, _ *format.Record) {
			*before = *segments.NewProvenChain(acme, node, "00000002")
		}, false, false},
		"twice": {func(before *segments.ProvenChain, r *format.Record) {
			before.Sequence, before.Hash = r.Sequence, r.Hash
		}, false, false},
		"behind what is after it":   {func(before *segments.ProvenChain, _ *format.Record) { before.Sequence = 9 }, false, false},
		"behind another one":        {func(before *segments.ProvenChain, _ *format.Record) { before.Hash[0] ^= 1 }, false, true},
		"another text of its place": {func(before *segments.ProvenChain, r *format.Record) { r.Text = text("x"); before.Sequence = 1 }, false, true},
	} {
		before, r := made()
		c.change(before, &r)
		was := before.AuditChain
		proven, sealed := keys.Proves(before, &r, false)
		if proven != c.proven || sealed != c.sealed {
			t.Errorf("%s: proven %v, sealed %v", name, proven, sealed)
		}
		if moved := before.AuditChain != was; moved != c.sealed || moved && (before.Sequence != r.Sequence || before.Hash != r.Hash) {
			t.Errorf("%s: the chain has moved: %v", name, moved)
		}
		for _, keys := range []*segments.Keys{nil, keys} {
			before, r := made()
			c.change(before, &r)
			if proven, sealed := keys.Proves(before, &r, true); !proven || !sealed || before.Sequence != r.Sequence || before.Hash != r.Hash {
				t.Errorf("%s: of a durward before MACs it is not taken", name)
			}
		}
		before, r = made()
		c.change(before, &r)
		if proven, sealed := (*segments.Keys)(nil).Proves(before, &r, false); !proven || !sealed {
			t.Errorf("%s: without keys it is not taken", name)
		}
	}
	signed := (&format.Checkpoint{Format: format.CheckpointFormat, Node: node, Segment: segment, Number: 1, Chains: []format.Head{}}).Sign(sharedSigner())
	foreign := (&format.Checkpoint{Format: format.CheckpointFormat, Node: node, Segment: segment, Number: 1, Chains: []format.Head{}}).Sign(newGatewayKeys().signer)
	if !keys.Signed(&signed) || keys.Signed(&foreign) || !(*segments.Keys)(nil).Signed(&foreign) {
		t.Error("whose checkpoint it is, is not told")
	}
	for version, want := range map[int]bool{format.LongSegmentFormat: true, format.BareSegmentFormat: true, format.SegmentFormat: false} {
		if (&format.Header{Format: version}).Bare() != want {
			t.Errorf("a segment of format %d has no MACs: %v", version, !want)
		}
	}
	if (*format.Header)(nil).Bare() {
		t.Error("a segment without a first line needs no MACs")
	}
}
