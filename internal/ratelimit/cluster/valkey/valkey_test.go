package valkey

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/ratelimit/cluster/clustertest"
	"github.com/durward-gateway/durward/internal/ratelimit/cluster/valkey/valkeytest"
	"github.com/durward-gateway/durward/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stoppedClock is a clock that tests set: microseconds, in a key.
const stoppedClock = `
local at = redis.call('GET', '{durward-limits}:clock')
local t = redis.call('TIME')
if at then t = {math.floor(tonumber(at) / 1000000), tonumber(at) % 1000000} end
local now, us = tonumber(t[1]) - 1700000000, tonumber(t[2])
`

func TestCounters(t *testing.T) {
	clustertest.Run(t, func(t *testing.T) clustertest.Server {
		s := valkeytest.New(t)
		option, err := rueidis.ParseURL(s.Address())
		if err != nil {
			t.Fatal(err)
		}
		option.DisableCache = true
		client, err := rueidis.NewClient(option)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return clustertest.Server{
			Expires: true,
			Open: func(t *testing.T) storage.SharedCounters {
				c, err := New(s.Address())
				if err != nil {
					t.Fatal(err)
				}
				c.scripts = newScripts(stoppedClock)
				return c
			},
			Set: func(t *testing.T, at time.Time) {
				t.Helper()
				if err := client.Do(t.Context(), client.B().Set().Key(prefix+"clock").Value(decimal(at.UnixMicro())).Build()).Error(); err != nil {
					t.Fatal(err)
				}
			},
			Keys: func(t *testing.T) int {
				t.Helper()
				// Keys expire by the server's own clock, which tests cannot set, so keys with an expiry count as gone.
				keys, err := client.Do(t.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice()
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, key := range keys {
					ttl, err := client.Do(t.Context(), client.B().Ttl().Key(key).Build()).AsInt64()
					if err != nil || ttl > 125 || ttl < 0 && !strings.HasSuffix(key, ":clock") {
						t.Errorf("%q lives for %d s: %v", key, ttl, err)
					}
					if ttl >= 0 {
						n++
					}
				}
				return n
			},
		}
	})
}

func BenchmarkCharge(b *testing.B) {
	c, err := New(valkeytest.New(b).Address())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	clustertest.Benchmark(b, c)
}
