// Package counters keeps rate limit counters that nodes share in PostgreSQL (14 or later).
//
// A step is one statement, and the steps that arrive while a statement runs go out together in the next one. Its
// connections are its own, few, and never those of the store; commits wait for no disk. See schema.go for the tables.
package counters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/durward-gateway/durward/storage"
)

const (
	// MaxConns is the number of connections that a node opens: two exchanges of steps, one of looks, and one for
	// everything else.
	MaxConns = 4
	// timeout bounds an exchange, however many callers wait for it.
	timeout = time.Second
	// idleTimeout gives unused connections back to a server that has too few, within three times that duration: the
	// store needs them more.
	idleTimeout = 10 * time.Second
	// mostSteps bounds the steps of one statement.
	mostSteps = 200
	// attempts is the number of tries of a step that conflicts with others.
	attempts = 3
	// sweepPieces is the number of ranges of counters that a sweep examines. sweepInterval is the time between the
	// sweeps that Beat begins.
	sweepPieces   = 20
	sweepInterval = 5 * time.Second
)

// Counters keeps counters in a PostgreSQL database. It connects at its first use, and again when that failed.
type Counters struct {
	pool    *pgxpool.Pool
	running context.Context // until Close
	stop    context.CancelFunc

	charges batch[*step]
	looks   batch[*step]

	sweeping sync.WaitGroup

	mu      sync.Mutex
	ready   bool      // the schema is there
	swept   []byte    // the key at which the next sweep begins
	sweptAt time.Time // when the last one began
}

type step struct {
	epoch   storage.CounterEpoch
	charges []storage.CounterCharge
	states  []storage.CounterState
	at      uint32
	ok      bool
	lost    bool
}

// New makes counters in the database at an address: a URL or key=value words, as libpq takes them. It does not
// connect yet.
func New(dsn string) (*Counters, error) { return open(dsn, idleTimeout) }

func open(dsn string, idle time.Duration) (*Counters, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("the database's address cannot be read") // the cause may quote the password
	}
	config.MaxConns, config.MinConns, config.MinIdleConns = MaxConns, 0, 0
	config.MaxConnIdleTime, config.HealthCheckPeriod = idle, 2*idle // a look uses all of them again
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "durward limits"
	}
	config.ConnConfig.ConnectTimeout = timeout
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary // a standby counts nothing
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	config.AfterConnect = prepare
	c := &Counters{}
	c.running, c.stop = context.WithCancel(context.Background())
	if c.pool, err = pgxpool.NewWithConfig(c.running, config); err != nil {
		c.stop()
		return nil, errors.New("the database's address cannot be used")
	}
	c.charges = batch[*step]{most: mostSteps, limit: 2, do: c.charge}
	c.looks = batch[*step]{most: mostSteps, limit: 1, do: c.look}
	return c, nil
}

// prepareSQL sets up a connection: counters are not durable, plans find rows by their keys, and a hanging server
// gives up.
const prepareSQL = `SELECT set_config('synchronous_commit', 'off', false), set_config('statement_timeout', $1, false), set_config('lock_timeout', $1, false),
	set_config('idle_in_transaction_session_timeout', $1, false), set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false),
	set_config('plan_cache_mode', 'force_generic_plan', false)`

func prepare(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, prepareSQL, pgx.QueryExecModeExec, strconv.FormatInt(timeout.Milliseconds(), 10))
	return err
}

// Close implements storage.SharedCounters.
func (c *Counters) Close() error {
	c.mu.Lock()
	c.stop()
	c.mu.Unlock() // no sweep begins any more
	c.charges.done.Wait()
	c.looks.done.Wait()
	c.sweeping.Wait()
	c.pool.Close()
	return nil
}

// droppedCodes lists the error codes of a schema that no longer exists: of tables, functions and types, and of cached
// plans.
var droppedCodes = []string{"42P01", "42883", "42704", "XX000"}

// exchange runs f with a schema. Its time limit is that of c, not of the caller.
func (c *Counters) exchange(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := c.makeSchema(ctx); err != nil {
		return fmt.Errorf("making the tables of counters: %w", err)
	}
	for n := 1; ; n++ {
		err := f(ctx)
		var refused *pgconn.PgError
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &refused):
			return fmt.Errorf("asking the counters: %w", err)
		case slices.Contains(droppedCodes, refused.Code): // somebody dropped the schema
			c.mu.Lock()
			c.ready = false
			c.mu.Unlock()
			c.pool.Reset() // sessions remember what is not there any more
			return fmt.Errorf("asking the counters: %w", err)
		case n == attempts || refused.Code != "40001" && refused.Code != "40P01":
			return fmt.Errorf("asking the counters: %w", err)
		}
	}
}

