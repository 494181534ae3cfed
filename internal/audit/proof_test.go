package audit

import (
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestProves checks that proves accepts the records that the gateway has written at their place, and tells which texts
// are unchanged.
func TestProves(t *testing.T) {
	keys := &lineKeys{macs: sharedGateway().macs, signatures: sharedSigner()}
	const node, segment = "n", "00000001"
	text := func(tool string) []byte { return appendEntry(nil, intent(tool)) }
	// made is record 3 of a chain whose last record is 2.
	made := func() (before *provenChain, r record) {
		before = newProvenChain(acme, node, segment)
		for range 2 {
			_, _ = next(&before.AuditChain, text("before"), nil)
		}
		after := before.AuditChain
		r = record{organization: []byte(acme), text: text("tool")}
		r.hash, _ = nextOf(&after, &r, nil)
		r.sequence, r.mac = 3, after.Sealed(keys.macs)
		return before, r
	}
	for name, c := range map[string]struct {
		change         func(before *provenChain, r *record)
		proven, sealed bool
	}{
		"as it was":                 {func(*provenChain, *record) {}, true, true},
		"another text":              {func(_ *provenChain, r *record) { r.text = text("another") }, false, true},
		"another hash":              {func(_ *provenChain, r *record) { r.hash[0] ^= 1 }, false, false},
		"another MAC":               {func(_ *provenChain, r *record) { r.mac[0] ^= 1 }, false, false},
		"no MAC":                    {func(_ *provenChain, r *record) { r.mac = storage.AuditMAC{} }, false, false},
		"another sequence":          {func(_ *provenChain, r *record) { r.sequence = 4 }, false, false},
		"behind one that is gone":   {func(before *provenChain, _ *record) { *before = *newProvenChain(acme, node, segment) }, false, true},
		"of another segment":        {func(before *provenChain, _ *record) { *before = *newProvenChain(acme, node, "00000002") }, false, false},
		"twice":                     {func(before *provenChain, r *record) { before.Sequence, before.Hash = r.sequence, r.hash }, false, false},
		"behind what is after it":   {func(before *provenChain, _ *record) { before.Sequence = 9 }, false, false},
		"behind another one":        {func(before *provenChain, _ *record) { before.Hash[0] ^= 1 }, false, true},
		"another text of its place": {func(before *provenChain, r *record) { r.text = text("x"); before.Sequence = 1 }, false, true},
	} {
		before, r := made()
		c.change(before, &r)
		was := before.AuditChain
		proven, sealed := keys.proves(before, &r, false)
		if proven != c.proven || sealed != c.sealed {
			t.Errorf("%s: proven %v, sealed %v", name, proven, sealed)
		}
		if moved := before.AuditChain != was; moved != c.sealed || moved && (before.Sequence != r.sequence || before.Hash != r.hash) {
			t.Errorf("%s: the chain has moved: %v", name, moved)
		}
		for _, keys := range []*lineKeys{nil, keys} {
			before, r := made()
			c.change(before, &r)
			if proven, sealed := keys.proves(before, &r, true); !proven || !sealed || before.Sequence != r.sequence || before.Hash != r.hash {
				t.Errorf("%s: of a durward before MACs it is not taken", name)
			}
		}
		before, r = made()
		c.change(before, &r)
		if proven, sealed := (*lineKeys)(nil).proves(before, &r, false); !proven || !sealed {
			t.Errorf("%s: without keys it is not taken", name)
		}
	}
	signed := (&Checkpoint{Format: checkpointFormat, Node: node, Segment: segment, Number: 1, Chains: []Head{}}).sign(sharedSigner())
	foreign := (&Checkpoint{Format: checkpointFormat, Node: node, Segment: segment, Number: 1, Chains: []Head{}}).sign(newGatewayKeys().signer)
	if !keys.signed(&signed) || keys.signed(&foreign) || !(*lineKeys)(nil).signed(&foreign) {
		t.Error("whose checkpoint it is, is not told")
	}
	for format, want := range map[int]bool{longSegmentFormat: true, bareSegmentFormat: true, segmentFormat: false} {
		if (&header{Format: format}).bare() != want {
			t.Errorf("a segment of format %d has no MACs: %v", format, !want)
		}
	}
	if (*header)(nil).bare() {
		t.Error("a segment without a first line needs no MACs")
	}
}
