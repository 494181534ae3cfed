package accounts_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/llm/accounts"
)

// hanging is a dialer that connects to nothing, and ends with its context or after a minute.
type hanging struct{}

var errDialer = errors.New("the dialer's own limit")

func (hanging) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Minute):
		return nil, errDialer
	}
}

func (h hanging) DialPlain(ctx context.Context, network, address string) (net.Conn, error) {
	return h.DialContext(ctx, network, address)
}

// TestConnectTimeout checks that a connect timeout ends a dial, and lengthens none.
func TestConnectTimeout(t *testing.T) {
	d := accounts.TimedDialer{Dialer: hanging{}}
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){"TLS": d.DialContext, "plain": d.DialPlain} {
		for _, tc := range []struct {
			timeout, lasts time.Duration
			err            error
		}{
			{0, time.Minute, errDialer}, {-time.Second, time.Minute, errDialer}, {time.Second, time.Second, context.DeadlineExceeded}, {time.Hour, time.Minute, errDialer},
		} {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := dial(accounts.WithConnectTimeout(t.Context(), tc.timeout), "tcp", "models.example.test:443")
				if took := time.Since(began); !errors.Is(err, tc.err) || took != tc.lasts {
					t.Errorf("%s with %v: %v after %v, want %v after %v", name, tc.timeout, err, took, tc.err, tc.lasts)
				}
			})
		}
	}
}