// makeSchema makes the tables once.
func (c *Counters) makeSchema(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready {
		return nil
	}
	var exists bool
	if err := c.pool.QueryRow(ctx, existsSQL).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		err := pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, schemaLockSQL); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, schemaSQL, pgx.QueryExecModeSimpleProtocol)
			return err
		})
		if err != nil {
			return err
		}
	}
	c.ready = true
	return nil
}

// Charge implements storage.SharedCounters.
func (c *Counters) Charge(ctx context.Context, epoch storage.CounterEpoch, charges []storage.CounterCharge, states []storage.CounterState) (at uint32, ok bool, err error) {
	s, err := ask(ctx, &c.charges, epoch, charges, states)
	switch {
	case err != nil:
		return 0, false, err
	case s.lost:
		return 0, false, storage.ErrCountersLost
	}
	return s.at, s.ok, nil
}

// Look implements storage.SharedCounters.
func (c *Counters) Look(ctx context.Context, epoch storage.CounterEpoch, charges []storage.CounterCharge, states []storage.CounterState) (ok bool, err error) {
	s, err := ask(ctx, &c.looks, epoch, charges, states)
	if err != nil {
		return false, err
	}
	return s.ok, nil
}

// ask lets a step be made in a batch, which may outlive its caller: so the step has its own memory.
func ask(ctx context.Context, b *batch[*step], epoch storage.CounterEpoch, charges []storage.CounterCharge, states []storage.CounterState) (*step, error) {
	s := &step{epoch: epoch, charges: slices.Clone(charges), states: make([]storage.CounterState, len(charges))}
	if err := b.ask(ctx, s); err != nil {
		return nil, err
	}
	copy(states, s.states)
	return s, nil
}

func compareKeys(a, b storage.CounterKey) int { return bytes.Compare(a[:], b[:]) }

