// Package valkey keeps rate limit counters that nodes share in Valkey (7.2 or later) or Redis (6.2 or later).
//
// A step is one script and one round trip, for any number of counters. The keys of a deployment carry one hash tag, so
// that the keys of a step are on one server of a cluster too: a cluster gives failover, not more room. Nothing here is
// durable, and nothing has to be: keys expire after 125 s. Keys of counters carry their epoch: another epoch begins
// with empty counters.
package valkey

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/durward-gateway/durward/storage"
)

// prefix begins every key.
const prefix = "{durward-limits}:"

// Keys that exist once for all counters. A server that has lost them has lost the epoch too.
const (
	epochKey = prefix + "epoch"
	runKey   = prefix + "run"
	nodesKey = prefix + "living"
	toldKey  = prefix + "told"
)

const (
	dialTimeout = time.Second
	// silence is the time without an answer after which a connection counts as broken.
	silence = 2 * time.Second
	// portion is the number of counters that one script reads.
	portion = 500
)

// Counters keeps counters in a Valkey server. It connects on first use, and again after a failure.
type Counters struct {
	option  rueidis.ClientOption
	scripts scripts
	number  atomic.Int64 // number of the last question

	mu         sync.Mutex
	client     rueidis.Client
	connecting bool
	closed     bool
	background sync.WaitGroup // goroutines that connect and close
}

// Errors of exchanges.
var (
	errConnecting = errors.New("there is no connection to the server yet")
	errClosed     = errors.New("the counters are closed")
	errAnswer     = errors.New("the server answered something else")
)

// New takes the address of a server: valkey://, redis://, or valkeys:// and rediss:// over TLS, with user, password and
// database as in redis://user:password@host:6379/0, or unix:///path. It does not connect yet.
func New(address string) (*Counters, error) {
	option, err := parse(address)
	if err != nil {
		return nil, err
	}
	option.DisableCache = true // counters are not cached, and not every server supports it
	option.DisableRetry = true // a retry could make a charge twice
	option.AlwaysPipelining = true
	option.DialCtxFn = dialInStep
	option.ClientName = "durward"
	option.Dialer = net.Dialer{Timeout: dialTimeout, KeepAlive: silence}
	option.ConnWriteTimeout = silence
	c := &Counters{option: option, scripts: newScripts(clock)}
	c.number.Store(rand.Int64N(1 << 52)) //nolint:gosec // so that nodes do not count alike, when a proxy mixes up their answers (Z-R02); exact in Lua
	return c, nil
}

func parse(address string) (rueidis.ClientOption, error) {
	option, err := rueidis.ParseURL(address)
	if err != nil {
		return rueidis.ClientOption{}, errors.New("the address of the server cannot be read") // the cause may quote the password
	}
	return option, nil
}

// Ping checks that a server answers, on a connection of its own. It changes nothing there.
func Ping(ctx context.Context, address string) error {
	option, err := parse(address)
	if err != nil {
		return err
	}
	option.DisableCache, option.Dialer = true, net.Dialer{Timeout: dialTimeout}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Do(ctx, client.B().Ping().Build()).Error()
}

// connected returns the client. Without one it begins to connect and does not wait.
func (c *Counters) connected() (rueidis.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, errClosed
	case c.client != nil:
		return c.client, nil
	case !c.connecting:
		c.connecting = true
		c.background.Go(c.connect)
	}
	return nil, errConnecting
}

func (c *Counters) connect() {
	client, err := rueidis.NewClient(c.option)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connecting = false
	switch {
	case err != nil: // the next exchange tries again
	case c.closed:
		c.background.Go(client.Close)
	default:
		c.client = client
	}
}

// Close implements storage.SharedCounters.
func (c *Counters) Close() error {
	c.mu.Lock()
	c.closed = true
	if c.client != nil {
		c.background.Go(c.client.Close)
		c.client = nil
	}
	c.mu.Unlock()
	c.background.Wait()
	return nil
}

// drop closes a connection whose answers do not match its questions.
func (c *Counters) drop(client rueidis.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == client {
		c.background.Go(client.Close) // Close waits for other answers
		c.client = nil
	}
}

