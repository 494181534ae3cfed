package devmode

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestParseListen(t *testing.T) {
	for _, test := range []struct {
		text, want string // want "": refused
	}{
		{"127.0.0.1:8080", "127.0.0.1:8080"},
		{"127.0.0.1:0", "127.0.0.1:0"},
		{"127.8.9.10:1", "127.8.9.10:1"},
		{"localhost:8080", "127.0.0.1:8080"},
		{"[::1]:8080", "[::1]:8080"},
		{"[::ffff:127.0.0.1]:8080", "127.0.0.1:8080"},
		{"0.0.0.0:8080", ""},
		{"[::]:8080", ""},
		{":8080", ""},
		{"192.168.1.2:8080", ""},
		{"[::ffff:192.168.1.2]:8080", ""},
		{"[::1%lo]:8080", ""},
		{"example.com:8080", ""},
		{"0x7f.1:8080", ""},
		{"127.0.0.1", ""},
		{"127.0.0.1:", ""},
		{"127.0.0.1:http", ""},
		{"127.0.0.1:65536", ""},
		{"127.0.0.1:-1", ""},
		{"unix//tmp/socket", ""},
		{"", ""},
	} {
		t.Run(test.text, func(t *testing.T) {
			got, err := ParseListen(test.text)
			switch {
			case test.want == "" && err == nil:
				t.Errorf("got %v, want an error", got)
			case test.want == "" && !strings.Contains(err.Error(), "--listen"):
				t.Errorf("the error does not name the flag: %v", err)
			case test.want != "" && (err != nil || got.String() != test.want):
				t.Errorf("got %v, %v, want %v", got, err, test.want)
			}
		})
	}
}

func TestFreeAddress(t *testing.T) {
	chosen, err := FreeAddress(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil || chosen.Port() == 0 || !chosen.Addr().IsLoopback() {
		t.Errorf("got %v, %v", chosen, err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if got, err := FreeAddress(t.Context(), netip.MustParseAddrPort(taken.Addr().String())); err == nil || !strings.Contains(err.Error(), "is taken") {
		t.Errorf("got %v, %v", got, err)
	}
}