// keysOf returns the keys of steps in order, each once.
func keysOf(all []*asked[*step]) []storage.CounterKey {
	var keys []storage.CounterKey
	for _, q := range all {
		for i := range q.of.charges {
			keys = append(keys, q.of.charges[i].Key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return slices.Compact(keys)
}

func texts(keys []storage.CounterKey) [][]byte {
	out := make([][]byte, len(keys))
	for i := range keys {
		out[i] = keys[i][:]
	}
	return out
}

func (c *Counters) charge(all []*asked[*step]) {
	keys := keysOf(all)
	ends, epochs := make([]int32, 0, len(all)), make([]int64, 0, len(all))
	var places []int32
	var amounts, limits []int64
	for _, q := range all {
		for _, charge := range q.of.charges {
			place, _ := slices.BinarySearchFunc(keys, charge.Key, compareKeys)
			places = append(places, int32(place)+1)
			amounts, limits = append(amounts, charge.Amount), append(limits, charge.Limit)
		}
		ends, epochs = append(ends, int32(len(places))), append(epochs, int64(q.of.epoch))
	}
	var at int64
	var made []*bool // nil: of another epoch
	var used, waits []int64
	err := c.exchange(c.running, func(ctx context.Context) error {
		return c.pool.QueryRow(ctx, chargeSQL, epochs, texts(keys), ends, places, amounts, limits).Scan(&at, &made, &used, &waits)
	})
	if err == nil && (len(made) != len(all) || len(used) != len(places) || len(waits) != len(places)) {
		err = errors.New("the database answered something else")
	}
	for n, q := range all {
		if q.err = err; err != nil {
			continue
		}
		q.of.at, q.of.lost = uint32(at), made[n] == nil
		q.of.ok = made[n] != nil && *made[n]
		for i := range q.of.states {
			q.of.states[i] = storage.CounterState{Used: used[i], Wait: time.Duration(waits[i]) * time.Microsecond}
		}
		used, waits = used[len(q.of.states):], waits[len(q.of.states):]
	}
}

func (c *Counters) look(all []*asked[*step]) {
	found, err := c.read(c.running, readSQL, texts(keysOf(all)))
	for _, q := range all {
		if q.err = err; err != nil {
			continue
		}
		s := q.of
		s.ok = true
		for i, charge := range s.charges {
			s.states[i] = found.counters[charge.Key].state(charge, found.now)
			s.ok = s.ok && s.states[i].Wait == 0
		}
	}
}

// Correct implements storage.SharedCounters.
func (c *Counters) Correct(ctx context.Context, epoch storage.CounterEpoch, corrections []storage.CounterCorrection) error {
	corrections = slices.Clone(corrections)
	slices.SortStableFunc(corrections, func(a, b storage.CounterCorrection) int { return compareKeys(a.Key, b.Key) })
	keys := make([][]byte, len(corrections))
	seconds, deltas := make([]int64, len(corrections)), make([]int64, len(corrections))
	for i := range corrections {
		keys[i], seconds[i], deltas[i] = corrections[i].Key[:], int64(corrections[i].At), corrections[i].Delta
	}
	return c.change(ctx, correctSQL, epoch, keys, seconds, deltas)
}

// Restore implements storage.SharedCounters.
func (c *Counters) Restore(ctx context.Context, epoch storage.CounterEpoch, spent []storage.CounterSpent) error {
	spent = slices.Clone(spent)
	slices.SortFunc(spent, func(a, b storage.CounterSpent) int { return compareKeys(a.Key, b.Key) })
	keys := make([][]byte, len(spent))
	ages, amounts := make([]int64, len(spent)), make([]int64, len(spent))
	for i := range spent {
		keys[i], ages[i], amounts[i] = spent[i].Key[:], int64(spent[i].Age), spent[i].Amount
	}
	return c.change(ctx, restoreSQL, epoch, keys, ages, amounts)
}

// change changes counters. keys are in order, so that nodes do not wait for each other in a circle.
func (c *Counters) change(ctx context.Context, query string, epoch storage.CounterEpoch, keys [][]byte, seconds, amounts []int64) error {
	var made bool
	err := c.exchange(ctx, func(ctx context.Context) error {
		return c.pool.QueryRow(ctx, query, int64(epoch), keys, seconds, amounts).Scan(&made)
	})
	if err == nil && !made {
		return storage.ErrCountersLost
	}
	return err
}

// Used implements storage.SharedCounters.
func (c *Counters) Used(ctx context.Context, _ storage.CounterEpoch, keys []storage.CounterKey, used []int64) error {
	found, err := c.read(ctx, readSQL, texts(keys))
	if err != nil {
		return err
	}
	for i, k := range keys {
		used[i] = found.counters[k].used(found.now)
	}
	return nil
}

// Members implements storage.SharedCounters.
func (c *Counters) Members(ctx context.Context, _ storage.CounterEpoch, group [16]byte) ([]storage.CounterMember, error) {
	found, err := c.read(ctx, groupSQL, slices.Concat(group[:], make([]byte, 16)), slices.Concat(group[:], bytes.Repeat([]byte{0xff}, 16)))
	if err != nil {
		return nil, err
	}
	var members []storage.CounterMember
	for k, counter := range found.counters {
		if used := counter.used(found.now); used > 0 {
			members = append(members, storage.CounterMember{Member: [16]byte(k[16:]), Used: used})
		}
	}
	return members, nil
}

// Beat implements storage.SharedCounters.
func (c *Counters) Beat(ctx context.Context, node string, known storage.CounterEpoch) (beat storage.CounterBeat, err error) {
	begin := rand.Int64() | 1 //nolint:gosec // so that no two are the same, not so that nobody guesses it
	var age int64
	err = c.exchange(ctx, func(ctx context.Context) error {
		return c.pool.QueryRow(ctx, beatSQL, node, storage.NodeLife.Seconds(), int64(known), begin).Scan(&beat.Epoch, &age, &beat.Nodes, &beat.Told)
	})
	beat.Age = time.Duration(age) * time.Microsecond
	if err == nil {
		c.beginSweep()
	}
	return beat, err
}

// beginSweep begins a sweep when one is due. Beat does not wait for it, and does not fail with it.
func (c *Counters) beginSweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.sweptAt) < sweepInterval || c.running.Err() != nil {
		return
	}
	c.sweptAt = now
	c.sweeping.Go(func() { _ = c.exchange(c.running, c.sweep) }) // the next one continues where this one ended
}

// sweep examines the next ranges of counters.
func (c *Counters) sweep(ctx context.Context) error {
	for range sweepPieces {
		c.mu.Lock()
		from := c.swept
		c.mu.Unlock()
		if from == nil {
			from = []byte{}
		}
		var last []byte
		var n int
		if err := c.pool.QueryRow(ctx, sweepSQL, from).Scan(&last, &n); err != nil {
			return err
		}
		c.mu.Lock()
		c.swept = last // nil at the end: the next sweep begins anew
		c.mu.Unlock()
		if n == 0 {
			return nil
		}
	}
	return nil
}

// Interface guards
var _ storage.SharedCounters = (*Counters)(nil)
