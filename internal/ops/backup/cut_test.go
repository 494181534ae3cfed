package backup

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// unsigned signs nothing: nobody checks signatures here.
type unsigned struct{}

func (unsigned) Sign([]byte) []byte         { return []byte("signature") }
func (unsigned) Verify([]byte, []byte) bool { return false }

// covering returns the line of a checkpoint that covers records of a segment.
func covering(number int64, segment string, sequence int64) string {
	c := format.Checkpoint{
		Format: format.CheckpointFormat, Node: "00112233445566aa", Segment: "00000001", Number: number,
		Chains: []format.Head{{Organization: "acme", Segment: segment, Sequence: sequence, Hash: "00"}},
	}
	signed := c.Sign(unsigned{})
	return string(format.AppendCheckpoint(nil, &signed))
}

// TestJournalsEndWithTheStore writes archives of journals that went on when the store had been copied.
func TestJournalsEndWithTheStore(t *testing.T) {
	const own = storage.AuditStoreSegment
	before := "a record\n" + covering(1, "00000001", 8) + covering(2, own, 3)
	for name, test := range map[string]struct {
		first, want string
		second      bool // the next segment is in the archive
	}{
		"no checkpoint since":                  {before + "a record\n", before + "a record\n", true},
		"a checkpoint of calls":                {before + covering(3, "00000001", 9), before + covering(3, "00000001", 9), true},
		"a checkpoint of records of the store": {before + "a record\n" + covering(3, own, 4) + "another\n", before + "a record\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			from := node(t)
			put(t, from.Directory, map[string]string{
				"audit/00112233445566aa/00000001.ndjson": test.first, "audit/00112233445566aa/00000002.ndjson": "of the next segment\n",
				"audit/00112233445566bb/00000001.ndjson": "of another node\n",
			})
			from.Ends = func(context.Context, string) ([]storage.AuditChain, error) {
				return []storage.AuditChain{{Node: "00112233445566aa", OrganizationID: "acme", Segment: own, Sequence: 3}, {Node: "00112233445566aa", OrganizationID: "acme", Segment: "00000001", Sequence: 5}}, nil
			}
			to := target(t)
			if _, err := Read(t.Context(), write(t, from), to); err != nil {
				t.Fatal(err)
			}
			restored := tree(t, to.Directory)
			if diff := cmp.Diff(test.want, restored["audit/00112233445566aa/00000001.ndjson"]); diff != "" {
				t.Error(diff)
			}
			if _, ok := restored["audit/00112233445566aa/00000002.ndjson"]; ok != test.second {
				t.Errorf("the next segment is there: %v, want %v", ok, test.second)
			}
			if restored["audit/00112233445566bb/00000001.ndjson"] == "" {
				t.Error("the journal of another node is not there")
			}
		})
	}
}