// run runs a script and returns its answer without the number. The answer has at least the given number of elements.
func (c *Counters) run(ctx context.Context, script *rueidis.Lua, keys, args []string, least int) ([]rueidis.RedisMessage, error) {
	client, err := c.connected()
	if err != nil {
		return nil, err
	}
	number := c.number.Add(1)
	args[0] = strconv.FormatInt(number, 10)
	answer, err := script.Exec(ctx, client, keys, args).ToArray()
	if err != nil {
		return nil, fmt.Errorf("running a script: %w", err)
	}
	if len(answer) < 1+least {
		c.drop(client)
		return nil, errAnswer
	}
	if got, err := answer[0].AsInt64(); err != nil || got != number {
		c.drop(client)
		return nil, errAnswer
	}
	return answer[1:], nil
}

// prefixOf returns the beginning of the keys of an epoch's counters.
func prefixOf(epoch storage.CounterEpoch) string { return prefix + decimal(int64(epoch)) + ":" }

func groupKey(prefix string, group []byte) string { return prefix + "members:" + string(group) }

// keysOf returns the keys of the counters of a step, then of their groups, then of the epoch.
func keysOf(epoch storage.CounterEpoch, n int, key func(i int) *storage.CounterKey) []string {
	prefix := prefixOf(epoch)
	keys := make([]string, 2*n+1)
	for i := range n {
		k := key(i)
		keys[i], keys[n+i] = prefix+string(k[:]), groupKey(prefix, k[:16])
	}
	keys[2*n] = epochKey
	return keys
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

const (
	looking  = "0"
	charging = "1"
)

func (c *Counters) step(ctx context.Context, mode string, epoch storage.CounterEpoch, charges []storage.CounterCharge, states []storage.CounterState) (at uint32, ok bool, err error) {
	args := make([]string, 3, 3+2*len(charges))
	args[1], args[2] = mode, decimal(int64(epoch))
	for i := range charges {
		args = append(args, decimal(charges[i].Amount), decimal(charges[i].Limit))
	}
	keys := keysOf(epoch, len(charges), func(i int) *storage.CounterKey { return &charges[i].Key })
	answer, err := c.run(ctx, c.scripts.charge, keys, args, 2+2*len(charges))
	if err != nil {
		return 0, false, err
	}
	numbers, err := integers(answer)
	if err != nil {
		return 0, false, err
	}
	if numbers[1] < 0 {
		return 0, false, storage.ErrCountersLost
	}
	for i := range states {
		states[i] = storage.CounterState{Used: numbers[2+2*i], Wait: time.Duration(numbers[3+2*i]) * time.Microsecond}
	}
	return uint32(numbers[0]), numbers[1] == 1, nil
}

func integers(answer []rueidis.RedisMessage) ([]int64, error) {
	numbers := make([]int64, len(answer))
	for i := range answer {
		var err error
		if numbers[i], err = answer[i].AsInt64(); err != nil {
			return nil, errAnswer
		}
	}
	return numbers, nil
}

// Charge implements storage.SharedCounters.
func (c *Counters) Charge(ctx context.Context, epoch storage.CounterEpoch, charges []storage.CounterCharge, states []storage.CounterState) (at uint32, ok bool, err error) {
	return c.step(ctx, charging, epoch, charges, states)
}

// Look implements storage.SharedCounters.
func (c *Counters) Look(ctx context.Context, epoch storage.CounterEpoch, charges []storage.CounterCharge, states []storage.CounterState) (bool, error) {
	_, ok, err := c.step(ctx, looking, epoch, charges, states)
	return ok, err
}

// Correct implements storage.SharedCounters.
func (c *Counters) Correct(ctx context.Context, epoch storage.CounterEpoch, corrections []storage.CounterCorrection) error {
	return c.change(ctx, c.scripts.correct, epoch, len(corrections), func(i int) (*storage.CounterKey, uint32, int64) {
		k := &corrections[i]
		return &k.Key, k.At, k.Delta
	})
}

// Restore implements storage.SharedCounters.
func (c *Counters) Restore(ctx context.Context, epoch storage.CounterEpoch, spent []storage.CounterSpent) error {
	return c.change(ctx, c.scripts.restore, epoch, len(spent), func(i int) (*storage.CounterKey, uint32, int64) {
		s := &spent[i]
		return &s.Key, s.Age, s.Amount
	})
}

// change runs a script that changes n counters, each at a second by an amount.
func (c *Counters) change(ctx context.Context, script *rueidis.Lua, epoch storage.CounterEpoch, n int, of func(i int) (key *storage.CounterKey, second uint32, amount int64)) error {
	args := make([]string, 2, 2+2*n)
	args[1] = decimal(int64(epoch))
	for i := range n {
		_, second, amount := of(i)
		args = append(args, strconv.FormatUint(uint64(second), 10), decimal(amount))
	}
	keys := keysOf(epoch, n, func(i int) *storage.CounterKey { key, _, _ := of(i); return key })
	answer, err := c.run(ctx, script, keys, args, 1)
	if err != nil {
		return err
	}
	switch made, err := answer[0].AsInt64(); {
	case err != nil:
		return errAnswer
	case made == 0:
		return storage.ErrCountersLost
	}
	return nil
}

// Used implements storage.SharedCounters. It asks the server even without keys, because an answer proves that the
// server is there.
func (c *Counters) Used(ctx context.Context, epoch storage.CounterEpoch, keys []storage.CounterKey, used []int64) error {
	for {
		n := min(len(keys), portion)
		answer, err := c.run(ctx, c.scripts.used, keysOf(epoch, n, func(i int) *storage.CounterKey { return &keys[i] }), make([]string, 1), n)
		if err != nil {
			return err
		}
		numbers, err := integers(answer)
		if err != nil {
			return err
		}
		copy(used, numbers)
		if keys, used = keys[n:], used[n:]; len(keys) == 0 {
			return nil
		}
	}
}

// Members implements storage.SharedCounters.
func (c *Counters) Members(ctx context.Context, epoch storage.CounterEpoch, group [16]byte) ([]storage.CounterMember, error) {
	answer, err := c.run(ctx, c.scripts.members, []string{groupKey(prefixOf(epoch), group[:])}, make([]string, 1), 0)
	if err != nil {
		return nil, err
	}
	keys := make([]storage.CounterKey, len(answer))
	for i := range answer {
		text, err := answer[i].ToString()
		if err != nil || len(text) != 16 {
			return nil, errAnswer
		}
		copy(keys[i][:], group[:])
		copy(keys[i][16:], text)
	}
	used := make([]int64, len(keys))
	if err := c.Used(ctx, epoch, keys, used); err != nil {
		return nil, err
	}
	var members []storage.CounterMember
	for i := range keys {
		if used[i] > 0 {
			members = append(members, storage.CounterMember{Member: [16]byte(keys[i][16:]), Used: used[i]})
		}
	}
	return members, nil
}

var nodeLife = strconv.FormatFloat(storage.NodeLife.Seconds(), 'f', -1, 64)

// Beat implements storage.SharedCounters. The server drops expired data itself.
func (c *Counters) Beat(ctx context.Context, node string, known storage.CounterEpoch) (storage.CounterBeat, error) {
	digits := fmt.Sprintf("%03d", rand.IntN(1000)) //nolint:gosec // so that no two epochs are the same, not so that nobody guesses them
	answer, err := c.run(ctx, c.scripts.beat, []string{epochKey, runKey, nodesKey, toldKey},
		[]string{"", hex.EncodeToString([]byte(node)), nodeLife, decimal(int64(known)), digits}, 4)
	if err != nil {
		return storage.CounterBeat{}, err
	}
	numbers, err := integers(answer)
	if err != nil {
		return storage.CounterBeat{}, err
	}
	return storage.CounterBeat{
		Epoch: storage.CounterEpoch(numbers[0]), Age: time.Duration(numbers[1]) * time.Microsecond, Nodes: int(numbers[2]), Told: int(numbers[3]),
	}, nil
}

// Interface guards
var _ storage.SharedCounters = (*Counters)(nil)
