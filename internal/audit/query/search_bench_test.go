//go:build unix

package query_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Main{M: m}) }

const (
	benchOrganization = "0190aaaa-0000-7000-8000-000000000001"
	benchUsers        = 1_000
	benchChunk        = 2_500 // calls in a chunk: five seconds of 500 calls a second
	benchRate         = 500
)

// rowsVariable is the number of calls in the log of BenchmarkSearch.
const rowsVariable = "DURWARD_AUDIT_ROWS"

// fill writes a log of calls, with their outcomes in groups, as a node ships them.
func fill(b *testing.B, store storage.Audits, rows int) (start, end time.Time) {
	b.Helper()
	start = time.Unix(1_800_000_000, 0).UTC()
	chain := format.ChainOf(benchOrganization, "0190cccc-0000-7000-8000-000000000001", "00000001")
	shared := make([][]byte, benchUsers)
	for i := range shared {
		shared[i] = format.AppendSharedOf(nil, &storage.AuditEntry{
			Kind: storage.AuditCall, Event: "decision", UserID: fmt.Sprintf("0190bbbb-0000-7000-8000-%012d", i), Client: "assistant", ServerID: fmt.Sprintf("0190dddd-0000-7000-8000-%012d", i%40),
			Server: fmt.Sprint("server-", i%40), Method: "tools/call", Decision: "allow", Rule: "Everybody reads", PolicyID: "0190eeee-0000-7000-8000-000000000001", PolicyRevision: 3, Roles: []string{"user"}, Groups: []string{"engineering"},
		})
	}
	var batch []storage.AuditChunk
	var scratch []byte
	at := start
	for row := 0; row < rows; {
		c := storage.AuditChunk{OrganizationID: benchOrganization, Node: chain.Node, Segment: chain.Segment, First: chain.Sequence + 1}
		previous := chain.Hash
		body := format.AppendChunkHead(nil, &previous)
		add := func(text []byte) {
			var hash [32]byte
			hash, scratch = format.Next(&chain, text, scratch)
			body = format.AppendChunkRecord(body, &hash, text)
		}
		from := at
		var outcomes []storage.AuditOutcome
		for range min(benchChunk, rows-row) {
			at = at.Add(time.Second / benchRate)
			e := storage.AuditEntry{At: at, Kind: storage.AuditCall, Tool: fmt.Sprint("tool-", row%100)}
			format.Name(&e, []byte(strconv.Itoa(row)))
			add(format.AppendShared(format.AppendOwnOf(nil, &e), shared[row*7919%benchUsers]))
			outcomes = append(outcomes, storage.AuditOutcome{Call: e.ID, At: at.Add(time.Millisecond), Outcome: "ok", Duration: time.Millisecond, UpstreamStatus: 200})
			if len(outcomes) == 20 || row == rows-1 {
				last := outcomes[len(outcomes)-1].At
				add(format.AppendEntry(nil, &storage.AuditEntry{ID: format.NewID(last), At: last, Kind: storage.AuditCall, Event: "outcomes", Outcomes: outcomes}))
				outcomes = outcomes[:0]
			}
			row++
		}
		format.SetLast(body, &chain.Hash)
		c.Last, c.Data = chain.Sequence, format.AppendChunk(nil, body)
		c.From, c.To = format.ChunkSpan(from.UnixNano(), at.Add(time.Millisecond).UnixNano())
		if batch = append(batch, c); len(batch) == 20 || row == rows {
			if err := store.AddAuditChunks(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			batch = nil
		}
	}
	return start, at.Add(time.Second)
}

// processor returns the processor time of the process. On a machine with other users, wall time says little.
func processor(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkSearch reads pages of a large log: DURWARD_AUDIT_ROWS calls, 10^6 without it. make audit-bench has 10^7. It
// reports the 95th percentile of the time of a page, and of the numbers of values.
func BenchmarkSearch(b *testing.B) {
	rows := 1_000_000
	if text := os.Getenv(rowsVariable); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for name, open := range map[string]func(*testing.B) storage.Audits{
		"sqlite": func(b *testing.B) storage.Audits { return sqlitetest.Open(b) },
		"postgres": func(b *testing.B) storage.Audits {
			store, err := postgres.Open(b.Context(), pgtest.Database(b), postgres.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = store.Close() })
			return store
		},
	} {
		b.Run(name, func(b *testing.B) {
			store := open(b)
			began := time.Now()
			start, end := fill(b, store, rows)
			b.Logf("%d rows were written in %s", rows, time.Since(began).Round(time.Second))
			f := query.Filter{OrganizationID: benchOrganization, From: start, To: end}
			of := f
			of.UserID = "0190bbbb-0000-7000-8000-000000000007"
			nobody := f
			nobody.UserID = "0190bbbb-0000-7000-8000-999999999999"
			failed := f
			failed.Outcome = "error"
			random := func(i int) *query.Position {
				return &query.Position{At: start.Add(time.Duration(uint64(i)*2654435761%uint64(rows)) * time.Second / benchRate)}
			}
			page := func(f query.Filter, where func(int) *query.Position) func(context.Context, int) error {
				return func(ctx context.Context, i int) error {
					found, err := query.Search(ctx, store, f, where(i), 100)
					if err == nil && len(found.Rows) < 100 && !found.Partial && found.Next != nil {
						err = fmt.Errorf("%d rows", len(found.Rows))
					}
					return err
				}
			}
			newest := func(int) *query.Position { return nil }
			for _, c := range []struct {
				name string
				f    func(context.Context, int) error
			}{
				{"newest page", page(f, newest)}, {"a page anywhere", page(f, random)}, {"of one in 1000 users", page(of, random)},
				{"of nobody", page(nobody, random)}, {"of no outcome", page(failed, random)},
				{"facets", func(ctx context.Context, _ int) error {
					_, err := query.CountFacets(ctx, store, f, query.Facets)
					return err
				}},
			} {
				b.Run(c.name, func(b *testing.B) {
					var times []time.Duration
					before := processor(b)
					for i := 0; b.Loop(); i++ {
						began := time.Now()
						if err := c.f(b.Context(), i); err != nil {
							b.Fatal(err)
						}
						times = append(times, time.Since(began))
					}
					b.ReportMetric(float64((processor(b)-before).Microseconds())/1000/float64(len(times)), "cpu-ms/op")
					slices.Sort(times)
					b.ReportMetric(float64(times[len(times)*95/100].Microseconds())/1000, "p95-ms")
				})
			}
		})
	}
}
